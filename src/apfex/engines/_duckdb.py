"""The embedded engine: DuckDB with limits that leave room for others."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

_CGROUP = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
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


def usable_memory() -> int:
    """Bytes that this process may use, by the machine, its container and its own limit."""
    found = []
    with suppress(ImportError):  # not on every system
        import resource

        own = resource.getrlimit(resource.RLIMIT_AS)[0]
        found += [own] if own != resource.RLIM_INFINITY else []
    with suppress(AttributeError, ValueError, OSError):  # not on every system
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in _CGROUP:
        with suppress(OSError, ValueError):
            found.append(int(Path(file).read_text()))
    return min(found, default=4 * 2**30)
