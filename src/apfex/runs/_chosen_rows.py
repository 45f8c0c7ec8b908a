"""Which rows of a table a run is of, in words, and whether two runs may have rows in common."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal

from apfex.plain import printable


def condition_in_words(where: Mapping[str, Any]) -> str:
    """A condition as one reads it.

    Examples
    --------
    >>> condition_in_words({"month": ["5", "6"], "sex": "F"})
    'month = 5 or 6 and sex = F'
    """
    rules = (f"{column} = {' or '.join(map(str, _several(v)))}" for column, v in where.items())
    return printable(" and ".join(rules))


def rows_in_words(record: Mapping[str, Any]) -> str:
    """The data of a run, with table or sheet and condition where it was asked for these."""
    said = printable(record["data"]["name"])
    places = [record["settings"].get(name) for name in ("table", "sheet")]
    said += "".join(f" ({printable(str(place))})" for place in places if place is not None)
    where = _where(record)
    return f"{said}, where {condition_in_words(where)}" if where else said


def common_rows(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> Literal["all", "some", "no"]:
    """Which rows two runs have in common, by their records: all, perhaps some, or none.

    Conditions on one column without a value in common choose different rows. What may be the same
    number or day in other words counts as a value in common.
    """
    if earlier["data"]["sha256"] != now["data"]["sha256"]:
        return "no"
    for place in ("table", "sheet"):
        ours, theirs = (record["settings"].get(place) for record in (earlier, now))
        if ours != theirs and None not in (ours, theirs):  # None is the only one
            return "no"
    ours, theirs = (
        {column: set(map(str, _several(values))) for column, values in _where(record).items()}
        for record in (earlier, now)
    )
    if ours == theirs:
        return "all"
    apart = any(
        set(map(_read, ours[column])).isdisjoint(map(_read, theirs[column]))
        for column in ours.keys() & theirs.keys()
    )
    return "no" if apart else "some"


def _where(record: Mapping[str, Any]) -> Mapping[str, Any]:
    found = record["settings"].get("where")
    return found if isinstance(found, Mapping) else {}


def _several(values: Any) -> list[Any]:
    return list(values) if isinstance(values, list | tuple) else [values]


def _read(value: str) -> str:
    """A value as some column may hold it: 05 is 5, and True true."""
    text = value.strip()
    for read in (float, datetime.fromisoformat):
        with suppress(ValueError):
            return str(read(text))
    return text.casefold()
