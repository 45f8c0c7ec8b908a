"""Gaps of a criterion, from the confusion counts of a point: rows need not be kept for them."""

from __future__ import annotations

from collections.abc import Sequence

from apfex.metrics import CRITERIA, GapInterval, GroupRates, interval_of_rates
from apfex.rates import ConfusionCounts


def widest_rates(
    counts: ConfusionCounts, name: str, groupings: Sequence[Sequence[str]], min_count: float = 1
) -> GroupRates:
    """The rate and the grouping with the largest gap of a criterion.

    Parameters
    ----------
    counts : ConfusionCounts
        Of the crossing.
    name : str
        The criterion.
    groupings : sequence of attributes
        Those whose gaps count.
    min_count : float
        Groups with fewer (effective) rows are left out.
    """
    return GroupRates.widest(
        [
            GroupRates.of(counts.by(attributes), rate, min_count)
            for attributes in groupings
            for rate in CRITERIA[name]
        ]
    )


def gap_of(
    counts: ConfusionCounts,
    name: str,
    groupings: Sequence[Sequence[str]],
    confidence: float = 0.95,
    min_count: float = 1,
) -> GapInterval:
    """The largest gap of a criterion, with its interval."""
    found = widest_rates(counts, name, groupings, min_count)
    return interval_of_rates([found], confidence=confidence)
