"""A checkpoint is gone on from where it is of the same fit, by one process; else a sentence."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from apfex.persistence import CheckpointError, open_checkpoint, remove_checkpoint
from apfex.persistence import _checkpoint as checkpoints

SETTINGS = {"epochs": 3, "criteria": ["dp"]}
ROWS = {"number of rows": 3, "inputs": torch.ones(3, 2), "labels": [torch.arange(3)]}
HOLDS = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1] + "/.lock"):
    print("ready", flush=True)
    sys.stdin.read()
"""
WRITES = """
import os, resource, sys
from apfex.persistence import open_checkpoint
import torch
full, locked = sys.argv[1:]
def say(error):
    print(type(error).__name__, error, flush=True)
with open_checkpoint(full, {}) as checkpoint:
    checkpoint.write("small", {"epochs": 1})
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, most))
    try:
        checkpoint.write("large", {"values": torch.zeros(5000)})
    except OSError as error:
        say(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
os.chmod(locked, 0o555)
if os.getuid() == 0:  # whom no permission stops
    os.setgid(65534)
    os.setuid(65534)
for place in (locked, locked + "/new"):
    try:
        with open_checkpoint(place, {}):
            pass
    except OSError as error:
        say(error)
"""


@pytest.fixture
def place(tmp_path):
    with open_checkpoint(tmp_path / "fit", SETTINGS) as checkpoint:
        checkpoint.match(lambda: ROWS)
        checkpoint.part("learner0").write("trees", {"losses": [0.5]})
    return tmp_path / "fit"


def again(place, settings=SETTINGS, rows=ROWS):
    with open_checkpoint(place, settings) as checkpoint:
        checkpoint.match(lambda: rows)
        return checkpoint.part("learner0").read("trees"), checkpoint.read("trees")


def refused(place, match, settings=SETTINGS, rows=ROWS):
    before = {path: path.read_bytes() for path in place.iterdir()}
    with pytest.raises(CheckpointError, match=match):
        again(place, settings, rows)
    assert {path: path.read_bytes() for path in place.iterdir()} == before


def test_the_same_fit_goes_on(place):
    assert again(place) == ({"losses": [0.5]}, None)
    shutil.copytree(place, place.with_name("moved"))
    assert again(place.with_name("moved"))[0] == {"losses": [0.5]}


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ({"number of rows": 4}, r"got number of rows 3 instead of 4; use the same data, choose an"),
        ({"inputs": torch.zeros(3, 2)}, "got other inputs;"),
        ({"inputs": torch.ones(2, 3)}, "got other inputs;"),
        ({"inputs": torch.ones(3, 2).double()}, "got other inputs;"),
        ({"labels": [torch.arange(3).flip(0)], "number of rows": 2}, "2, other labels;"),
    ],
)
def test_of_other_data_it_is_refused(place, rows, told):
    refused(place, rf"fit' must be of the same data to go on from, .*{told}", rows=ROWS | rows)


def test_of_other_settings_it_is_refused_and_they_are_named(place):
    told = r"same settings to go on from, got epochs=3 instead of epochs=5, patience=None instead"
    refused(place, told, SETTINGS | {"epochs": 5, "patience": 2})


def test_of_another_version_it_is_refused(place):
    manifest = json.loads((place / "checkpoint.json").read_text())
    for part, told in (
        ({"versions": manifest["versions"] | {"torch": "1.0"}}, "got torch 1.0 instead of "),
        ({"versions": manifest["versions"] | {"numpy": "1", "old": "2"}}, "old 2 instead of not"),
        ({"format": 99}, "version of apfex to go on from, got format 99 instead of 1"),
        ({"kind": "other"}, "is no record of a checkpoint"),
        ({"settings": []}, "is no record of a checkpoint"),
    ):
        (place / "checkpoint.json").write_text(json.dumps(manifest | part))
        refused(place, told)


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(CheckpointError, match=r"must be empty, or a checkpoint, .*thesis.txt"):
        again(tmp_path)
    with pytest.raises(CheckpointError, match="must be empty, or a checkpoint"):
        remove_checkpoint(tmp_path)
    assert (tmp_path / "thesis.txt").exists()
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match=r"file' cannot be made: File exists; choose another"):
        again(tmp_path / "file")


def test_what_is_damaged_is_named(place):
    path = place / "learner0-trees.state"
    path.write_bytes(path.read_bytes()[:-1])
    refused(place, r"learner0-trees.state' is damaged .*remove this file, and what it held is com")
    path.unlink()
    assert again(place) == (None, None)


def test_two_processes_do_not_share_one(place):
    command = [sys.executable, "-c", HOLDS, str(place)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        refused(place, "by one process at a time, got one that another process is writing; wait")
        with pytest.raises(CheckpointError, match="by one process at a time"):
            remove_checkpoint(place)
        other.kill()  # the lock of one that is gone does not count
        other.wait(60)
        assert again(place)[0] == {"losses": [0.5]}
    remove_checkpoint(place)
    assert not place.exists()
    remove_checkpoint(place)


@pytest.mark.skipif(os.name != "posix", reason="needs limits and permissions of POSIX")
def test_a_full_disk_and_a_folder_that_cannot_be_written_are_told():
    """In a real process, with the system's own limit and permissions."""
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)
        full, locked = Path(home) / "full", Path(home) / "locked"
        locked.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", WRITES, full, locked],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert not done.returncode, done.stderr
        told = done.stdout.splitlines()
        assert "large.state' could not be written: File too large. What was there" in told[0]
        assert "make room, or choose another place." in told[0]
        assert sorted(os.listdir(full)) == [".lock", "checkpoint.json", "small.state"]
        assert told[1].startswith("PermissionError The checkpoint")
        assert "locked' cannot be written: Permission denied; choose another folder." in told[1]
        assert "locked/new' cannot be made: Permission denied; choose another folder." in told[2]
        assert list(locked.iterdir()) == []


def test_states_under_way_are_kept_seldom(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    with open_checkpoint(tmp_path, {}) as checkpoint:
        assert not checkpoint.is_due(finished=False)
        assert checkpoint.is_due(finished=True)
        now[0] += 10.0
        assert checkpoint.is_due(finished=False)
        whole = checkpoints.write_bytes_atomically

        def slow(path, data):
            now[0] += 2.0
            return whole(path, data)

        monkeypatch.setattr(checkpoints, "write_bytes_atomically", slow)
        checkpoint.write("training", {"epochs": 1})
        now[0] += 99.0
        assert not checkpoint.is_due(finished=False)  # 2 % of the time at most
        now[0] += 1.0
        assert checkpoint.is_due(finished=False)


def test_a_link_is_not_followed(place):
    """A folder that somebody else has packed may be gone on from unasked."""
    with open_checkpoint(place, SETTINGS) as checkpoint:
        checkpoint.write("seed", {"seed": 1})
    outside = place.parent / "outside"
    (place / "trees.state").symlink_to(outside)
    for refused in (
        lambda: open_checkpoint(place, SETTINGS).__enter__(),
        lambda: remove_checkpoint(place),
    ):
        with pytest.raises(CheckpointError, match=r"plain files, got the link 'trees\.state'"):
            refused()
    assert not outside.exists()


def test_what_is_not_of_the_checkpoint_stays(place):
    with open_checkpoint(place, SETTINGS) as checkpoint:
        checkpoint.write("seed", {"seed": 1})
    (place / "notes.txt").write_text("mine")
    remove_checkpoint(place)
    assert [path.name for path in place.iterdir()] == ["notes.txt"]


def test_a_folder_that_is_refused_stays_as_it_was(tmp_path):
    (tmp_path / "own.txt").touch()
    with pytest.raises(CheckpointError, match="must be empty"):
        open_checkpoint(tmp_path, {}).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["own.txt"]
    with pytest.raises(ValueError, match="must name a folder"):
        open_checkpoint("", {}).__enter__()
