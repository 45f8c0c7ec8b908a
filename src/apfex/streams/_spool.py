"""Folders for rows that do not fit into memory: held while they are used, and cleaned if left."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a folder of which a file is open
    fcntl = None

_PREFIX = "apfex-stream-"
_MOUNTS = Path("/proc/mounts")
"""What is mounted where, on Linux; nothing of the kind elsewhere."""
_NAME = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}", re.ASCII)


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
    _clean_up(parent)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    descriptor = _hold(folder, wait=True)
    while descriptor is None and not folder.exists():  # cleaned up before it was held
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        descriptor = _hold(folder, wait=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


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


def _clean_up(parent: Path) -> None:
    """Remove folders of this user that nobody holds any more; links are left alone."""
    gone = []
    with suppress(OSError):
        gone = [one for one in sorted(parent.iterdir()) if _NAME.fullmatch(one.name)]
    gone = [one.name for one in gone if _is_removed(one)]
    if gone:
        warnings.warn(
            f"A process that was stopped has left {', '.join(gone)} in {str(parent)!r}, with rows "
            "that nobody needs; it is removed.",
            stacklevel=4,
        )


def _is_removed(folder: Path) -> bool:
    descriptor = _hold(folder, wait=False)
    if descriptor is None:
        return False
    try:
        if os.fstat(descriptor).st_uid != os.getuid():
            return False
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()
    finally:
        os.close(descriptor)


def _hold(folder: Path, *, wait: bool) -> int | None:
    """Lock a folder; None where another process has, or where it is a link, gone, or no folder."""
    if fcntl is None:
        return None
    try:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY
        descriptor = os.open(folder, flags)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        if os.path.samestat(os.fstat(descriptor), os.lstat(folder)):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None
