"""Scores of a table in an engine: thresholds, reliability and means by group, from sums alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from apfex.auditing._calibration import SHARES, Binned, bin_edges
from apfex.auditing._metrics import ByGroup, Measured, are_probabilities, compare_values
from apfex.auditing._settings import AuditSettings
from apfex.auditing._tally import TableQuery, Tally
from apfex.engines import OrderStatistics
from apfex.groups import Groups
from apfex.metrics import Inputs, Measure
from apfex.rates import (
    ConfusionCounts,
    Repeats,
    ScoreCounts,
    count_reached,
    most_thresholds,
    threshold_places,
)

_VALUES = {"brier": "{}2", "calibration": "{}1", "log_loss": "{}_log"}
_SQUARES = {"brier": "{}4", "calibration": "{}2", "log_loss": "{}_log2"}
"""Sums of the values of a metric and of their squares, by what they are sums of: p or 1 - p."""


@final
@dataclass(frozen=True, eq=False)
class TableScores:
    """Scores of the rows that an audit counts.

    Attributes
    ----------
    query : TableQuery
    data : Inputs
        The different rows, as they were read from ``tally``.
    tally : Tally
    read : callable
        From another tally of the same table to codes of groups and of labels [m]; a code of -1 is
        left out.
    """

    query: TableQuery
    data: Inputs
    tally: Tally
    read: Callable[[Tally], tuple[np.ndarray, np.ndarray | None]]

    @cached_property
    def span(self) -> tuple[float, float]:
        """Lowest and highest score."""
        low, high = self.tally.sums["s_low"], self.tally.sums["s_high"]
        return float(low.min()), float(high.max())

    @property
    def means(self) -> tuple[float, float] | None:
        """Mean score of favorable decisions and of the others; None where there is one kind."""
        gets_it, rows = self.data.decided == 1, self.tally.repeats.rows
        if gets_it.all() or not gets_it.any():
            return None
        sums = self.tally.sums["s_sum"]
        favored, others = (sums[who].sum() / rows[who].sum() for who in (gets_it, ~gets_it))
        return float(favored), float(others)

    @cached_property
    def _order(self) -> OrderStatistics:
        table, roles = self.query.complete(), self.query.roles
        assert roles.scored is not None
        return OrderStatistics(
            table,
            self.query.source.number(table[roles.scored]),
            self.query.source.fetch,
            *self.span,
            self.tally.repeats.n_rows,
        )

    @cached_property
    def _thresholds(self) -> np.ndarray:
        """Every distinct score, or as many quantiles as are shown."""
        most = most_thresholds(len(self.data.groups))
        found = self._order.distinct(most)
        if found is None:
            return np.unique(self._order.at(threshold_places(self._order.rows, most)))
        return found

    @cached_property
    def _edges(self) -> np.ndarray | None:
        """Of the bins of probabilities, where there are labels to compare them with."""
        if self.data.y is None or not are_probabilities(self.span):
            return None
        return bin_edges(self._order.quantiles(SHARES))

    @cached_property
    def _placed(self) -> tuple[Tally, np.ndarray, np.ndarray]:
        """Rows by thresholds reached and by bin, their groups and labels: one query for both."""
        cuts = {"reached": self._thresholds}
        if self._edges is not None:
            cuts["bin"] = self._edges
        found = self.query.by_place(cuts)
        codes, y = self.read(found)
        labels = np.zeros(len(codes), np.int64) if y is None else y
        kept = np.flatnonzero((codes >= 0) & (labels >= 0))
        found = found.take(kept)
        if found.repeats.n_rows != self.tally.repeats.n_rows:
            raise ValueError("The table changed while it was read; audit it again.")
        return found, codes[kept], labels[kept]

    def counts(self, groups: Groups) -> ScoreCounts:
        """Confusion counts at every threshold."""
        found, codes, y = self._placed
        reached = found.values["reached"].to_numpy(np.int64)
        return count_reached(reached, y, codes, groups, self._thresholds, repeats=found.repeats)

    def binned(self) -> Binned:
        """Rows by bin of their scores, for reliability."""
        found, codes, y = self._placed
        edges, repeats = self._edges, found.repeats
        assert edges is not None
        bins = np.clip(found.values["bin"].to_numpy(np.int64) - 1, 0, len(edges) - 2)
        parts = (repeats.rows, repeats.sums, repeats.squares, found.sums["s_weighted"])
        return Binned(edges, bins, codes, y, *parts)


def of_sums(data: Inputs, tally: Tally, settings: AuditSettings) -> Measured:
    """Metrics that are means over rows, from sums of their values and squares."""
    assert data.repeats is not None
    repeats: Repeats = data.repeats

    def measured(measure: Measure, attributes: tuple[str, ...], counts: ConfusionCounts) -> ByGroup:
        assert measure.mean is not None
        k, codes = len(counts.sizes), np.zeros(len(data.decided), np.int64)
        if attributes:
            codes = data.groups.parent_codes(attributes)[data.groups.codes]

        def total(values: np.ndarray) -> np.ndarray:
            return np.bincount(codes, values, k)

        value, square = _of_labels(measure.mean, data, tally)
        with np.errstate(invalid="ignore", divide="ignore"):
            weights = total(repeats.sums)
            mean = total(value) / weights
            variance = np.maximum(total(square) / weights - mean**2, 0)
            effective = weights**2 / total(repeats.squares)
        worth = counts.sizes if repeats.weights is None else np.round(np.nan_to_num(effective))

        def limits(place: int, confidences: tuple[float, float]) -> list[tuple[float, float]]:
            given = float(mean[place]), float(variance[place]), float(effective[place])
            return [measure.mean_interval(*given, one) for one in confidences]

        return compare_values(mean, worth, limits, settings)

    return measured


def _of_labels(mean: str, data: Inputs, tally: Tally) -> tuple[np.ndarray, np.ndarray]:
    """Sums of values and squares, of what the label of each row asks for."""
    positive = data.y == 1
    far, near = ("p", "q") if mean != "log_loss" else ("q", "p")
    value, square = (
        np.where(positive, tally.sums[of[mean].format(near)], tally.sums[of[mean].format(far)])
        for of in (_VALUES, _SQUARES)
    )
    if mean == "calibration":  # the label less the score: 1 - p or -p
        value = np.where(positive, value, -value)
    return value, square
