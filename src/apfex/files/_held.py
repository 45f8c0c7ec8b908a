"""Folders of a process: held while they are used, and removed by the next if it was killed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove or rename what is open
    fcntl = None


def new_held_folder(parent: Path, prefix: str) -> tuple[Path, int | None]:
    """A new folder, which no other user may enter, and what holds it.

    Parameters
    ----------
    parent : Path
    prefix : str
        Of its name; eight characters follow that nobody can foresee.

    Returns
    -------
    Path
    int or None
        For :func:`remove_held_folder`.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    descriptor = hold(folder, wait=True)
    while descriptor is None and not folder.exists():  # cleaned up before it was held
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        descriptor = hold(folder, wait=True)
    return folder, descriptor


def remove_held_folder(folder: Path, descriptor: int | None) -> None:
    """Remove a folder with all that is in it, and hold it no longer."""
    shutil.rmtree(folder, ignore_errors=True)
    if descriptor is not None:
        os.close(descriptor)


def clean_up_left(parent: Path, prefix: str, stacklevel: int) -> None:
    """Remove folders of this user that nobody holds any more; links are left alone."""
    gone, name = [], re.compile(rf"{prefix}[a-z0-9_]{{8}}", re.ASCII)
    with suppress(OSError):
        gone = [one for one in sorted(parent.iterdir()) if name.fullmatch(one.name)]
    gone = [one.name for one in gone if _is_removed(one)]
    if gone:
        warnings.warn(
            f"A process that was stopped has left {', '.join(gone)} in {str(parent)!r}, with rows "
            "that nobody needs; it is removed.",
            stacklevel=stacklevel + 1,
        )


def _is_removed(folder: Path) -> bool:
    descriptor = hold(folder, wait=False)
    if descriptor is None:
        return False
    try:
        if os.fstat(descriptor).st_uid != os.getuid():
            return False
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()
    finally:
        os.close(descriptor)


def hold(place: Path, *, wait: bool) -> int | None:
    """Lock a file or folder; None where another process has, and where it is a link or gone.

    Also where it cannot be locked. A pipe of that name is not waited for.
    """
    if fcntl is None:
        return None
    try:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(place, flags)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        if os.path.samestat(os.fstat(descriptor), os.lstat(place)):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None
