"""What callers pass, checked once: the kind of an argument before its value.

A comparison such as ``0 < x`` says of text only that it "is not supported between instances of
'int' and 'str'"; what is asked here first names the argument.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apfex.plain import nearest

if TYPE_CHECKING:
    import numpy as np

__all__: list[str] = []

_LONGEST_NAME, _LONGEST_PATH = 255, 4_095
"""Bytes that systems take."""
_SHOWN = 60


def require_numbers(**given: Any) -> None:
    """Refuse what is no number, by its name; None is for the caller to judge.

    Examples
    --------
    >>> require_numbers(power="high")
    Traceback (most recent call last):
    TypeError: power must be a number, got 'high'.
    """
    for name, value in given.items():
        if isinstance(value, bool | str | bytes | complex) or not hasattr(value, "__float__"):
            raise TypeError(f"{name} must be a number, got {value!r}.")


def require_finite(**given: Any) -> None:
    """Refuse what is no number, or none that anything can be compared with, by its name.

    Examples
    --------
    >>> require_finite(threshold=float("nan"))
    Traceback (most recent call last):
    ValueError: threshold must be a finite number, got nan.
    """
    require_numbers(**given)
    for name, value in given.items():
        if not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number, got {value}.")


def require_whole(**given: Any) -> None:
    """Refuse what is no whole number, by its name; ``True`` is none.

    Examples
    --------
    >>> require_whole(patience=2.5)
    Traceback (most recent call last):
    TypeError: patience must be a whole number, got 2.5.
    """
    for name, value in given.items():
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{name} must be a whole number, got {value!r}.")


def require_kind(name: str, value: Any, kind: type | tuple[type, ...], words: str) -> None:
    """Refuse another kind of object than ``words`` say.

    Examples
    --------
    >>> require_kind("audit", 3, dict, "an Audit, from apfex.audit")
    Traceback (most recent call last):
    TypeError: audit must be an Audit, from apfex.audit, got int.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {words}, got {type(value).__name__}.")


def require_flags(**given: Any) -> None:
    """Refuse what is neither True nor False: the text "no" would count as True.

    Examples
    --------
    >>> require_flags(group_thresholds="no")
    Traceback (most recent call last):
    TypeError: group_thresholds must be True or False, got 'no'.
    """
    for name, value in given.items():
        if type(value).__name__ not in ("bool", "bool_"):  # Python's and numpy's
            raise TypeError(f"{name} must be True or False, got {value!r}.")


def as_path(name: str, value: Any) -> Path:
    """A path, from text or what stands for one.

    Examples
    --------
    >>> as_path("folder", 3)
    Traceback (most recent call last):
    TypeError: folder must be a path, got int.
    """
    check_path(name, value)
    return Path(value)


def check_path(name: str, value: Any) -> None:
    r"""Refuse what no file of this system can be called; whether there is one is not asked.

    Examples
    --------
    >>> check_path("out", "people\0.csv")
    Traceback (most recent call last):
    ValueError: out must be a path that the system takes, got a NUL character in 'people\x00.csv'.
    """
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise TypeError(f"{name} must be a path, got {type(value).__name__}.")
    text, found = os.fspath(value), None
    if not text:
        raise ValueError(f"{name} must be a path, got an empty one; the current folder is '.'.")
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError as error:
        encoded, found = b"", f"the character {error.object[error.start]!r} in"
    if b"\0" in encoded:
        found = "a NUL character in"
    elif b"://" in encoded:
        found = None  # an address, of any length
    elif len(encoded) > _LONGEST_PATH:
        found = f"{len(encoded):,} bytes, more than {_LONGEST_PATH:,}, in"
    elif max(map(len, encoded.split(os.fsencode(os.sep)))) > _LONGEST_NAME:
        found = f"a name of more than {_LONGEST_NAME} bytes in"
    if found is not None:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        raise ValueError(f"{name} must be a path that the system takes, got {found} {shown!r}.")


def as_names(name: str, value: Any) -> tuple[Any, ...]:
    """One name, or several, as a tuple.

    Examples
    --------
    >>> as_names("by", "sex"), as_names("by", ["sex", "race"])
    (('sex',), ('sex', 'race'))
    """
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        raise TypeError(f"{name} must be a name or several, got {value!r}.")
    return tuple(value)


def as_generator(random_state: Any) -> np.random.Generator:
    """Random numbers of a seed, or of a generator that is given.

    Examples
    --------
    >>> as_generator("seed")
    Traceback (most recent call last):
    ValueError: random_state must be None, a whole number from 0 on or a Generator, got 'seed'.
    """
    import numpy as np

    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "random_state must be None, a whole number from 0 on or a Generator, got "
            f"{random_state!r}."
        ) from error


def meant(found: Any, known: Iterable[Any]) -> str:
    """A question after an error of an unknown name, where one that is known is near.

    Examples
    --------
    >>> meant("eo", ["dp", "tpr"]), meant("dpp", ["dp", "tpr"])
    ('', " Did you mean 'dp'?")
    """
    near = nearest(found, [str(one) for one in known]) if isinstance(found, str) else None
    return f" Did you mean {near!r}?" if near else ""
