"""Gaps at any confidence, from the counts of groups: rows need not be kept for them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from apfex.front._criteria import Criteria
from apfex.groups import Groups
from apfex.metrics import (
    GapInterval,
    NotEstimableWarning,
    effective_counts,
    gap_interval,
    group_rates,
)
from apfex.rates import RateName


@final
@dataclass(frozen=True, eq=False)
class GapCounts:
    """What the interval of one gap is made from.

    Attributes
    ----------
    successes, totals : int arrays of shape [c, k]
        By class, one of two or each of several, and group; effective ones where rows have weights.
    gap : float
    approximate : bool
        Whether weights differ.
    """

    successes: np.ndarray
    totals: np.ndarray
    gap: float
    approximate: bool

    def interval(self, confidence: float) -> GapInterval:
        """The gap with its interval."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotEstimableWarning)
            found = gap_interval(
                self.successes, self.totals, confidence=confidence, approximate=self.approximate
            )
        return replace(found, gap=self.gap)


@final
@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals of a model's gaps, by criterion and confidence.

    Attributes
    ----------
    counts : mapping from criterion to GapCounts
        Of the largest gap among its rates and groupings.
    """

    counts: Mapping[str, GapCounts]

    @staticmethod
    def of(
        y: np.ndarray,
        decisions: np.ndarray,
        groupings: Sequence[Groups],
        sample_weight: np.ndarray | None,
        n_classes: int,
        criteria: Criteria,
    ) -> Intervals:
        """Count rows; labels and decisions are codes of classes."""
        largest = {}
        for name in criteria.names:
            found = [
                counted
                for grouping in groupings
                for rate in criteria.rates_of(name)
                for counted in _count(y, decisions, rate, grouping, sample_weight, n_classes)
            ]
            largest[name] = max(found, key=lambda one: (one.gap == one.gap, one.gap))
        return Intervals(largest)

    def __call__(self, name: str, confidence: float = 0.95) -> GapInterval:
        """The interval of a criterion."""
        return self.counts[name].interval(confidence)


def _count(
    y: np.ndarray,
    decisions: np.ndarray,
    rate: RateName,
    groups: Groups,
    sample_weight: np.ndarray | None,
    n_classes: int,
) -> Iterator[GapCounts]:
    """Counts of a rate, of all classes together.

    Where just two of several classes occur, ``metrics`` would take them for a binary label: each
    of them is then counted on its own.
    """
    present = np.union1d(y, decisions).tolist()
    positives = present if n_classes > 2 and len(present) <= 2 else [1]
    for positive in positives:
        given: dict[str, Any] = {
            "rate": rate,
            "sensitive_features": groups,
            "pos_label": positive,
        }
        frame = group_rates(y, decisions, sample_weight=sample_weight, **given)
        above, below, rates = (
            frame[name].to_numpy().reshape(len(groups), -1).T
            for name in ("numerator", "denominator", "rate")
        )
        if sample_weight is None:
            successes, totals = above.astype(np.int64), below.astype(np.int64)
        else:
            squared = group_rates(y, decisions, sample_weight=sample_weight**2, **given)
            squares = squared["denominator"].to_numpy().reshape(len(groups), -1).T
            successes, totals = effective_counts(above, below, squares)
        yield GapCounts(
            successes,
            totals,
            _largest_gap(rates),
            sample_weight is not None and len(np.unique(sample_weight)) > 1,
        )


def _largest_gap(rates: np.ndarray) -> float:
    """Over the classes [c, k] that have two groups with a rate; NaN where none has."""
    known = rates[np.isfinite(rates).sum(1) >= 2]
    return float(np.max(np.nanmax(known, 1) - np.nanmin(known, 1))) if len(known) else np.nan
