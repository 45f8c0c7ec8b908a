"""Exact order statistics of a column that is too large to sort here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from apfex.engines._query import literal, place_among

_BUCKETS = 2**16
_MOST_NEAR = 2**11
_FETCHED = 2**20
"""Rows of which the different values are fetched, rather than counted in buckets."""


@final
@dataclass(frozen=True, eq=False)
class Buckets:
    """Parts of the values in rising order: the lowest and highest of each, and its rows."""

    low: np.ndarray
    high: np.ndarray
    rows: np.ndarray

    @property
    def are_open(self) -> np.ndarray:
        """Which hold more than one value."""
        return self.low < self.high


class OrderStatistics:
    """Values by their place in the sorted column, found by counting in ever finer buckets.

    A pass over the table counts values in up to 65,536 buckets; of those that hold the places
    asked for, the next pass looks into. Two passes do for most columns, however many rows there
    are, and memory is that of the buckets. Nothing is approximate: a bucket is left when its
    lowest and highest value are the same.

    Parameters
    ----------
    table : Ibis table
    column : float64 column of it, without missing values and infinities
    fetch : callable
        From an expression to a table of Arrow.
    low, high : float
        Lowest and highest value.
    rows : int
    """

    def __init__(
        self,
        table: Any,
        column: Any,
        fetch: Callable[[Any], Any],
        low: float,
        high: float,
        rows: int,
    ) -> None:
        self._table, self._fetch = table.select(value=column), fetch
        self._low, self._scale = low, (_BUCKETS - 1) / max(high / 2 - low / 2, _BUCKETS * 1e-300)
        self._buckets = Buckets(np.array([low]), np.array([high]), np.array([rows]))

    @property
    def rows(self) -> int:
        """All rows."""
        return int(self._buckets.rows.sum())

    def distinct(self, most: int) -> np.ndarray | None:
        """The different values in rising order; None where there are more than ``most``."""
        while len(self._buckets.rows) <= most:
            if not self._buckets.are_open.any():
                return self._buckets.low
            self._look_into(np.flatnonzero(self._buckets.are_open))
        return None

    def at(self, places: Sequence[int] | np.ndarray) -> np.ndarray:
        """The values at places, from 0 up, of the sorted column."""
        while True:
            own = np.searchsorted(np.cumsum(self._buckets.rows), places, side="right")
            wanted = np.unique(own)
            unknown = wanted[self._buckets.are_open[wanted]]
            if not len(unknown):
                return self._buckets.low[own]
            self._look_into(unknown)

    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """Quantiles by linear interpolation, to the bit those of :func:`numpy.quantile`."""
        places = shares * (self.rows - 1)
        below = np.floor(places).astype(np.int64)
        above = np.minimum(below + 1, self.rows - 1)
        ends = self.at(np.concatenate([below, above])).reshape(2, -1)
        pairs = zip(ends.T, places - below, strict=True)
        return np.array([np.quantile(pair, share) for pair, share in pairs])

    def _look_into(self, chosen: np.ndarray) -> None:
        """Replace some buckets by finer ones."""
        old = self._buckets
        found = self._split(old.low[chosen], old.high[chosen], int(old.rows[chosen].sum()))
        if found.rows.sum() != old.rows[chosen].sum():
            raise ValueError("The table changed while it was read; read it again.")
        if len(found.rows) == len(chosen):  # too near each other for arithmetic
            found = self._values(old.low[chosen], old.high[chosen])
        kept = np.ones(len(old.rows), dtype=bool)
        kept[chosen] = False
        low, high, rows = (
            np.concatenate([getattr(old, part)[kept], getattr(found, part)])
            for part in ("low", "high", "rows")
        )
        order = np.argsort(low, kind="stable")
        self._buckets = Buckets(low[order], high[order], rows[order])

    def _split(self, low: np.ndarray, high: np.ndarray, rows: int) -> Buckets:
        if rows <= _FETCHED:
            return self._values(low, high)
        import ibis

        each = max(2, _BUCKETS // len(low))
        x = self._table.value

        def key(place: int) -> Any:
            # Halves do not overflow; rounding keeps the order, so that buckets never overlap.
            width = max(high[place] / 2 - low[place] / 2, each * 1e-300)
            scaled = (x / 2 - literal(low[place] / 2)) * literal((each - 1) / width)
            return scaled.floor().cast("int64") + place * each

        def tree(first: int, last: int) -> Any:
            if first == last:
                return key(first)
            middle = (first + last) // 2
            right, left = tree(middle + 1, last), tree(first, middle)
            return ibis.ifelse(x >= literal(low[middle + 1]), right, left)

        return self._count(tree(0, len(low) - 1), low, high)

    def _near(self, table: Any, low: np.ndarray, high: np.ndarray) -> Any:
        """Rows that may lie between some ends, by a look that is cheaper than comparisons."""
        first, last = (
            np.floor((ends / 2 - self._low / 2) * self._scale).astype(np.int64)
            for ends in (low, high)
        )
        if (last - first).sum() > _MOST_NEAR:
            return table
        pairs = zip(first - 1, last + 2, strict=True)  # engines may round otherwise
        near = np.unique(np.concatenate([np.arange(*pair) for pair in pairs]))
        scaled = (table.value / 2 - literal(self._low / 2)) * literal(self._scale)
        return table.filter(scaled.floor().cast("int64").isin(near.tolist()))

    def _values(self, low: np.ndarray, high: np.ndarray) -> Buckets:
        """Every value as a bucket of its own."""
        return self._count(self._table.value, low, high)

    def _count(self, key: Any, low: np.ndarray, high: np.ndarray) -> Buckets:
        """Rows by key, of those between the ends of some bucket."""
        import ibis

        with np.errstate(over="ignore"):  # beyond the largest float there is infinity
            ends = np.stack([low, np.nextafter(high, np.inf)], 1).ravel()
        keyed = self._table.mutate(key=key)
        if len(low) < len(self._buckets.rows):
            keyed = self._near(keyed, low, high)
            keyed = keyed.filter(place_among(keyed.value, ends) % 2 == 1)
        value = ibis._.value
        found = self._fetch(
            keyed.group_by("key").aggregate(low=value.min(), high=value.max(), rows=ibis._.count())
        )
        lowest, highest, rows = (found[name].to_numpy() for name in ("low", "high", "rows"))
        order = np.argsort(lowest, kind="stable")
        return Buckets(lowest[order], highest[order], rows[order].astype(np.int64))
