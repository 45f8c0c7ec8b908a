"""Plain values: text that a terminal may show, and values that JSON can hold.

Nothing heavy is imported, as the command line prints its help with it.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any

__all__: list[str] = []

_MOST_DECIMALS = 9

_UNDRAWN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Letters and marks that nothing is drawn for; by their category they are like any other."""
_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"
_HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_IN_USE = re.compile(
    f"(?<=[\u0600-\u109f\u1780-\u18af{_EMOJI}])[\u200c\u200d]|(?<=[{_EMOJI}]\ufe0f)\u200d"
    f"|(?<=[{_EMOJI}])[\ufe0e\ufe0f]|(?<=[{_HAN}])[\ufe00-\ufe0d\U000e0100-\U000e01ef]"
    "|(?<=[\u1820-\u18aa])[\u180b-\u180d\u180f]"
)
"""Joiners, and choices of a form, after signs that they are made for."""


def beside(value: float, bound: float, decimals: int = 3) -> str:
    """A number, with as many decimals as it takes to read on which side of a bound it lies.

    Examples
    --------
    >>> beside(0.0502, 0.05), beside(0.0498, 0.05), beside(0.1234, 0.05), beside(0.05, 0.05)
    ('0.0502', '0.0498', '0.123', '0.050')
    """
    side = _side(value - bound)
    while decimals < _MOST_DECIMALS and _side(round(value, decimals) - bound) != side:
        decimals += 1
    return f"{value:.{decimals}f}"


def _side(difference: float) -> int:
    """-1, 0 or 1; what a sum is off by in floating point is no difference."""
    return 0 if abs(difference) < 10.0**-_MOST_DECIMALS else int(math.copysign(1, difference))


def printable(text: object, most: int | None = None) -> str:
    r"""A name from data for people: what is invisible, or turns the direction, is shown by number.

    That is whatever Unicode counts as a control, a format, unassigned, or a space or line end
    other than the plain space, and what nothing is drawn for. Joiners and choices of a form stay
    after emoji and in scripts that need them. The pages follow the same rule.

    Parameters
    ----------
    text : object
        Shown as ``str`` has it.
    most : int, optional
        Characters beyond which it is cut.

    Examples
    --------
    >>> print(printable("a\nb\x1b[0m"), printable("a long name", 6), printable("F\u00ad"))
    a\nb\x1b[0m a lon… F\xad
    """
    safe = str(text)
    if not (safe.isascii() and safe.isprintable()):
        used = {found.start() for found in _IN_USE.finditer(safe)}
        safe = "".join(
            mark if place in used or _is_drawn(mark) else ascii(mark)[1:-1]
            for place, mark in enumerate(safe)
        )
    return safe if most is None or len(safe) <= most else safe[: most - 1] + "…"


def _is_drawn(mark: str) -> bool:
    return mark.isprintable() and not _UNDRAWN.match(mark)


def told_apart(names: Iterable[object], most: int | None) -> dict[Any, str]:
    """Names for one table, each :func:`printable`; those that would be cut alike stay whole.

    Examples
    --------
    >>> told_apart(["a long name", "a long word", "another long name"], 8)
    {'a long name': 'a long name', 'a long word': 'a long word', 'another long name': 'another…'}
    """
    cut = {name: printable(name, most) for name in dict.fromkeys(names)}
    seen = Counter(cut.values())
    return {name: text if seen[text] == 1 else printable(name) for name, text in cut.items()}


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant.

    Examples
    --------
    >>> nearest("Rase", ["sex", "race"])
    'race'
    """
    by_form: dict[str, str] = {}
    for one in known:
        by_form.setdefault(one.strip().casefold(), one)
    near = get_close_matches(name.strip().casefold(), list(by_form), n=1, cutoff=0.65)
    return by_form[near[0]] if near else None


def listed(names: Sequence[str], most: int = 12) -> str:
    """Some names, and how many more there are.

    Examples
    --------
    >>> listed(["sex", "race", "age"], 2)
    'sex, race and 1 more'
    """
    some = ", ".join(printable(name, 40) for name in names[:most])
    return some if len(names) <= most else f"{some} and {len(names) - most:,} more"


def jsonable(value: Any, *, strict: bool = False, where: str = "value") -> Any:
    """Only what JSON has a word for: a number that is missing or not finite becomes None.

    Parameters
    ----------
    value : mappings, sequences, arrays, text, numbers, dates, paths, None
        Numpy's and pandas' values become Python's own.
    strict : bool
        Whether a value of another kind is refused; it becomes text otherwise.
    where : str
        What the value is, for messages.

    Examples
    --------
    >>> import numpy as np
    >>> jsonable({"gap": np.float64(0.25), "lower": np.nan, "rows": np.array([1, 2])})
    {'gap': 0.25, 'lower': None, 'rows': [1, 2]}
    """
    if isinstance(value, Mapping):
        plain = {
            str(key): jsonable(part, strict=strict, where=f"{where}[{key!r}]")
            for key, part in value.items()
        }
        if len(plain) < len(value):
            raise ValueError(f"{where} must have names that differ as text, got {list(value)}.")
        return plain
    if hasattr(value, "tolist"):  # of numpy or pandas
        is_time = getattr(value.dtype, "kind", "O") in "mM"
        value = (value.astype(str) if is_time else value).tolist()
    if isinstance(value, list | tuple):
        return [
            jsonable(part, strict=strict, where=f"{where}[{place}]")
            for place, part in enumerate(value)
        ]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or _is_missing(value):
        return None
    if isinstance(value, str | int | bool):
        return value
    if strict and not (isinstance(value, PurePath) or hasattr(value, "isoformat")):
        raise TypeError(
            f"{where} must be a mapping, a sequence, text, a number or None to be written as JSON, "
            f"got {type(value).__name__}."
        )
    return str(value)


def _is_missing(value: object) -> bool:
    """Whether it is the missing value of pandas, which is not imported for that."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)
