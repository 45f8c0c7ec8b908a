"""Folders for rows that do not fit into memory: held while they are used, and cleaned if left."""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from apfex.files import clean_up_left, new_held_folder, remove_held_folder

_PREFIX = "apfex-stream-"
_MOUNTS = Path("/proc/mounts")
"""What is mounted where, on Linux; nothing of the kind elsewhere."""


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
    _warn_of_memory(parent)
    clean_up_left(parent, _PREFIX, stacklevel=3)
    folder, descriptor = new_held_folder(parent, _PREFIX)
    try:
        yield folder
    finally:
        remove_held_folder(folder, descriptor)


def kind_of_mount(mounts: str, folder: Path) -> str | None:
    r"""The kind of file system that a folder is on, by the text of ``/proc/mounts``.

    Of several that are mounted above the folder the innermost counts, of those at one place the
    last, which covers the others.

    Examples
    --------
    >>> mounts = "/dev/sda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n"
    >>> kind_of_mount(mounts, Path("/tmp/x")), kind_of_mount(mounts, Path("/home"))
    ('tmpfs', 'ext4')
    """
    found, depth = None, 0
    for line in mounts.splitlines():
        _, place, kind, *_ = [*line.split(" "), "", "", ""]
        path = Path(re.sub(r"\\([0-7]{3})", lambda mark: chr(int(mark[1], 8)), place))
        if kind and folder.is_relative_to(path) and len(path.parts) >= depth:
            found, depth = kind, len(path.parts)
    return found


def _warn_of_memory(parent: Path) -> None:
    with suppress(OSError):
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        if kind_of_mount(mounts, parent.resolve()) in ("tmpfs", "ramfs"):
            _warn_once(str(parent))


@cache
def _warn_once(parent: str) -> None:
    warnings.warn(
        f"Rows of a stream are kept in memory and not on a disk: {parent!r} is of the kind tmpfs. "
        "Name a folder on a disk, StreamSettings(folder=...), or set the environment variable "
        "TMPDIR, which holds for all programs.",
        stacklevel=5,
    )
