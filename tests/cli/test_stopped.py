"""Ctrl-C: what is there is said, and a model that is whole can be used."""

import json

import pytest
from tests.cli.conftest import COLUMNS, TRAINING
from tests.people import people

from apfex.estimator import APFExClassifier
from apfex.persistence import read_json


def stop(*_, **__):
    raise KeyboardInterrupt


@pytest.fixture
def stopped(apfex, table, tmp_path, monkeypatch):
    """A run that was stopped while its points were measured."""
    with monkeypatch.context() as patched:
        patched.setattr("apfex.report.measure_front", stop)
        said = apfex("explore", table, *COLUMNS, *TRAINING, "--out", tmp_path / "a run")
    assert said.code == 130
    assert "(Ctrl-C keeps the models)" in said.err
    assert f"apfex predict '{tmp_path / 'a run.incomplete'}' FILE" in said.err
    assert f"is kept in {tmp_path / 'a run.checkpoint'}; the same command goes on" in said.err
    return tmp_path / "a run.incomplete"


def test_a_model_that_is_whole_predicts_as_that_of_the_whole_run(
    apfex, stopped, finished, tmp_path
):
    assert sorted(path.name for path in stopped.iterdir()) == ["model", "run.json"]
    assert read_json(stopped / "run.json")["finished"] is False
    people(40, seed=1).to_csv(tmp_path / "new.csv", index=False)
    one, two = (
        apfex("predict", run, tmp_path / "new.csv", "--out", "-") for run in (stopped, finished)
    )
    assert one.code == 0
    assert one.out == two.out
    assert "was stopped before its models were measured" in one.err
    assert "was stopped" not in two.err


@pytest.mark.parametrize("command", ["report", "rerun"])
def test_what_is_missing_is_said_in_a_sentence(apfex, stopped, command):
    said = apfex(command, stopped)
    assert (said.code, said.out) == (2, "")
    assert "it has no figures and no report, only the model" in said.err
    assert f"apfex predict '{stopped}' FILE" in said.err


def test_before_anything_is_finished_nothing_is_kept_and_that_is_said(
    apfex, table, tmp_path, monkeypatch
):
    monkeypatch.setattr(APFExClassifier, "fit", stop)
    said = apfex("explore", table, *COLUMNS, *TRAINING, "--out", tmp_path / "run")
    assert said.code == 130
    assert "(Ctrl-C stops; what is finished is kept)" in said.err
    assert "Warning: Not finished: nothing is kept." in said.err
    assert list(tmp_path.iterdir()) == []


def test_the_same_command_goes_on_after_ctrl_c(apfex, stopped, table, finished):
    out = stopped.with_name("a run")
    words = ["explore", table, *COLUMNS, *TRAINING, "--out", out]
    said = apfex(*words, "--seed", 1)
    assert said.code == 2
    assert "got --seed 0 instead of --seed 1; use the same settings, name another fold" in said.err
    assert "(--out), or start anew (--fresh)." in said.err
    said = apfex(*words)
    assert f"Going on from {out}.checkpoint (--fresh starts anew)" in said.err
    assert read_json(out / "run.json")["results"] == read_json(finished / "run.json")["results"]
    assert sorted(path.name for path in out.parent.iterdir()) == ["a run", "a run.incomplete"]


def test_a_record_of_before_says_nothing_of_it_and_is_whole(apfex, finished, tmp_path):
    record = read_json(finished / "run.json")
    assert record.pop("finished") is True
    (tmp_path / "run.json").write_text(json.dumps(record))
    (tmp_path / "front.json").write_bytes((finished / "front.json").read_bytes())
    assert apfex("report", tmp_path).code == 0
