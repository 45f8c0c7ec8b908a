"""Drafts of processes that are gone are removed; those of others are left alone."""

import os
import signal
import subprocess
import sys
import threading

import pytest
import torch

from apfex.persistence import (
    Bundle,
    clean_up,
    read_bundle,
    write_bundle,
    write_text_atomically,
)
from apfex.persistence import _exchange as exchanges
from apfex.persistence._drafts import beside

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there drafts cannot be held")
HOLDS = """
import sys
from pathlib import Path
from apfex.persistence._files import new_file, new_folder
target = Path(sys.argv[1])
with new_file(target / "note") as file, new_folder(target / "model") as folder:
    file.write_text("half")
    (folder / "part").write_text("half")
    print("ready", flush=True)
    sys.stdin.read()
"""
REMOVED = r"A process that was stopped has left \.{}\.[0-9a-f]{{8}}\.tmp in .* it is removed"


@pytest.fixture
def writer(tmp_path):
    """A process in the middle of writing a file and a folder."""
    command = [sys.executable, "-c", HOLDS, tmp_path]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def hidden(folder):
    return [name for name in os.listdir(folder) if name.startswith(".")]


def test_drafts_of_a_process_that_lives_are_left_alone(writer, tmp_path):
    assert clean_up(tmp_path / "note") == clean_up(tmp_path / "model") == []
    write_text_atomically(tmp_path / "note", "other")
    assert len(hidden(tmp_path)) == 2
    writer.communicate("", timeout=60)
    assert writer.returncode == 0
    assert hidden(tmp_path) == []
    assert (tmp_path / "note").read_text() == "half"  # who is last


def test_what_a_kill_has_left_is_named_and_removed_by_the_next_writer(writer, tmp_path):
    writer.send_signal(signal.SIGKILL)
    writer.wait(60)
    (tmp_path / ".note.of-others.tmp").touch()
    (tmp_path / ".notebook.0a1b2c3d.tmp").touch()
    assert len(hidden(tmp_path)) == 4
    with pytest.warns(UserWarning, match=REMOVED.format("note")):
        write_text_atomically(tmp_path / "note", "new")
    with pytest.warns(UserWarning, match=REMOVED.format("model")):
        write_bundle(tmp_path / "model", Bundle(1), kind="numbers", format=1)
    assert sorted(hidden(tmp_path)) == [".note.of-others.tmp", ".notebook.0a1b2c3d.tmp"]


def test_what_was_moved_aside_can_be_read_and_gets_its_name_back(tmp_path):
    """As after a kill between two renamings, where a system cannot exchange names."""
    write_bundle(tmp_path / "model", Bundle([1]), kind="numbers", format=1)
    (tmp_path / "model").rename(tmp_path / ".model.0a1b2c3d.old")
    assert read_bundle(tmp_path / "model", kind="numbers", format=1).content == [1]
    assert not (tmp_path / "model").exists()
    assert clean_up(tmp_path / "model") == []
    assert read_bundle(tmp_path / "model", kind="numbers", format=1).content == [1]
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("letter", ["m", "模"])
def test_what_was_moved_aside_stays_apart_where_long_names_begin_alike(tmp_path, letter):
    start = letter * (150 // len(letter.encode()))
    january, february = tmp_path / f"{start}-january", tmp_path / f"{start}-february"
    write_bundle(january, Bundle([1]), kind="numbers", format=1)
    january.rename(beside(january, "old"))
    with pytest.raises(FileNotFoundError):
        read_bundle(february, kind="numbers", format=1)
    write_bundle(february, Bundle([2]), kind="numbers", format=1)
    assert read_bundle(january, kind="numbers", format=1).content == [1]
    assert clean_up(january) == []
    assert sorted(os.listdir(tmp_path)) == sorted([january.name, february.name])


def test_drafts_of_the_longest_names_can_be_written(tmp_path):
    place = tmp_path / ("模" * 84)  # 252 bytes of the 255 that systems take
    write_bundle(place, Bundle([1]), kind="numbers", format=1)
    write_text_atomically(tmp_path / ("n" * 255), "text")
    assert read_bundle(place, kind="numbers", format=1).content == [1]


def test_a_link_in_the_place_of_a_draft_is_not_followed(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    (tmp_path / ".model.0a1b2c3d.tmp").symlink_to(tmp_path / "precious")
    assert clean_up(tmp_path / "model") == []
    assert (tmp_path / "precious" / "file").exists()


@pytest.mark.parametrize("can_exchange", [True, False])
def test_readers_during_an_overwrite_see_the_old_or_the_new(tmp_path, monkeypatch, can_exchange):
    if not can_exchange:
        monkeypatch.setattr("apfex.persistence._files.exchange", lambda *_: False)
    place = tmp_path / "model"

    def write(turn: int) -> None:
        bundle = Bundle(turn, {"a": torch.full((500,), float(turn))}, {"more": b"%d" % turn})
        write_bundle(place, bundle, kind="numbers", format=1, overwrite=True)

    write(0)
    done = threading.Event()

    def overwrite() -> None:
        try:
            for turn in range(1, 60):
                write(turn)
        finally:
            done.set()

    writer = threading.Thread(target=overwrite)
    writer.start()
    seen, last = 0, 0
    while not done.is_set():
        found = read_bundle(place, kind="numbers", format=1)
        assert (found.arrays["a"] == found.content).all()
        assert found.files["more"] == b"%d" % found.content
        assert found.content >= last
        seen, last = seen + 1, found.content
    writer.join()
    assert seen > 1
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.skipif(sys.platform != "linux", reason="of Linux")
def test_names_are_exchanged_at_once_here(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "one" / "file").touch()
    assert exchanges.exchange(tmp_path / "one", tmp_path / "other")
    assert (tmp_path / "other" / "file").exists()
    with pytest.raises(FileNotFoundError):
        exchanges.exchange(tmp_path / "one", tmp_path / "nothing")
