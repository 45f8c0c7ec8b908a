"""Two folders change names at once; who reads meanwhile sees the one or the other, whole."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from apfex.persistence._drafts import standing

_T = TypeVar("_T")
_HERE, _EXCHANGE, _SWAP = -100, 2, 2
"""``AT_FDCWD`` and ``RENAME_EXCHANGE`` of Linux, ``RENAME_SWAP`` of macOS."""
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
"""What systems and disks say that do not know it."""


def exchange(one: Path, other: Path) -> bool:
    """Let two files or folders that are there change names; False where the system cannot.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     one, other = Path(folder) / "one", Path(folder) / "other"
    ...     _ = one.write_text("1"), other.write_text("2")
    ...     ("1" if exchange(one, other) else "2") == other.read_text()
    True
    """
    rename = _find()
    if rename is None:
        return False
    if rename(os.fsencode(one), os.fsencode(other)) == 0:
        return True
    found = ctypes.get_errno()
    if found in _CANNOT:
        return False
    raise OSError(found, os.strerror(found), str(other))


def _find() -> Callable[[bytes, bytes], int] | None:
    """The system's own function, if it has one."""
    if sys.platform not in ("linux", "darwin"):
        return None
    library: Any = ctypes.CDLL(None, use_errno=True)
    name = "renameat2" if sys.platform == "linux" else "renamex_np"
    if not hasattr(library, name):
        return None
    if name == "renamex_np":
        return lambda one, other: library.renamex_np(one, other, _SWAP)
    return lambda one, other: library.renameat2(_HERE, one, _HERE, other, _EXCHANGE)


def read_steadily(folder: Path, read: Callable[[Path], _T]) -> _T:
    """Read a folder, once more if it was replaced in the meantime."""
    while True:
        seen = _identity(folder)
        try:
            return read(standing(folder))
        except (OSError, ValueError):
            if _identity(folder) == seen:
                raise


def _identity(folder: Path) -> tuple[int, ...] | None:
    """What differs between a folder and the one that replaces it."""
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns
