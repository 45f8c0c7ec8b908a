"""The embedded engine: DuckDB with limits that leave room for others."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apfex.files import clean_up_left, new_held_folder, remove_held_folder
from apfex.memory import usable_memory

_SHARE = 0.5
"""Of the memory of machine or container; what does not fit goes to the temporary folder."""
_PREFIX = "apfex-duckdb-"


def connect_duckdb(path: str | None = None) -> tuple[Any, Callable[[], None]]:
    """A connection of Ibis, and what closes it.

    It takes half of the memory at most and all cores that this process may use. Rows that do not
    fit go to a folder of its own, which is removed with it.
    """
    parent = Path(tempfile.gettempdir())
    clean_up_left(parent, _PREFIX, stacklevel=2)
    folder, descriptor = new_held_folder(parent, _PREFIX)
    try:
        backend = _connect(path, folder)
    except BaseException:
        remove_held_folder(folder, descriptor)
        raise
    # also where nobody closes it, at the latest when Python ends
    remove = weakref.finalize(backend, _remove, os.getpid(), folder, descriptor)

    def close() -> None:
        backend.disconnect()
        remove()

    return backend, close


def _remove(owner: int, folder: Path, descriptor: int | None) -> None:
    if os.getpid() == owner:  # and not a process that was forked from it
        remove_held_folder(folder, descriptor)


def _connect(path: str | None, folder: Path) -> Any:
    import ibis

    settings: dict[str, Any] = {
        "memory_limit": f"{max(256, int(_SHARE * usable_memory() / 2**20))}MiB",
        "threads": _cores(),
        "temp_directory": str(folder),
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
