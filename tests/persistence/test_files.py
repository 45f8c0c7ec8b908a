"""A file is there whole, or as it was before."""

import os
import resource
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.persistence import write_bytes_atomically, write_text_atomically

LIMITED = """
import resource, sys
from apfex.persistence import write_text_atomically
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_text_atomically(sys.argv[1], "new" * 1000)
except OSError as error:
    print(type(error).__name__, error.errno, error)
"""
WRITER = """
import sys
from apfex.persistence import write_text_atomically
print("ready", flush=True)
for turn in range(60):
    write_text_atomically(sys.argv[1], "ab"[turn % 2] * 300_000)
"""


@settings(max_examples=25)
@given(st.text())
def test_text_comes_back_as_it_was(text):
    with tempfile.TemporaryDirectory() as folder:
        path = write_text_atomically(Path(folder) / "note.txt", text)
        assert path.read_bytes().decode() == text
        assert os.listdir(folder) == ["note.txt"]


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "note.txt"
    path.write_text("old")
    path.chmod(0o600)
    write_bytes_atomically(path, b"new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_permissions_of_a_new_file_are_the_usual_ones(tmp_path):
    usual = tmp_path / "usual"
    usual.write_text("")
    assert write_text_atomically(tmp_path / "new", "").stat().st_mode == usual.stat().st_mode


def test_a_link_stays_one(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_where_nothing_can_be_written_a_sentence_says_so(tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(NotADirectoryError, match=r"'.*file/note' could not be written: Not a dir"):
        write_text_atomically(tmp_path / "file" / "note", "new")
    with pytest.raises(FileNotFoundError, match="could not be written: No such file or directory"):
        write_text_atomically(tmp_path / "nowhere" / "note", "new")
    with pytest.raises(IsADirectoryError, match="there is a folder of this name"):
        write_text_atomically(tmp_path, "new")
    with pytest.raises(ValueError, match=r"UTF-8 can hold it, got '\\ud800' at place 1"):
        write_text_atomically(tmp_path / "file", "a\ud800")
    assert (tmp_path / "file").read_text() == "kept"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
@pytest.mark.parametrize("through", ["pipe", "link"])
def test_a_pipe_keeps_its_name(tmp_path, through):
    """As a device does, which a user with all rights would replace."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    said = r"^path must be a file, got a device or a pipe, '.*pipe'; write to a file, and copy that"
    with pytest.raises(ValueError, match=said):
        write_text_atomically(tmp_path / through, "new")
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="needs limits of POSIX")
def test_no_room_leaves_what_was_there_and_nothing_else(tmp_path):
    """As a full disk does, the system cuts the writing short: here by a limit for a process."""
    path = tmp_path / "note.txt"
    path.write_text("old")
    told = subprocess.run(
        [sys.executable, "-c", LIMITED, path], capture_output=True, text=True, check=True
    ).stdout
    assert told.startswith("OSError 27 ")
    assert "could not be written: File too large. What was there before is unchanged" in told
    assert "make room, or choose another place." in told
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["note.txt"]


def test_readers_never_see_half_a_file(tmp_path):
    path = tmp_path / "note.txt"
    write_text_atomically(path, "b" * 300_000)
    command = [sys.executable, "-c", WRITER, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        seen = set()
        while writer.poll() is None:
            text = path.read_text()
            seen.add((text[0], len(text), len(set(text))))
    assert writer.returncode == 0
    assert seen <= {("a", 300_000, 1), ("b", 300_000, 1)}
