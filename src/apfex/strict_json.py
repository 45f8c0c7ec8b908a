"""JSON that anybody may have written: read in one way, or refused before it takes a memory."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from apfex.memory import free_memory, in_bytes, is_too_much
from apfex.plain import printable

__all__: list[str] = []

MOST_NESTED = 64
"""Levels of JSON within each other beyond which a file is refused; ours have a dozen."""

_SIZES = {"[": 90, "{": 230, ",": 60, ":": 100}
"""Bytes that Python takes at most for a list, an object, an item and a member."""
_PARTS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
"""Text, also one that does not end, and brackets."""


def read_strict_json(data: bytes | str) -> Any:
    """The value of JSON that anybody may have written; a ValueError says why it is refused.

    It must be UTF-8 without a mark, a name may occur once in an object, numbers are finite, and
    nesting is checked before anything is built.

    Examples
    --------
    >>> read_strict_json(b'{"gap": 0.25}')
    {'gap': 0.25}
    >>> read_strict_json('{"gap": 0.25, "gap": 0.5}')
    Traceback (most recent call last):
    ValueError: the name 'gap' occurs twice in one object
    """
    text = data.decode() if isinstance(data, bytes | bytearray) else data
    _check_room(text)
    check_nesting(text)
    return json.loads(
        text, object_pairs_hook=_object, parse_constant=_no_number, parse_float=_finite
    )


def _check_room(text: str) -> None:
    """Refuse JSON whose values would take more memory than there is; two characters make a list."""
    needed = 2 * len(text) + sum(text.count(mark) * size for mark, size in _SIZES.items())
    if is_too_much(needed):
        raise ValueError(
            f"its values take about {in_bytes(needed)} of memory, and {in_bytes(free_memory())} "
            "are free"
        )


def check_nesting(text: str, most: int = MOST_NESTED) -> None:
    """Refuse JSON that is nested deeper than so many levels, before anybody builds it."""
    level = 0
    for found in _PARTS.finditer(text):
        if found[0] in "[{":
            level += 1
            if level > most:
                raise ValueError(f"it is nested deeper than {most} levels")
        elif found[0] in "]}":
            level -= 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        name = next(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)
        raise ValueError(f"the name {printable(name, 40)!r} occurs twice in one object")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{printable(text, 40)} is beyond all numbers")
    return number


_KINDS: dict[str, Any] = {"str": str, "bool": bool, "int": int, "float": (int, float)}


def check_record(kind: Any, values: Mapping[str, Any]) -> None:
    """Refuse values that the fields of a dataclass are not made for; others are not looked at.

    Parameters
    ----------
    kind : dataclass
        Fields of type ``str``, ``bool``, ``int``, ``float`` and tuples of one of them are checked;
        a scalar of numpy counts as Python's own.
    values : mapping from names of fields to values

    Examples
    --------
    >>> from dataclasses import make_dataclass
    >>> check_record(make_dataclass("Point", [("error", "float")]), {"error": "low"})
    Traceback (most recent call last):
    ValueError: error must be float, got 'low'
    """
    for field in fields(kind):
        hint = str(field.type)
        inner = hint.removeprefix("tuple[").removesuffix(", ...]")
        if field.name not in values or inner not in _KINDS:
            continue
        value = values[field.name]
        if inner != hint and not isinstance(value, tuple):
            raise ValueError(f"{field.name} must be {hint}, got {repr(value)[:40]}")
        for part in value if inner != hint else (value,):
            plain: Any = getattr(part, "item", lambda part=part: part)()
            is_odd = isinstance(plain, bool) and inner != "bool"
            if is_odd or not isinstance(plain, _KINDS[inner]):
                raise ValueError(f"{field.name} must be {hint}, got {repr(part)[:40]}")
