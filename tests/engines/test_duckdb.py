"""The embedded engine leaves room for others."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import duckdb
import pytest

from apfex import memory
from apfex.engines import _duckdb


def test_limits_are_those_of_machine_and_container(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    limit.write_text(str(2**30))
    monkeypatch.setattr(memory, "_CGROUPS", ((str(limit), str(tmp_path / "none")),))
    backend, close = _duckdb.connect_duckdb()
    found = dict(backend.con.execute("SELECT name, value FROM duckdb_settings()").fetchall())
    close()
    assert found["memory_limit"] == "512.0 MiB"
    assert found["temp_directory"].startswith(tempfile.gettempdir())
    assert 1 <= int(found["threads"]) <= (os.cpu_count() or 1)


def test_a_container_without_a_limit_has_that_of_the_machine(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    limit.write_text("max\n")
    monkeypatch.setattr(memory, "_CGROUPS", ((str(limit), str(limit)),))
    assert memory.usable_memory() > 2**28


SPILL = "CREATE TEMP TABLE t AS SELECT range AS a, md5(range::text) AS b FROM range(1_000_000)"
HOLD = f"""
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from apfex.engines._duckdb import connect_duckdb
backend, close = connect_duckdb()
backend.con.execute("SET memory_limit = '30MB'")
backend.con.execute("{SPILL}")
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The temporary folder, which other users share."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "shared"))
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


@pytest.mark.parametrize("stored", [True, False])
def test_rows_spill_into_a_folder_that_is_nobody_elses(place, tmp_path, stored):
    path = str(tmp_path / "t.duckdb")
    duckdb.connect(path).close()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (place / f"apfex-duckdb-{os.getpid()}").symlink_to(elsewhere)
    backend, close = _duckdb.connect_duckdb(path if stored else None)
    _, close_other = _duckdb.connect_duckdb()
    backend.con.execute("SET memory_limit = '30MB'")
    backend.con.execute(SPILL)
    own = [one for one in place.iterdir() if not one.is_symlink()]
    assert len(own) == 2
    assert {stat.S_IMODE(one.stat().st_mode) for one in own} == {0o700}
    assert sorted(len(list(one.iterdir())) > 0 for one in own) == [False, True]
    assert not list(elsewhere.iterdir())
    close()
    close_other()
    assert [one.name for one in place.iterdir()] == [f"apfex-duckdb-{os.getpid()}"]


def test_a_folder_goes_with_a_connection_that_is_never_made(place, tmp_path):
    (tmp_path / "t.duckdb").write_text("none")
    with pytest.raises(Exception, match="not a valid DuckDB"):
        _duckdb.connect_duckdb(str(tmp_path / "t.duckdb"))
    assert not list(place.iterdir())


def test_rows_of_a_process_that_was_killed_are_removed_and_named(place):
    command = [sys.executable, "-c", HOLD, str(place)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        (left,) = place.iterdir()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            _duckdb.connect_duckdb()[1]()
        assert list(left.iterdir())
        process.send_signal(signal.SIGKILL)
        process.wait()
    with pytest.warns(UserWarning, match=f"that was stopped has left {left.name} in"):
        _duckdb.connect_duckdb()[1]()
    assert not Path(left).exists()
