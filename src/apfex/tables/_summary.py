"""What one pass over some rows has to remember: small, and summaries of parts merge into the whole.

Means and sums of squares are merged as by Chan, Golub and LeVeque (1983), which does not lose
digits when the mean is large beside the spread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np

from apfex.tables._columns import Column, Table, read_table


@final
@dataclass(frozen=True)
class EmptySummary:
    """A column of which no value was seen yet: it may still turn out to be of any kind."""

    missing: int = 0


@final
@dataclass(frozen=True)
class NumberSummary:
    """Count, mean, sum of squared deviations and range of the numbers present."""

    count: int
    missing: int
    mean: float
    m2: float
    low: float
    high: float

    def merge(self, other: NumberSummary) -> NumberSummary:
        """Return the summary of both sets of rows."""
        count = self.count + other.count
        delta = other.mean - self.mean
        share = other.count / count
        return NumberSummary(
            count,
            self.missing + other.missing,
            self.mean + delta * share,
            self.m2 + other.m2 + delta * delta * self.count * share,
            min(self.low, other.low),
            max(self.high, other.high),
        )


@final
@dataclass(frozen=True)
class LevelSummary:
    """How often each level occurs."""

    counts: Mapping[str, int]
    missing: int

    def merge(self, other: LevelSummary) -> LevelSummary:
        """Return the summary of both sets of rows."""
        levels = self.counts.keys() | other.counts.keys()
        counts = {v: self.counts.get(v, 0) + other.counts.get(v, 0) for v in sorted(levels)}
        return LevelSummary(counts, self.missing + other.missing)


ColumnSummary: TypeAlias = EmptySummary | NumberSummary | LevelSummary


@final
@dataclass(frozen=True)
class TableSummary:
    """All that the encoder must know of a table; summaries of parts merge into the whole.

    Parameters
    ----------
    columns : mapping from column name to the summary of that column
    n_rows : int
        Rows seen so far.
    has_names : bool
        Whether the names came with the data (a frame) or stand for positions (an array).

    Examples
    --------
    >>> from apfex.tables import summarise
    >>> whole = summarise([[1.0], [2.0], [6.0]])
    >>> parts = summarise([[1.0]]).merge(summarise([[2.0], [6.0]]))
    >>> parts.columns["x0"].mean == whole.columns["x0"].mean == 3.0
    True
    """

    columns: Mapping[str, ColumnSummary]
    n_rows: int
    has_names: bool

    def merge(self, other: TableSummary) -> TableSummary:
        """Return the summary of both sets of rows.

        Parameters
        ----------
        other : TableSummary
            Of other rows of the same table, with the same column names.

        Returns
        -------
        TableSummary
            Counts exact; means and sums of squares equal to the whole's up to rounding.
        """
        if self.columns.keys() != other.columns.keys():
            differing = sorted(self.columns.keys() ^ other.columns.keys())
            raise ValueError(
                f"Parts of one table must have the same columns, got {differing} in one part only."
            )
        merged = {
            name: _merge_column(name, mine, other.columns[name])
            for name, mine in self.columns.items()
        }
        return TableSummary(merged, self.n_rows + other.n_rows, self.has_names or other.has_names)


def summarise(X: Any) -> TableSummary:
    """Summarise the rows of a table in one pass.

    Parameters
    ----------
    X : data frame (pandas, polars, ...) or array of shape [n, columns]
        All rows, or one chunk of them.

    Returns
    -------
    TableSummary
        To be merged with those of other chunks and handed to ``TableEncoder.fit_summary``.

    Examples
    --------
    >>> import pandas as pd
    >>> from apfex.tables import summarise
    >>> summary = summarise(pd.DataFrame({"town": ["Bern", "Basel", None, "Bern"]}))
    >>> summary.columns["town"]
    LevelSummary(counts={'Basel': 1, 'Bern': 2}, missing=1)
    """
    return summarise_table(read_table(X))


def summarise_table(table: Table) -> TableSummary:
    """Summarise a table that was read already."""
    columns = {column.name: _summarise_column(column) for column in table.columns}
    return TableSummary(columns, table.n_rows, table.has_names)


def _summarise_column(column: Column) -> ColumnSummary:
    if column.kind == "empty":
        return EmptySummary(len(column))
    if column.kind == "level":
        present = column.codes[column.codes >= 0]
        counts = np.bincount(present, minlength=len(column.levels)).tolist()
        by_level = dict(sorted(zip(column.levels, counts, strict=True)))
        return LevelSummary(by_level, len(column) - len(present))
    present = column.numbers[~np.isnan(column.numbers)]
    with np.errstate(over="ignore"):  # an overflow is reported by name when the encoder is fitted
        mean = float(present.mean())
        m2 = float(np.square(present - mean).sum())
    missing = len(column) - len(present)
    low, high = float(present.min()), float(present.max())
    return NumberSummary(len(present), missing, mean, m2, low, high)


def _merge_column(name: str, a: ColumnSummary, b: ColumnSummary) -> ColumnSummary:
    if isinstance(a, EmptySummary):
        return _add_missing(b, a.missing)
    if isinstance(b, EmptySummary):
        return _add_missing(a, b.missing)
    if isinstance(a, NumberSummary) and isinstance(b, NumberSummary):
        return a.merge(b)
    if isinstance(a, LevelSummary) and isinstance(b, LevelSummary):
        return a.merge(b)
    raise TypeError(
        f"Column {name!r} must hold one type of value, got numbers in one part and levels in "
        "another; convert it to one type before summarising."
    )


def _add_missing(summary: ColumnSummary, missing: int) -> ColumnSummary:
    return replace(summary, missing=summary.missing + missing)
