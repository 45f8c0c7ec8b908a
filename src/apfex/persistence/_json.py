"""JSON for people and machines: strict, and whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from apfex.memory import free_memory, in_bytes, is_too_much
from apfex.persistence._files import write_text_atomically
from apfex.plain import jsonable
from apfex.strict_json import read_strict_json

_COPIES = 3
"""Of a file that are in memory while it is read: its bytes, and what is made of them."""


def write_json(path: str | os.PathLike[str], value: Any) -> Path:
    """Write a value as JSON, whole or not at all; see :func:`write_text_atomically`.

    Parameters
    ----------
    path : str or path
    value : mappings, sequences, text, numbers, None
        Numpy's arrays and numbers become plain ones, and paths and dates text. What is not finite
        or missing becomes null: JSON has no other word for it. Use :func:`pack` to have it back
        exactly.

    Returns
    -------
    Path
        Of the file.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = write_json(Path(folder) / "run.json", {"gap": np.float64(0.25), "p": np.nan})
    ...     read_json(path)
    {'gap': 0.25, 'p': None}
    """
    text = json.dumps(jsonable(value, strict=True), indent=2, allow_nan=False, ensure_ascii=False)
    return write_text_atomically(path, text + "\n")


def read_json(path: str | os.PathLike[str], *, follow: bool = True) -> Any:
    """Read a JSON file; what is wrong with it is told in a sentence.

    Parameters
    ----------
    path : str or path
    follow : bool
        Whether it may be a link.

    Returns
    -------
    dict, list, str, int, float, bool or None

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     read_json(write_json(Path(folder) / "list.json", (1, "a")))
    [1, 'a']
    """
    return parse_json(read_bytes(Path(path), follow=follow), Path(path))


def read_bytes(path: Path, sha256: str | None = None, *, follow: bool = True) -> bytes:
    """All of an ordinary file that there is memory for, and no more than was looked at.

    Where a sha256 is given, another file is refused before it is held in memory. ``follow`` is
    False for a file of a folder that others have made: a link is refused, whenever it came there.
    """
    if not path.is_file():
        found = "something else" if path.exists() else "nothing"
        raise FileNotFoundError(f"{str(path)!r} must be a file, got {found} of this name.")
    try:
        with open(path, "rb", opener=None if follow else _no_link) as file:
            before = os.fstat(file.fileno())
            check_room(path, before.st_size)
            if sha256 is not None:
                if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                    raise ValueError(
                        f"{str(path)!r} is damaged: its sha256 is not that of the manifest; copy "
                        "or save the folder again."
                    )
                file.seek(0)
            data = file.read(before.st_size)
            _check_unchanged(path, before, os.fstat(file.fileno()), len(data))
            return data
    except OSError as error:
        told = type(error)(f"{str(path)!r} could not be read: {error.strerror or error}.")
        told.errno = error.errno
        raise told from error


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def _check_unchanged(path: Path, before: os.stat_result, now: os.stat_result, size: int) -> None:
    """Refuse a file that somebody wrote to while it was read: nobody has looked at what came."""
    if (before.st_size, before.st_mtime_ns, size) != (now.st_size, now.st_mtime_ns, now.st_size):
        raise ValueError(
            f"{str(path)!r} was changed while it was read; read it again when nobody writes it."
        )


def check_room(path: Path, size: int) -> None:
    """Refuse files that cannot be held: what it says is read from one copy of it into another."""
    if is_too_much(_COPIES * size):
        raise ValueError(
            f"{str(path)!r} must fit into memory, got {in_bytes(size)} where "
            f"{in_bytes(free_memory())} are free and reading takes about {_COPIES} times its size; "
            "if you trust who made it, read it on a machine with more memory."
        )


def parse_json(data: bytes, path: Path) -> Any:
    """The value of a JSON file; see :func:`apfex.strict_json.read_strict_json`."""
    try:
        return read_strict_json(data)
    except ValueError as error:
        raise ValueError(
            f"{str(path)!r} must be JSON, got something else ({error}); it may be damaged or cut "
            "off: copy or write it again."
        ) from error
