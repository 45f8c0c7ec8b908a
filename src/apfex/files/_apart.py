"""Files that are read as one table, each of them once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress


def check_apart(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse a file that comes twice by two names, as a link beside what it leads to.

    Its rows would count twice: intervals would be too narrow, and people of the test rows would be
    among those who are trained on.

    Examples
    --------
    >>> check_apart([os.curdir, os.path.abspath(os.curdir)])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: /... is the same file as ., so that its rows would count twice; name one of them.
    """
    known: dict[tuple[int, int], str] = {}
    for path in paths:
        with suppress(OSError):  # what is not there is told by whoever opens it
            found = os.stat(path)
            first = known.setdefault((found.st_dev, found.st_ino), os.fspath(path))
            if first != os.fspath(path) and found.st_ino:
                raise ValueError(
                    f"{os.fspath(path)} is the same file as {first}, so that its rows would count "
                    "twice; name one of them."
                )
