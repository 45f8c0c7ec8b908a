"""The embedded engine: DuckDB with limits that leave room for others."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from apfex.memory import usable_memory

_SHARE = 0.5
"""Of the memory of machine or container; what does not fit goes to the temporary folder."""


def connect_duckdb(path: str | None = None) -> Any:
    """A connection of Ibis: half of the memory at most, all cores that this process may use."""
    import ibis

    settings: dict[str, Any] = {
        "memory_limit": f"{max(256, int(_SHARE * usable_memory() / 2**20))}MiB",
        "threads": _cores(),
        "temp_directory": str(Path(tempfile.gettempdir()) / f"apfex-duckdb-{os.getpid()}"),
        "preserve_insertion_order": False,
    }
    if path is not None:
        settings["read_only"] = True
    backend = ibis.duckdb.connect(path or ":memory:", **settings)
    if path is not None:  # a view of others may say that it is a file, or lies in the network
        backend.con.execute("SET enable_external_access = false")
    return backend


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
