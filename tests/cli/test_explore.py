"""``explore``: reads its options, and tells what it took and what came out."""

import json
import shutil
import sys

import numpy as np
import pytest
from tests.cli.conftest import COLUMNS, TRAINING
from tests.people import people

from apfex.persistence import read_json


def test_it_tells_what_it_took(apfex, table, tmp_path):
    said = apfex("explore", table, *COLUMNS, *TRAINING, "--out", tmp_path / "run")
    assert said.code == 0
    for words in (
        "people.csv (CSV), 300 rows",
        "hired, positive: hired (",
        "sex (2) x origin (2): 4 groups",
        "5 (3 numbers, 2 text): merit_1, merit_2, town",
        "225 to train and choose by, 75 to test",
        "closest to the limit",
        str(tmp_path / "run" / "report.html"),
    ):
        assert words in said.out
    assert "Training on 225 rows" in said.err


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


def test_figures_of_the_validation_rows_are_named_as_such(apfex, table, tmp_path):
    arguments = ["explore", table, *COLUMNS, *TRAINING, "--out", tmp_path / "run", "--max-gap"]
    assert "meet your limit (dp gap at most 1) on the validation rows" in apfex(*arguments, "1").out
    shutil.rmtree(tmp_path / "run")
    said = apfex(*arguments, "0").out
    front = read_json(tmp_path / "run/front.json")
    gap = front["points"][front["chosen"]]["validation"]["gaps"]["dp"]["gap"]
    assert (
        "No model meets your limit (dp gap at most 0) on the validation rows; this one comes "
        f"closest: point {front['chosen']} (dp gap {gap:.3f} there)." in said
    )


def test_what_models_are_ranked_by_reaches_the_classifier(apfex, table, tmp_path, monkeypatch):
    def stop(self, **_):
        raise ValueError(f"{self.get_params()}")

    monkeypatch.setattr("apfex.estimator.APFExClassifier.fit", stop)
    arguments = ["explore", table, *COLUMNS, "--out", tmp_path / "run"]
    said = apfex(*arguments, "--cost", "false-positive=2", "--max-error-increase", "0.02").err
    assert "'cost_matrix': [[0.0, 2.0], [1.0, 0.0]]" in said
    assert "'max_error_increase': 0.02" in said
    said = apfex(*arguments, "--scoring", "f1", "--selection-rate", "0.2", "--threads", "3").err
    for words in ("'scoring': 'f1'", "'selection_rate': 0.2", "'n_jobs': 3"):
        assert words in said
    assert "'group_thresholds': True" in apfex(*arguments, "--group-thresholds").err
    said = apfex(*arguments, "--class-weight", "positive=5").err
    assert "'class_weight': {1: 5.0, 0: 1.0}" in said
    assert "'model': 'auto'" in said
    assert "'class_weight': 'balanced'" in apfex(*arguments, "--class-weight", "balanced").err


def test_models_that_see_or_decide_by_the_group_need_it_at_predict(apfex, table, tmp_path):
    training = ["--model", "linear", "--criteria", "dp", "--points", 4, "--max-gap", 1]
    for option in ("--include-sensitive", "--group-thresholds"):
        run = tmp_path / option
        said = apfex("explore", table, *COLUMNS, *training, option, "--out", run)
        assert said.code == 0, said.err
        assert apfex("predict", run, table, "--out", tmp_path / f"{option}.csv").code == 0
        people().drop(columns="origin").to_csv(tmp_path / "new.csv", index=False)
        said = apfex("predict", run, tmp_path / "new.csv")
        assert (said.code, "lacks" in said.err, "origin" in said.err) == (2, True, True)
    assert "--group-thresholds" in said.err


def test_a_balanced_ranking_is_shown(apfex, table, tmp_path):
    arguments = ["explore", table, *COLUMNS, *TRAINING, "--max-gap", 1, "--out"]
    said = apfex(*arguments, tmp_path / "run", "--scoring", "balanced_accuracy")
    assert "lowest balanced error" in said.out
    assert "point  error  balanced error    gain  favored  dp gap" in said.out
    front = read_json(tmp_path / "run/front.json")
    assert front["ranked_by"] == "balanced_error"
    for point in front["points"]:
        assert point["gain"] == pytest.approx(0.5 - point["balanced_error"])


def test_bin_is_bins(apfex, tmp_path):
    rng = np.random.default_rng(1)
    people().assign(age=rng.integers(18, 80, 300)).to_csv(tmp_path / "p.csv", index=False)
    arguments = ["--label", "hired", "--positive", "hired", "--sensitive", "age", "--bin", "age=40"]
    arguments += [*TRAINING, "--max-gap", 1, "--drop", "sex,origin"]
    said = apfex("explore", tmp_path / "p.csv", *arguments)
    assert "age (2)" in said.out
    assert str(tmp_path / "apfex-p" / "report.html") in said.out  # beside the file


@pytest.mark.parametrize("text", ["age", "age=", "=3", "age=a", "age=1;2"])
def test_bins_must_be_a_column_and_rising_numbers(apfex, table, text):
    said = apfex("explore", table, *COLUMNS, "--bins", text)
    assert (said.code, "--bins must be a column and rising numbers" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("names", "typed"),
    [
        (["raw", "tags"], "--drop raw,tags"),
        (["row", "the name"], "--drop row --drop 'the name'"),
        (["a,b"], "--drop a,b"),
    ],
)
def test_what_is_proposed_can_be_typed(apfex, tmp_path, names, typed):
    frame = people().assign(**dict.fromkeys(names, b"raw"))
    frame.to_parquet(tmp_path / "p.parquet")
    said = apfex("explore", tmp_path / "p.parquet", *COLUMNS, "--out", tmp_path / "run")
    assert said.err.rstrip().endswith(f"Leave them out: {typed}")


WHOM = ("--label", "hired", "--sensitive", "sex,origin")
BAD = {
    ("--label", "hird", "--sensitive", "sex"): "no column 'hird' (--label); did you mean 'hired'?",
    ("--label", "hired", "--sensitive", "sex"): "--positive hired",
    ("--label", "hired", "--positive", "Hired", "--sensitive", "sex"): "did you mean 'hired'?",
    ("--label", "hired"): "--sensitive must name columns of",
    (): "--label and --sensitive must name columns of",
    (*COLUMNS, "--criteria", "dpr"): "--criteria: there is no 'dpr'; did you mean 'dp'?",
    (*COLUMNS, "--max-gap", "much"): "--max-gap must be a number from 0 to 1",
    (*COLUMNS, "--max-gap", "fpr=0.1"): "--max-gap: fpr is not among --criteria",
    (*COLUMNS, "--max-gap", "2"): "--max-gap must be a number from 0 to 1",
    (*COLUMNS, "--bins", "age=3,2"): "--bins must have rising numbers for 'age'",
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
    (*COLUMNS, "--max-error-increase", "2"): "--max-error-increase must be a number from 0 to 1",
    (*COLUMNS, "--selection-rate", "1"): "--selection-rate must lie between 0 and 1, got 1.0",
    (*COLUMNS, "--cost", "5"): "--cost must be what errors cost, such as false_positive=1",
    (*COLUMNS, "--cost", "false_postive=5"): "there is no 'false_postive'; did you mean 'false_p",
    (*COLUMNS, "--cost", "false_positive=0"): "--cost must be a number above 0 for false_positive",
    (*COLUMNS, "--cost", "false_positive=2", "--scoring", "f1"): "ranked by one of the two",
    (*COLUMNS, "--class-weight", "even"): "--class-weight must be balanced, or such as positive=5",
    (*COLUMNS, "--class-weight", "postive=5"): "there is no 'postive'; did you mean 'positive'",
    (*COLUMNS, "--class-weight", "positive=0"): "--class-weight must be a number above 0 for posi",
    (*COLUMNS, "--class-weight", "balanced", "--cost", "false_positive=2"): "with --cost: both say",
    (*COLUMNS, "--threads", "0"): "--threads must be at least 1, got '0'",
    (*COLUMNS, "--sheet", "data"): "--sheet is for Excel files, got 'data'",
    (*WHOM, "--positive", "hired,fired"): "--positive 'fired' is no value of hired; did you",
    (*WHOM, "--positive", "hired,rejected"): "--positive must leave a value of hired",
    (*COLUMNS, "--test-fraction", "2"): "--test-fraction must lie between 0 and 1",
    (*COLUMNS, "--tolerance", "2"): "tolerance must be at least 0 and below 1",
    (*COLUMNS, "--model", "tree"): "--model must be one of",
    (*COLUMNS, "--sensitive", "merit_1"): "at most 200 can be compared",
    (*COLUMNS, "--encoding", "latein"): "--encoding must be one of text that Python knows",
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
        ("adlt", "'adlt' is no file, and no data set; did you mean 'adult'?"),
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


@pytest.mark.slow  # fetches German where it is not at hand
def test_a_data_set_by_name(apfex, tmp_path):
    said = apfex("explore", "german", *TRAINING, "--sensitive", "sex", "--out", tmp_path / "run")
    assert said.code == 0
    assert "1: good credit" in said.out
    assert read_json(tmp_path / "run/run.json")["data"]["path"] is None
    said = apfex("explore", "german", "--label", "y")
    assert "--label is for files: the data set german brings its own" in said.err
