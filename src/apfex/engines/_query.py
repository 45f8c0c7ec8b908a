"""Expressions that every engine understands, and what is exact about them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np


@contextmanager
def quiet() -> Iterator[None]:
    """Without what engines, Ibis and pandas have to say of each other's versions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def exact_sum(column: Any, engine: str) -> Any:
    """A sum of floats, with a correction of its rounding where the engine has one (Kahan)."""
    return _fsum()(column) if engine == "duckdb" else column.sum()


@cache
def _fsum() -> Any:
    import ibis

    @ibis.udf.agg.builtin
    def fsum(x: float) -> float:  # type: ignore[empty-body]
        """DuckDB's own."""

    return fsum


def number_of(column: Any, decimal: str = ".") -> Any:
    """A column as float64; cells of text that are no numbers become null.

    DuckDB reads 0_500 as 500, which is a number to nobody else.
    """
    if not column.type().is_string():
        return column.cast("float64")
    strange = column.contains("_")
    if decimal != ".":
        strange, column = strange | column.contains("."), column.replace(decimal, ".")
    return strange.ifelse(None, column).try_cast("float64")


def literal(value: float) -> Any:
    """A float, to the last bit: engines read 0.1 as a decimal, and may round it twice.

    Some digits SQLite reads as the float beside it; such a float is made of whole numbers.
    """
    import ibis

    written = repr(float(value))
    if _sqlite_reads(written) == value or not math.isfinite(value):
        return ibis.literal(written).cast("float64")
    share, power = math.frexp(value)
    made = ibis.literal(int(share * 2**53)).cast("float64")
    power -= 53
    while power:
        step = min(abs(power), 60)
        factor = ibis.literal(2**step).cast("float64")
        made = made * factor if power > 0 else made / factor
        power += -step if power > 0 else step
    return made


def _sqlite_reads(number: str) -> float:
    return _sqlite().execute("SELECT CAST(? AS REAL)", (number,)).fetchone()[0]


@cache
def _sqlite() -> Any:
    import sqlite3

    return sqlite3.connect(":memory:", check_same_thread=False)


def place_among(column: Any, cuts: Sequence[float] | np.ndarray) -> Any:
    """How many of the rising cuts are at or below a value, as by ``numpy.searchsorted``.

    A tree of comparisons: seven for a hundred cuts, not a hundred.
    """
    import ibis

    def tree(low: int, high: int) -> Any:
        if low == high:
            return ibis.literal(low, type="int32")
        middle = (low + high) // 2
        above, below = tree(middle + 1, high), tree(low, middle)
        return ibis.ifelse(column >= literal(cuts[middle]), above, below)

    return tree(0, len(cuts))
