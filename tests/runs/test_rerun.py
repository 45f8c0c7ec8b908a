"""A run again: the same data, and what comes out differently."""

import pytest
from tests.people import people

from apfex.persistence import read_json, write_json
from apfex.runs import RunError, load_run, rerun
from apfex.runs._rerun import compare


def test_the_data_must_be_there_and_the_same(finished, tmp_path):
    record = read_json(finished / "run.json")
    record["data"]["path"] = str(tmp_path / "gone.csv")
    write_json(tmp_path / "run.json", record)
    with pytest.raises(RunError, match=r"gone.csv, is not there; say where: data") as caught:
        rerun(tmp_path)
    assert caught.value.argument == "data"
    people(40).to_csv(tmp_path / "other.csv", index=False)
    for other in (tmp_path / "other.csv", people(40)):
        with pytest.raises(RunError, match="is not that of the run: sha256 must be"):
            rerun(tmp_path, data=other)


def test_a_frame_must_be_handed_over_again(finished, tmp_path):
    record = read_json(finished / "run.json")
    record["data"]["path"] = record["settings"]["source"] = None
    write_json(tmp_path / "run.json", record)
    with pytest.raises(RunError, match="is of a frame; hand it over again: data"):
        rerun(tmp_path)
    with pytest.raises(RunError, match="There is no run"):
        load_run(tmp_path / "none")


POINT = {"error": 0.1, "dp by sex": 0.2}


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ({"point": 0, "points": [POINT]}, []),
        ({"point": 1, "points": [POINT]}, ["point 0 was chosen, now 1"]),
        ({"point": 0, "points": [POINT, POINT]}, ["1 models before, 2 now"]),
        ({"point": 0, "points": [POINT | {"error": 0.3}]}, ["error by up to 0.2"]),
        ({"point": 0, "points": [POINT | {"error": None}]}, ["error is measured for other models"]),
    ],
)
def test_differences_in_words(after, words):
    assert compare({"point": 0, "points": [POINT]}, after) == words
