"""``datasets``: a list that needs no network, and fetching by name."""

import json

import pytest

from apfex.datasets import list_datasets, make_biased


@pytest.fixture
def no_files(tmp_path, monkeypatch):
    """A machine on which there is nothing yet."""
    monkeypatch.setenv("APFEX_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.usefixtures("no_files")
def test_all_data_sets_are_listed_with_licence_and_home(apfex):
    said = apfex("datasets")
    assert said.code == 0
    for info in list_datasets():
        assert info.name in said.out
        assert info.homepage in said.out
        assert info.licence in said.out
    rows = json.loads(apfex("datasets", "--json").out)["datasets"]
    assert [row["name"] for row in rows] == [info.name for info in list_datasets()]
    assert {row["here"] for row in rows} == {False}


def test_fetch_gets_by_name(apfex, monkeypatch):
    asked = []

    def load_dataset(name, **_):
        asked.append(name)
        return make_biased(50, random_state=0)

    monkeypatch.setattr("apfex.datasets.load_dataset", load_dataset)
    said = apfex("datasets", "fetch", "german", "heart", "--json")
    assert asked == ["german", "heart"]
    assert [row["rows"] for row in json.loads(said.out)["datasets"]] == [50, 50]
    assert "CC BY 4.0" in said.err


def test_an_unknown_name_is_told_before_anything_is_fetched(apfex):
    said = apfex("datasets", "fetch", "german", "hart")
    assert said.code == 2
    assert "There is no data set 'hart'; did you mean heart?" in said.err
    assert "german" not in said.err


def test_names_complete_in_the_shell(apfex, monkeypatch):
    monkeypatch.setenv("_APFEX_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "apfex datasets fetch ")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert apfex().out.split() == [info.name for info in list_datasets()]
