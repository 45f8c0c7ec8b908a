"""Files that are read more than once, and told apart by what they hold, must stay as they are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


@contextmanager
def unchanged(paths: Iterable[str | os.PathLike[str]]) -> Iterator[None]:
    """Refuse files that change meanwhile: what was counted would be of neither of the two.

    Examples
    --------
    >>> with unchanged([__file__]):
    ...     pass
    """
    before = {os.fspath(path): _stamp(path) for path in paths}
    yield
    for path, stamp in before.items():
        if _stamp(path) != stamp:
            raise ValueError(f"{path} changed while it was read; read it again, or read a copy.")


def _stamp(path: str | os.PathLike[str]) -> tuple[int, ...] | None:
    """What differs once a file is written or replaced; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
