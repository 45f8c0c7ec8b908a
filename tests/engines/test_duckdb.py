"""The embedded engine leaves room for others."""

import os
import tempfile

from apfex import memory
from apfex.engines import _duckdb


def test_limits_are_those_of_machine_and_container(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    limit.write_text(str(2**30))
    monkeypatch.setattr(memory, "_CGROUPS", ((str(limit), str(tmp_path / "none")),))
    backend = _duckdb.connect_duckdb()
    found = dict(backend.con.execute("SELECT name, value FROM duckdb_settings()").fetchall())
    backend.disconnect()
    assert found["memory_limit"] == "512.0 MiB"
    assert found["temp_directory"].startswith(tempfile.gettempdir())
    assert 1 <= int(found["threads"]) <= (os.cpu_count() or 1)


def test_a_container_without_a_limit_has_that_of_the_machine(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    limit.write_text("max\n")
    monkeypatch.setattr(memory, "_CGROUPS", ((str(limit), str(limit)),))
    assert memory.usable_memory() > 2**28
