"""Which rows of a table are meant."""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime
from functools import reduce
from typing import Any

import numpy as np

from apfex.engines._open import EngineTable
from apfex.plain import listed, printable

_EXACT = 2**53  # whole numbers below are floats, too
_SHOWN = 8
_MOST_TYPED = 40
"""Values that somebody has written down; of more, as of a range, some may well be lacking."""


def where_of(source: EngineTable, where: Any, grouped: Collection[str] = ()) -> Any:
    """The rows for which a condition holds, as a table of Ibis.

    Parameters
    ----------
    source : EngineTable
    where : mapping, callable, expression of Ibis or None
        A mapping from a column to its value, or to several; None or NaN is a missing value. Text is
        read as what the column holds, and a number as one where all cells of CSV are numbers.
    grouped : names
        Columns that rows are grouped by, without bins: where such a column of CSV is text, as of
        the codes 01 and 1, a value is the cell that has it word for word.
    """
    table = source.table
    if where is None:
        return table
    if isinstance(where, Mapping):
        source.check_files([source.column(name, "where") for name in where])
        rules = (_is_one_of(source, table[n], wanted, n in grouped) for n, wanted in where.items())
        return table.filter(*rules) if where else table
    import ibis

    condition = _condition(source, where)
    if not (isinstance(condition, ibis.Value) and condition.type().is_boolean()):
        raise TypeError(
            "where must map columns to values, or be a condition of Ibis or a function that makes "
            f"one of the table, got {type(where).__name__}."
        )
    condition = _without_nan(source, condition)
    try:
        chosen = table.filter(condition)
    except ibis.IbisError as error:
        raise ValueError(
            "where must be a condition on the table that is audited, got one on another; give a "
            "function of the table, such as `lambda t: t.month == 5`."
        ) from error
    source.check_files(_columns_of(condition, source))
    return chosen


def _condition(source: EngineTable, where: Any) -> Any:
    """What a function or a deferred expression makes of the table; text is no number."""
    import ibis
    from ibis.common.annotations import ValidationError

    is_function = callable(where) and not isinstance(where, ibis.Deferred)
    try:
        made = where(source.table) if is_function else where
        return made.resolve(source.table) if isinstance(made, ibis.Deferred) else made
    except (ibis.IbisError, ValidationError, TypeError, AttributeError) as error:
        said = str(error)
        named = [name for name in source.columns if _says_text(said, name)]
        if not named and "StringColumn" not in said:
            raise
        source.check_files(named)  # one file may be why it is text
        name = named[0] if named else "age"
        every = "every column of CSV is text" if source.format == "csv" else "the column is text"
        raise TypeError(
            f"where must compare text with text, got a condition that needs a number ({said}); "
            f"{every} in {source.name}, so make a number of it: t.{name}.cast('float64')."
        ) from error


def _without_nan(source: EngineTable, condition: Any) -> Any:
    """A condition in which NaN is a missing value: engines take it for the largest number."""
    from ibis.expr.operations import Field, IsNan, IsNull

    table = source.table.op()

    def is_column(node: Any) -> bool:
        is_own = isinstance(node, Field) and node.rel == table
        return is_own and node.to_expr().type().is_floating()

    def known(node: Any, parts: Any) -> Any:
        if isinstance(node, IsNan) and is_column(node.arg):
            return IsNull(parts["arg"])
        if is_column(node):
            column = node.to_expr()
            return source.lacks(column).ifelse(None, column).op()
        return node.__recreate__(parts) if parts else node

    return condition.op().replace(known).to_expr()


def _says_text(said: str, name: str) -> bool:
    """Whether an error of Ibis speaks of a column as text."""
    return re.search(rf"(?<!\w){re.escape(name)}:string", said) is not None


def _columns_of(condition: Any, source: EngineTable) -> list[str]:
    """The columns that a condition needs."""
    from ibis.expr.operations import Field

    named = {field.name for field in condition.op().find(Field)}
    return [name for name in source.columns if name in named]


def no_match(source: EngineTable, where: Any) -> ValueError:
    """What to say where no row is chosen: the condition, and the values that its columns have."""
    if not isinstance(where, Mapping):
        return ValueError(
            f"where must choose rows of {source.name}, got a condition that none has."
        )
    there = "; ".join(f"{name} has {_values(source, name)}" for name in where)
    together = " together" if len(where) > 1 else ""
    wanted = ", ".join(f"{str(name)!r}: {_asked(value)}" for name, value in where.items())
    return ValueError(
        f"where must choose rows of {source.name}, got {{{wanted}}}, which no row has{together}: "
        f"{there}."
    )


def _values(source: EngineTable, name: str) -> str:
    """The values of a column, as many as one reads, those with the most rows first."""
    import ibis

    column = source.key(name)
    counted = source.table.group_by(value=column).aggregate(rows=ibis._.count())
    order = [ibis.desc("rows"), ibis.asc("value")]
    found = source.fetch(counted.order_by(order).limit(_SHOWN + 1))["value"].to_pylist()
    said = listed([_shown(value) for value in found[:_SHOWN]]) if found else "no values"
    return f"{said} and more" if len(found) > _SHOWN else said


def _asked(wanted: Any) -> str:
    """What was asked for, as many values as one reads."""
    if isinstance(wanted, list | tuple):
        return f"[{listed([_shown(value) for value in wanted])}]"
    return _shown(wanted)


def _shown(value: Any) -> str:
    """A value in a message; a time as it may be asked for."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC)
    return str(value) if isinstance(value, date) else printable(repr(value), 40)


def _is_one_of(source: EngineTable, column: Any, wanted: Any, grouped: bool) -> Any:
    is_typed = isinstance(wanted, list | tuple | set)
    wanted = wanted.tolist() if hasattr(wanted, "tolist") else wanted  # an array or a series
    several = (
        list(wanted) if isinstance(wanted, list | tuple | set | frozenset | range) else [wanted]
    )
    if not several:
        raise ValueError(f"where must name at least one value of {column.get_name()}, got none.")
    each = [_is_value(source, column, value, grouped) for value in several]
    if is_typed and 1 < len(several) <= _MOST_TYPED:
        _warn_of_none(source, column.get_name(), several, each)
    return reduce(operator.or_, each)


def _warn_of_none(source: EngineTable, name: str, wanted: list[Any], each: list[Any]) -> None:
    """Name those of several values that no row has: a misspelled one would be left out silently."""
    asked = source.table.aggregate(**{f"v{at}": one.any() for at, one in enumerate(each)})
    found = source.fetch(asked).to_pylist()[0].values()
    none = [value for value, there in zip(wanted, found, strict=True) if not there]
    if none and len(none) < len(wanted):
        warnings.warn(
            f"where names {listed([repr(value) for value in none])} of {name}, which no row has, "
            f"so that only the rows with its other values are read; {name} has "
            f"{_values(source, name)}.",
            stacklevel=2,
        )


def _is_value(source: EngineTable, column: Any, value: Any, grouped: bool) -> Any:
    from ibis import IbisError

    if value is None or (isinstance(value, float) and value != value):
        return source.lacks(column).ifelse(1, 0) == 1  # else DuckDB skips files by their extremes
    number, truth = (_number(value), _truth(value)) if source.format == "csv" else (None, None)
    if truth is not None and (cells := source.truths(column.get_name())):
        return column.isin([cell for cell, known in cells.items() if known == truth])
    is_code = grouped and number is not None and source.is_text(column.get_name())
    if number is not None and not is_code and _holds_numbers(source, column):
        return source.number(column) == number  # 5 is also written 05 and 5.0
    name = column.get_name()
    column = source.key(name)
    kind = column.type()
    if source.engine == "sqlite" and kind.is_string():
        column = column.concat("")  # else a column may say that a is A
    try:
        return column == _as_stored(value, kind)
    except (IbisError, TypeError, ValueError) as error:
        raise ValueError(
            f"where must name a value of {name} ({kind}), got {printable(repr(value), 80)}."
        ) from error


def _number(value: Any) -> float | None:
    """A number that is equal to no other one as a float."""
    try:
        number = None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
    return number if number is not None and abs(number) < _EXACT else None


def _truth(value: Any) -> bool | None:
    """True or false, also in words."""
    return {"true": True, "false": False}.get(str(value).strip().casefold())


def _holds_numbers(source: EngineTable, column: Any) -> bool:
    """Whether every cell of CSV in a column is a number."""
    lacking = (column.notnull() & source.number(column).isnull()).any()
    return not source.fetch(source.table.aggregate(text=lacking))["text"][0].as_py()


def _as_stored(value: Any, kind: Any) -> Any:
    """A value as the column has it: text for text, and a number that is written as text."""
    import ibis

    if kind.is_timestamp():
        return _moment(value, kind)
    value = value.item() if hasattr(value, "item") else value
    if kind.is_string():
        return ibis.literal(str(value))
    if not isinstance(value, str):
        return ibis.literal(value)
    convert = int if kind.is_integer() else float if kind.is_numeric() else None
    try:
        if kind.is_boolean():
            return ibis.literal({"true": True, "false": False}[value.strip().casefold()])
        return ibis.literal(value).cast(kind) if convert is None else ibis.literal(convert(value))
    except KeyError as error:
        raise ValueError("neither true nor false") from error


def _moment(value: Any, kind: Any) -> Any:
    """A time, in UTC where the column has a zone: engines read one without a zone as in their own.

    Text is one as 2024-01-31 12:00; of any other nobody knows what stands for the month.
    """
    import ibis
    import pandas as pd

    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    elif not isinstance(value, date | np.datetime64):
        raise TypeError("a time is needed")
    moment = pd.Timestamp(value)
    if moment.tzinfo is not None and kind.timezone is None:
        raise TypeError("the column has no zone")
    if kind.timezone is not None:
        is_zoned = moment.tzinfo is not None
        moment = moment.tz_convert("UTC") if is_zoned else moment.tz_localize("UTC")
    return ibis.literal(moment.isoformat(sep=" ")).cast(kind)
