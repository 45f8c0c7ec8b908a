"""Rows on disk go with the process that has put them there, also where that was killed."""

import os
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from apfex.streams import _spool, spool_folder

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


MOUNTS = """\
/dev/sda / ext4 rw 0 0
tmpfs /tmp tmpfs rw,size=4k 0 0
/dev/sdb /tmp/disk xfs rw 0 0
/dev/sdc /over ext4 rw 0 0
tmpfs /over tmpfs rw 0 0
tmpfs /with\\040space tmpfs rw 0 0
broken
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/", "ext4"),
        ("/tmp", "tmpfs"),
        ("/tmp/more/of/it", "tmpfs"),
        ("/tmp/disk/x", "xfs"),
        ("/tmpfs", "ext4"),
        ("/over", "tmpfs"),
        ("/with space/x", "tmpfs"),
    ],
)
def test_the_innermost_and_last_mount_is_that_of_a_folder(folder, kind):
    assert _spool.kind_of_mount(MOUNTS, Path(folder)) == kind
    assert _spool.kind_of_mount("", Path(folder)) is None


def test_a_folder_in_memory_is_told_once(tmp_path, monkeypatch):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\ntmpfs {tmp_path.resolve()} tmpfs rw 0 0\n")
    monkeypatch.setattr(_spool, "_MOUNTS", mounts)
    said = r"kept in memory and not on a disk: .*StreamSettings\(folder=.*TMPDIR"
    with pytest.warns(UserWarning, match=said):
        use(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        use(tmp_path)
        mounts.write_text(f"/dev/sda / ext4 rw 0 0\ntmpfs {tmp_path}/other tmpfs rw 0 0\n")
        _spool._warn_once.cache_clear()
        use(tmp_path)
        monkeypatch.setattr(_spool, "_MOUNTS", tmp_path / "none")
        use(tmp_path)
