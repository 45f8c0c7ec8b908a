"""``explore``: tells what it took, holds rows back, writes a whole run."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from tests.cli.conftest import COLUMNS, TRAINING, people

import apfex as library
from apfex.auditing import Audit
from apfex.persistence import read_json
from apfex.report import describe_front


def test_a_run_has_all_its_files(finished):
    names = sorted(path.name for path in finished.iterdir())
    assert names == ["audit.json", "front.json", "model", "report.html", "run.json"]
    assert "<script>alert" not in (finished / "report.html").read_text()


def test_the_record_says_what_was_done_on_what(finished, table):
    record = read_json(finished / "run.json")
    assert record["settings"]["seed"] == 0
    assert record["settings"]["max_gap"] == {"dp": 0.05}
    assert record["data"]["path"] == str(table)
    assert record["data"]["rows"] == 300 == record["data"]["fit_rows"] + record["data"]["test_rows"]
    assert record["versions"]["apfex"] == library.__version__
    assert record["features"] == {
        **dict.fromkeys(["merit_1", "merit_2", "noise_1"], "number"),
        **dict.fromkeys(["town", "noise_2"], "text"),
    }


def test_the_positive_value_is_the_last_class_whatever_its_name(finished):
    clf = library.load(finished / "model")
    assert clf.classes_.tolist() == ["0 = rejected", "1 = hired"]
    assert read_json(finished / "run.json")["words"] == ["rejected", "hired"]


def test_the_report_calls_labels_what_the_file_calls_them(finished):
    front = read_json(finished / "front.json")
    assert front["classes"] == ["rejected", "hired"]
    assert front["favorable"] == "hired"
    assert "1 = hired" not in (finished / "report.html").read_text()


def test_the_report_is_on_the_rows_held_back(finished):
    """The figures are those of the stored model on exactly these rows."""
    from apfex.cli._exploring import _prepare
    from apfex.cli._settings import ExploreSettings

    record, front = read_json(finished / "run.json"), read_json(finished / "front.json")
    task = _prepare(ExploreSettings.from_dict(record["settings"]))
    clf = library.load(finished / "model")
    again = describe_front(clf, **task.rows(task.test))
    assert [p["error"] for p in again["points"]] == [p["error"] for p in front["points"]]
    assert front["rows"] == len(task.test) == record["data"]["test_rows"]
    stored = Audit.from_json((finished / "audit.json").read_text())
    assert stored.n_rows == len(task.test)


def test_it_tells_what_it_took(apfex, table, tmp_path):
    said = apfex("explore", table, *COLUMNS, *TRAINING, "--out", tmp_path / "run")
    assert said.code == 0
    for words in (
        "people.csv (CSV), 300 rows",
        "hired, positive: hired (",
        "sex (2) x origin (2): 4 groups",
        "5 (3 numbers, 2 text): merit_1, merit_2, town",
        "225 to fit and choose, 75 held back",
        "chosen",
        str(tmp_path / "run" / "report.html"),
    ):
        assert words in said.out
    assert "Training on 225 rows" in said.err


def test_missing_labels_are_dropped_and_a_give_away_is_told(apfex, tmp_path):
    from apfex.cli._exploring import _prepare
    from apfex.cli._settings import ExploreSettings

    frame = people()
    frame["letter"] = np.where(frame["hired"] == "hired", "welcome", "sorry")
    frame.loc[[0, 5, 9], "hired"] = None
    frame.to_csv(tmp_path / "p.csv", index=False)
    said = apfex("explore", tmp_path / "p.csv", *COLUMNS, *TRAINING, "--out", tmp_path / "run")
    assert "297 rows; 3 dropped without a label" in said.out
    assert "Warning: letter gives the label away" in said.err
    assert "--drop letter" in said.err
    record = read_json(tmp_path / "run/run.json")
    assert record["data"]["dropped"] == {"without a label": 3}
    assert record["leaks"] == ["letter"]
    settings = ExploreSettings.from_dict(record["settings"] | {"drop": ["letter", "hired"]})
    assert _prepare(settings).leaks == []


def test_weights_bins_a_favorable_label_and_json(apfex, tmp_path):
    rng = np.random.default_rng(0)
    frame = people().assign(age=rng.integers(18, 80, 300), w=rng.random(300))
    frame.to_parquet(tmp_path / "p.parquet")
    arguments = ["--label", "hired", "--positive", "rejected", "--favorable", "hired"]
    arguments += ["--sensitive", "sex", "--sensitive", "age", "--bins", "age=40", "--weight", "w"]
    arguments += ["--drop", "origin", *TRAINING, "--out", tmp_path / "run"]
    said = apfex("explore", tmp_path / "p.parquet", *arguments, "--json")
    assert said.code == 0, said.err
    assert "favorable: hired" in said.err
    assert "age (2)" in said.err
    document, record = json.loads(said.out), read_json(tmp_path / "run/run.json")
    assert document["folder"] == str(tmp_path / "run")
    assert len(document["front"]) == len(document["results"]["points"])
    assert record["favorable"] == record["classes"][0] == "hired"
    assert "w" not in record["features"]


BAD = {
    ("--label", "hird", "--sensitive", "sex"): "no column 'hird' (--label); did you mean 'hired'?",
    ("--label", "hired", "--sensitive", "sex"): "--positive rejected",
    ("--label", "hired", "--positive", "Hired", "--sensitive", "sex"): "did you mean 'hired'?",
    ("--label", "hired"): "--sensitive must name columns of",
    (): "--label and --sensitive must name columns of",
    (*COLUMNS, "--criteria", "dpr"): "--criteria: there is no 'dpr'; did you mean dp?",
    (*COLUMNS, "--max-gap", "much"): "--max-gap must be a number from 0 to 1",
    (*COLUMNS, "--max-gap", "fpr=0.1"): "--max-gap: fpr is not among --criteria",
    (
        "--label",
        "hired",
        "--positive",
        "hired",
        "--sensitive",
        " ",
    ): "--sensitive must name columns",
    (*COLUMNS, "--drop", "merit"): "did you mean 'merit_",
    (*COLUMNS, "--drop", "merit_1,merit_2,town,noise_1,noise_2"): "no column left",
    (*COLUMNS, "--favorable", "x"): "--favorable must be one of the two outcomes",
    (*COLUMNS, "--weight", "town"): "--weight town must hold numbers",
    (*COLUMNS, "--weight", "hired"): "must name different columns",
    (*COLUMNS, "--test-fraction", "2"): "--test-fraction must lie between 0 and 1",
    (*COLUMNS, "--tolerance", "2"): "tolerance must be at least 0 and below 1",
    (*COLUMNS, "--model", "tree"): "Invalid value for '--model'",
    (*COLUMNS, "--sensitive", "merit_1"): "at most 50 can be compared",
    (*COLUMNS, "--encoding", "latein"): "--encoding must be one that Python knows",
}


@pytest.mark.parametrize("arguments", BAD, ids=lambda a: " ".join(a) or "nothing")
def test_bad_options_are_told_in_a_line_or_two_and_leave_nothing(apfex, table, tmp_path, arguments):
    said = apfex("explore", table, "--out", tmp_path / "run", *arguments)
    assert said.code == 2
    assert said.out == ""
    assert BAD[arguments] in said.err
    assert len(said.err.splitlines()) <= 3  # what is read, and the error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("adlt", "'adlt' is no file, and no data set; did you mean adult?"),
        ("nothing", "data sets are adult, celeba, compas, german, heart"),
        ("nothing.csv", "There is no file nothing.csv"),
    ],
)
def test_a_source_that_is_not_there(apfex, source, words):
    said = apfex("explore", source)
    assert said.code == 2
    assert words in said.err


def test_what_exists_is_not_replaced(apfex, table, finished):
    before = {path: path.read_bytes() for path in finished.iterdir() if path.is_file()}
    said = apfex("explore", table, *COLUMNS, *TRAINING, "--out", finished)
    assert (said.code, "exists already" in said.err) == (2, True)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.skipif(sys.platform == "win32", reason="a folder that cannot be written")
def test_a_place_that_cannot_be_written_is_told_before_training(apfex, table):
    said = apfex("explore", table, *COLUMNS, *TRAINING, "--out", "/proc/apfex/run")
    assert (said.code, "cannot be made" in said.err) == (2, True)
    assert "Training" not in said.err


def test_dates_and_lists_are_no_features(apfex, tmp_path):
    frame = people().assign(day=pd.Timestamp("2024-01-01"), tags=[["a"]] * 300)
    frame.to_parquet(tmp_path / "p.parquet")
    said = apfex("explore", tmp_path / "p.parquet", *COLUMNS, *TRAINING)
    assert (said.code, "--drop day,tags" in said.err) == (2, True)


def test_infinite_numbers_are_told(apfex, tmp_path):
    frame = people()
    frame.loc[3, "merit_1"] = np.inf
    frame.to_csv(tmp_path / "p.csv", index=False)
    said = apfex("explore", tmp_path / "p.csv", *COLUMNS, *TRAINING)
    assert (said.code, "merit_1 is infinite in 1 rows" in said.err) == (2, True)


@pytest.mark.slow  # fetches German where it is not at hand
def test_a_data_set_by_name(apfex, tmp_path):
    said = apfex("explore", "german", *TRAINING, "--sensitive", "sex", "--out", tmp_path / "run")
    assert said.code == 0
    assert "1: good credit" in said.out
    assert read_json(tmp_path / "run/run.json")["data"]["path"] is None
    said = apfex("explore", "german", "--label", "y")
    assert "--label is for files: the data set german brings its own" in said.err
