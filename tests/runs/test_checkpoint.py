"""A run that was stopped goes on from the checkpoint beside its folder, which then goes."""

import json
import shutil
import warnings

import pytest
from tests.people import COLUMNS, TRAINING

from apfex import explore
from apfex.persistence import _checkpoint as checkpoints
from apfex.persistence import open_checkpoint
from apfex.runs import RunError, RunWarning

KEPT = r"What is finished of the training is kept in .*run.checkpoint; the same command goes on"


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """These trainings are short."""
    monkeypatch.setattr(checkpoints, "_SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "_TIMES", 5.0)


def run(table, out, stages=None, **more):
    def tell(stage, _):
        if stages is not None:
            stages.append(stage)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No model|Only models")
        return explore(table, **(COLUMNS | TRAINING | more), out=out, progress=tell)


@pytest.fixture
def stopped(table, tmp_path, monkeypatch):
    """The folder of a run that was interrupted when its training was kept for the first time."""
    write, left = checkpoints.FolderCheckpoint.write, [2]

    def counted(self, name, state):
        write(self, name, state)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints.FolderCheckpoint, "write", counted)
        with pytest.warns(RunWarning, match=KEPT) as said, pytest.raises(KeyboardInterrupt):
            run(table, tmp_path / "run")
    assert len(said) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run.checkpoint"]
    return tmp_path / "run"


def test_a_run_that_was_stopped_comes_out_the_same(table, stopped, finished):
    stages = []
    run(table, stopped, stages)
    assert stages == ["read", "resuming", "training", "measuring"]
    assert [path.name for path in stopped.parent.iterdir()] == ["run"]
    for name in ("content.json", "arrays.safetensors"):
        assert (stopped / "model" / name).read_bytes() == (finished / "model" / name).read_bytes()
    records = [json.loads((place / "run.json").read_text()) for place in (stopped, finished)]
    for record in records:
        del record["created"], record["seconds"]
    assert records[0] == records[1]


def test_another_run_into_the_same_folder_is_refused_or_starts_anew(table, stopped):
    before = sorted((stopped.parent / "run.checkpoint").iterdir())
    told = r"of the same settings to go on from, got points 4 instead of points 3, seed 0 instead "
    with pytest.raises(RunError, match=told) as refused:
        run(table, stopped, points=3, seed=1)
    assert "name another folder (out), or start anew (fresh=True)." in str(refused.value)
    assert sorted((stopped.parent / "run.checkpoint").iterdir()) == before
    stages = []
    run(table, stopped, stages, points=3, seed=1, fresh=True)
    assert stages == ["read", "training", "measuring"]
    assert [path.name for path in stopped.parent.iterdir()] == ["run"]


def test_other_data_are_refused(table, stopped, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(table.read_text().replace("female", "woman"))
    with pytest.raises(RunError, match=r"of the same data to go on from, got other data; use the"):
        run(other, stopped)


@pytest.mark.slow
def test_what_does_not_change_the_training_may_change(table, stopped):
    run(table, stopped, threads=1, tolerance=0.2, confidence=0.9)
    assert (stopped / "report.html").exists()


def test_two_runs_into_one_folder_are_refused(table, tmp_path):
    with open_checkpoint(tmp_path / "run.checkpoint", {}):
        with pytest.raises(RunError, match="one process at a time, got one that another process"):
            run(table, tmp_path / "run")
        with pytest.raises(RunError, match="one process at a time, got one that another process"):
            run(table, tmp_path / "run", fresh=True)


def test_a_run_that_fails_before_anything_is_finished_leaves_nothing(table, tmp_path):
    with pytest.raises(RunError):
        run(table, tmp_path / "run", criteria="fpr,fnr", test_fraction=0.97)
    assert list(tmp_path.iterdir()) == []


def a_file(place):
    place.write_text("mine")


def a_folder(place):
    place.mkdir()
    (place / "mine").touch()


def a_link(place):
    place.symlink_to(place.parent, target_is_directory=True)


def a_checkpoint_of_fit(place):
    with open_checkpoint(place, {"n_points": 3}) as checkpoint:
        checkpoint.write("learner", {"epochs": 3})
        checkpoint.match(lambda: {"inputs": 4})


@pytest.mark.parametrize("other", [a_file, a_folder, a_link, a_checkpoint_of_fit])
def test_what_others_call_a_checkpoint_beside_a_whole_run_stays(table, tmp_path, other, finished):
    """It stops nobody, and nothing of it is removed."""
    shutil.copytree(finished, tmp_path / "old")
    other(tmp_path / "old.checkpoint")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(RunError, match="fpr"):  # that comes later
        run(table, tmp_path / "next", criteria="fpr,fnr", test_fraction=0.97)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


@pytest.mark.slow
def test_a_checkpoint_beside_a_whole_run_goes_with_the_next_run(table, stopped):
    """As after a kill between the two: the run has its name, and its checkpoint is still there."""
    checkpoint = stopped.with_name("run.checkpoint")
    kept = {path.name: path.read_bytes() for path in checkpoint.iterdir()}
    run(table, stopped)
    checkpoint.mkdir()
    for name, data in kept.items():
        (checkpoint / name).write_bytes(data)
    run(table, stopped.with_name("next"))
    assert sorted(path.name for path in stopped.parent.iterdir()) == ["next", "run"]
