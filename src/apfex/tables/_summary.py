"""What an encoder must know of a table, as a value that adds up over chunks of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from apfex.tables._columns import Column, Kind, Table, read_table


@final
@dataclass(frozen=True)
class ColumnSummary:
    """Counts, range, mean and spread of a column; added up by ``+``.

    Attributes
    ----------
    name : str
    kind : "number", "level" or "empty"
    rows, present : int
        Rows in all, and those that are not missing.
    low, high, mean : float
        Of the numbers.
    squares : float
        Sum of squared deviations from the mean.
    levels : mapping from level to its rows
    """

    name: str
    kind: Kind
    rows: int
    present: int = 0
    low: float = np.inf
    high: float = -np.inf
    mean: float = 0.0
    squares: float = 0.0
    levels: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def of(column: Column) -> ColumnSummary:
        """Summarise one column."""
        name, kind, rows = column.name, column.kind, len(column)
        if kind == "level":
            codes = column.codes[column.codes >= 0]
            counts = np.bincount(codes, minlength=len(column.levels)).tolist()
            levels = dict(zip(column.levels, counts, strict=True))
            return ColumnSummary(name, kind, rows, len(codes), levels=levels)
        numbers = column.numbers[~np.isnan(column.numbers)]
        if not len(numbers):
            return ColumnSummary(name, kind, rows)
        low, high = float(numbers.min()), float(numbers.max())
        with np.errstate(over="ignore", invalid="ignore"):  # whoever needs a mean looks at it
            mean = float(numbers.mean())
            squares = float(np.square(numbers - mean).sum())
        return ColumnSummary(name, kind, rows, len(numbers), low, high, mean, squares)

    def __add__(self, other: ColumnSummary) -> ColumnSummary:
        """The summary of the rows of both (Chan, Golub and LeVeque 1979)."""
        if not isinstance(other, ColumnSummary):
            return NotImplemented
        rows = self.rows + other.rows
        if not other.present:
            return replace(self, rows=rows)
        if not self.present:
            return replace(other, rows=rows)
        if self.kind != other.kind:
            raise TypeError(
                f"Column {self.name!r} of X must hold values of one kind in all rows, got "
                f"{self.kind}s and {other.kind}s; convert it to one type."
            )
        n, present = other.present, self.present + other.present
        with np.errstate(over="ignore", invalid="ignore"):
            away = np.float64(other.mean) - self.mean
            mean = float(self.mean + away * (n / present))
            squares = float(self.squares + other.squares + away**2 * (self.present * n / present))
        return replace(
            self,
            rows=rows,
            present=present,
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            mean=mean,
            squares=squares,
            levels=dict(Counter(self.levels) + Counter(other.levels)),
        )


@final
@dataclass(frozen=True)
class TableSummary:
    """Summaries of all columns; those of chunks add up to that of the table by ``+``.

    Attributes
    ----------
    columns : tuple of ColumnSummary
    rows : int
    has_names : bool
        Whether the names of columns came with the data.

    Examples
    --------
    >>> first, rest = summarize([[20.0, 1.0], [40.0, 2.0]]), summarize([[30.0, 0.0]])
    >>> [column.mean for column in (first + rest).columns]
    [30.0, 1.0]
    """

    columns: tuple[ColumnSummary, ...]
    rows: int
    has_names: bool

    @staticmethod
    def of(table: Table) -> TableSummary:
        """Summarise a table that has been read."""
        columns = tuple(ColumnSummary.of(column) for column in table.columns)
        return TableSummary(columns, table.n_rows, table.has_names)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return tuple(column.name for column in self.columns)

    def __add__(self, other: TableSummary) -> TableSummary:
        """The summary of the rows of both."""
        if not isinstance(other, TableSummary):
            return NotImplemented
        if self.names != other.names:
            raise ValueError(
                f"X must have the same columns in all chunks, got {list(self.names)} and "
                f"{list(other.names)}."
            )
        pairs = zip(self.columns, other.columns, strict=True)
        columns = tuple(ours + theirs for ours, theirs in pairs)
        return TableSummary(columns, self.rows + other.rows, self.has_names)


def summarize(X: Any) -> TableSummary:
    """Summarise a chunk of a table, or all of it.

    Parameters
    ----------
    X : data frame (pandas, polars, ...) or array of shape [n, columns]

    Returns
    -------
    TableSummary
        Those of all chunks add up to what :meth:`TableEncoder.fit_summary` takes.

    Examples
    --------
    >>> summarize([[1.0], [3.0]]).columns[0].mean
    2.0
    """
    return TableSummary.of(read_table(X))
