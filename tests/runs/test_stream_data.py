"""``explore`` of tables that are read in chunks: the same kind of run, and the same refusals."""

import gzip

import numpy as np
import pandas as pd
import pytest

from apfex import explore, make_biased
from apfex.runs import RunError, load_run, rerun
from apfex.runs._stream_data import is_streamed

N = 6_000
GIVEN = {
    "label": "hired",
    "positive": "yes",
    "sensitive": ["sex", "age"],
    "bins": {"age": [30.0, 50.0]},
    "criteria": "dp",
    "max_gap": 1.0,
    "model": "linear",
    "points": 4,
}


@pytest.fixture(scope="module")
def table():
    data, rng = make_biased(n=N, random_state=0), np.random.default_rng(0)
    frame = data.X.assign(
        since=np.where(rng.random(N) < 0.5, "2020-01-31", "2021-06-01"),
        copy_of_label=np.where(data.y == 1, "a", "b"),
        sex=data.sensitive["sex"],
        age=rng.integers(18, 80, N),
        hired=np.where(data.y == 1, "yes", "no"),
    )
    frame.loc[::100, "hired"] = None
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory, table):
    home = tmp_path_factory.mktemp("people")
    for place, part in enumerate(np.array_split(np.arange(N), 3)):
        table.iloc[part].to_parquet(home / f"{place}.parquet")
    return home


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    with pytest.warns(UserWarning, match="copy_of_label"):
        return explore(f"{folder}/*.parquet", **GIVEN, out=tmp_path_factory.mktemp("out") / "run")


def test_what_is_known_of_the_data_is_that_of_the_table(run, table):
    with pytest.warns(UserWarning, match="copy_of_label"):
        inside = explore(table, **GIVEN)
    found, expected = run.data, inside.data
    same = ("rows", "dropped", "label", "positive", "favorable", "groups", "features")
    for name in same:
        assert getattr(found, name) == getattr(expected, name), name
    assert found.base_rate == pytest.approx(expected.base_rate)
    assert found.test_rows == pytest.approx(expected.test_rows, abs=3)
    assert [leak.feature for leak in found.leaks] == ["copy_of_label"]
    assert run.audit.n_rows == found.test_rows
    assert run.described["points"][0]["error"] == pytest.approx(0, abs=0.02)  # by the leak
    assert set(run.described) == set(inside.described)


def test_csv_files_make_the_run_of_the_same_rows_in_parquet(run, table, tmp_path):
    for place, part in enumerate(np.array_split(np.arange(N), 3)):
        table.iloc[part].to_csv(tmp_path / f"{place}.csv", index=False)
    with pytest.warns(UserWarning, match="copy_of_label"):
        found = explore(f"{tmp_path}/*.csv", **GIVEN)
    points = [[one["error"] for one in known.described["points"]] for known in (run, found)]
    assert points[0] == pytest.approx(points[1], abs=1e-3)
    assert found.data.features == run.data.features
    assert found.data.groups == run.data.groups
    table.assign(merit_1="much").to_csv(tmp_path / "9.csv", index=False)
    with pytest.raises(RunError, match=r"got text in column 'merit_1' of .*9.csv and numbers in"):
        explore(f"{tmp_path}/*.csv", **GIVEN)


def test_a_dask_frame_makes_the_run_of_the_same_rows(run, table, tmp_path):
    dd = pytest.importorskip("dask.dataframe", reason="needs the extra dask")
    with pytest.warns(UserWarning, match="copy_of_label"):
        found = explore(dd.from_pandas(table, npartitions=3), **GIVEN, out=tmp_path / "run")
    points = [[one["error"] for one in known.described["points"]] for known in (run, found)]
    assert points[0] == pytest.approx(points[1], abs=1e-3)
    assert found.data.groups == run.data.groups
    assert (found.data.name, found.data.path) == ("frame", None)
    with pytest.raises(RunError, match=r"explore \(without stream=False\) and .*fit take it"):
        explore(dd.from_pandas(table, npartitions=3), **GIVEN, stream=False)
    assert load_run(tmp_path / "run").data.rows == run.data.rows
    with pytest.warns(UserWarning, match="copy_of_label"):
        assert rerun(tmp_path / "run", data=dd.from_pandas(table, npartitions=3)).same
    for other in (dd.from_pandas(table[:-9], npartitions=3), table):
        with pytest.raises(RunError, match=r"the Dask DataFrame|or a Dask DataFrame with the same"):
            rerun(tmp_path / "run", data=other)
    with pytest.raises(RunError, match="has column names, but no rows"):
        explore(dd.from_pandas(table[:0], npartitions=1), **GIVEN)


def test_the_run_is_stored_predicts_and_can_be_repeated(run, table):
    stored = load_run(run.folder)
    assert stored.record["settings"]["stream"] is True
    decided = stored.predict(table.head(50))
    truth = table["hired"].head(50)
    assert (decided["prediction"] == truth)[truth.notna()].mean() > 0.9
    with pytest.warns(UserWarning, match="copy_of_label"):
        again = rerun(run.folder)
    assert again.same


def test_other_files_are_another_run(run, folder, table):
    added = folder / "9.parquet"
    table.head(10).to_parquet(added)
    try:
        with pytest.raises(RunError, match="is not that of the run"):
            rerun(run.folder)
    finally:
        added.unlink()


def test_files_are_read_in_chunks_where_that_is_needed(folder, table, monkeypatch):
    one = folder / "0.parquet"
    assert is_streamed(folder, None)
    assert is_streamed(f"{folder}/*.parquet", None)
    assert not is_streamed(one, None)
    assert is_streamed(one, True)
    assert not is_streamed("adult", None)
    assert not is_streamed(table, None)
    monkeypatch.setattr("apfex.runs._stream_data.usable_memory", lambda: one.stat().st_size * 7)
    assert is_streamed(one, None)
    assert not is_streamed(one, False)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt", "t.csv.gz", "t.tsv.gz", "T.CSV.GZ"])
def test_csv_files_are_large_by_what_they_hold(tmp_path, monkeypatch, name):
    """Beside the memory of the container, where that is less than the machine's."""
    content, path = b"a,b\n" + b"1,2\n" * 2_000, tmp_path / name
    path.write_bytes(gzip.compress(content) if name.lower().endswith(".gz") else content)
    monkeypatch.setattr("apfex.memory._CGROUPS", ((tmp_path / "max", tmp_path / "used"),))
    for limit, large in ((8 * len(content) - 8, True), (8 * len(content), False)):
        (tmp_path / "max").write_text(str(limit))
        assert is_streamed(path, None) == large


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"label": "hire"}, "has no column 'hire'"),
        ({"positive": "si"}, "'si' is no value of hired"),
        ({"search": "inprocess"}, "must be auto or postprocess where a table is read in chunks"),
        ({"sensitive": "merit_1", "bins": None}, "merit_1 has more than 200 different values"),
        ({"favorable": "perhaps"}, "favorable must be one of the two outcomes"),
    ],
)
def test_wrong_arguments_are_refused(folder, change, match):
    with pytest.raises(RunError, match=match):
        explore(folder, **{**GIVEN, **change})


def test_other_kinds_of_files_and_frames_are_refused(tmp_path, table):
    table.to_json(tmp_path / "people.json")
    with pytest.raises(RunError, match=r"got .*people.json; write it as Parquet first"):
        explore(tmp_path / "people.json", **GIVEN, stream=True)
    with pytest.raises(RunError, match="stream is for files"):
        explore(table, **GIVEN, stream=True)
    with pytest.raises(RunError, match="No file is named like"):
        explore(tmp_path / "*.parquet", **GIVEN)


def test_a_file_with_another_schema_is_refused(tmp_path, table):
    table.head(100).to_parquet(tmp_path / "0.parquet")
    table.head(100).drop(columns="sex").to_parquet(tmp_path / "1.parquet")
    with pytest.raises(RunError, match=r"1\.parquet beside .*missing \['sex'\]"):
        explore(tmp_path, **GIVEN)


def test_dates_that_are_none_in_some_rows_are_told(tmp_path, table):
    """In a row that the sample of rows has not seen."""
    many = pd.concat([table] * 5, ignore_index=True)
    left_out = int(np.random.default_rng(0).random(len(many)).argmax())
    many.loc[left_out, "since"] = "later"
    many.to_parquet(tmp_path / "many.parquet")
    with pytest.raises(RunError, match="since holds dates in most rows, and other text in some"):
        explore(tmp_path, **GIVEN, drop="copy_of_label")
