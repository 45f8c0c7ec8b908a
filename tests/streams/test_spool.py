"""Rows on disk go with the process that has put them there, also where that was killed."""

import os
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from apfex.streams import spool_folder

HOLD = """
import sys
from apfex.streams import spool_folder
with spool_folder(sys.argv[1]) as folder:
    (folder / "rows").write_bytes(bytes(1000))
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that uses a folder, and where that is."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def use(place):
    with spool_folder(place) as own:
        assert own.exists()


def test_a_folder_that_is_used_is_left_alone(holder, tmp_path):
    _, folder = holder
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with spool_folder(tmp_path) as own:
            assert own != folder
    assert (folder / "rows").exists()
    assert not own.exists()


def test_a_folder_of_a_process_that_was_killed_is_removed_and_named(holder, tmp_path):
    process, folder = holder
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (folder / "rows").exists()
    said = rf"A process that was stopped has left {folder.name} in .*; it is removed"
    with pytest.warns(UserWarning, match=said):
        use(tmp_path)
    assert not folder.exists()


def test_what_is_no_folder_of_ours_is_left_alone(tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("kept")
    place = tmp_path / "temporary"
    place.mkdir()
    (place / "apfex-stream-abcd0123").symlink_to(elsewhere)
    (place / "apfex-stream-file0123").write_text("kept")
    (place / "apfex-stream-more-than-that").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with spool_folder():
            pass
    assert (elsewhere / "kept").exists()
    assert len(list(place.iterdir())) == 3


def test_a_folder_of_another_user_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "apfex-stream-abcd0123").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: os.stat(tmp_path).st_uid + 1)
    with spool_folder(tmp_path):
        pass
    assert (tmp_path / "apfex-stream-abcd0123").exists()
