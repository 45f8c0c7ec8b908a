"""Folders for rows that do not fit into memory: held while they are used, and cleaned if left."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apfex.held import clean_up_left, new_held_folder, remove_held_folder

_PREFIX = "apfex-stream-"


@contextmanager
def spool_folder(within: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """A folder for what does not fit into memory; it is removed at the end, also after an error.

    One that was left by a process that was killed is removed by the next, which says so.
    """
    if within is not None and not Path(within).is_dir():
        raise ValueError(
            f"folder of streaming must be a folder that exists, got {os.fspath(within)!r}."
        )
    parent = Path(tempfile.gettempdir() if within is None else within)
    clean_up_left(parent, _PREFIX, stacklevel=3)
    folder, descriptor = new_held_folder(parent, _PREFIX)
    try:
        yield folder
    finally:
        remove_held_folder(folder, descriptor)
