"""Figures of the rows that chose a point, which flatter it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from apfex.estimator import APFExClassifier
from apfex.front import Point
from apfex.rates import RATES


@final
@dataclass(frozen=True, eq=False)
class Compared:
    """A gap between groups with enough rows, and how many these are (None: not known)."""

    gap: float
    groups: int | None


def compared_gaps(clf: APFExClassifier, point: Point, min_count: float) -> dict[str, Compared]:
    """Gaps of the rows that chose, counted as an audit counts them.

    Notes
    -----
    The search counts every group that has a row. A point keeps the counts of the rate and the
    grouping with the largest gap: once small groups are left out, another might have it, so that
    a criterion of several rates, or of several groupings, is then missing here.
    """
    found = {}
    counts: Mapping[str, Any] = getattr(point.interval_at, "counts", {})
    for name in point.gaps.keys() & counts.keys():
        successes, totals = (
            np.atleast_2d(part) for part in (counts[name].successes, counts[name].totals)
        )
        enough = totals >= max(min_count, 1)
        alone = _is_alone(clf, name, len(totals))
        gap = point.gaps[name].gap
        if not np.array_equal(enough, totals > 0):
            if not alone:
                continue
            gap = _largest_gap(successes, totals, enough)
        if np.isfinite(gap):
            found[name] = Compared(float(gap), int(enough.any(0).sum()) if alone else None)
    return {name: found[name] for name in point.gaps if name in found}


def _is_alone(clf: APFExClassifier, name: str, n_rows: int) -> bool:
    """Whether the counts that a point keeps are all there were."""
    one_class = n_rows == 1 and len(clf.classes_) > 2  # one of two that occur
    return name in RATES and clf.grouping != "attributes" and not one_class


def _largest_gap(successes: np.ndarray, totals: np.ndarray, enough: np.ndarray) -> float:
    """Over the classes [c, k] with two groups that have enough rows; NaN where none has."""
    usable = enough.sum(1) >= 2
    if not usable.any():
        return np.nan
    rates = successes[usable] / np.maximum(totals[usable], 1)
    kept = enough[usable]
    highest, lowest = np.where(kept, rates, -np.inf).max(1), np.where(kept, rates, np.inf).min(1)
    return float((highest - lowest).max())


def describe_choosing(point: Point, compared: Mapping[str, Compared]) -> dict[str, Any]:
    """Figures of the rows that chose; ``compared`` is a gap without groups of too few rows."""
    names = ("gap", "lower", "upper", "noise_floor", "confidence")
    return {
        "rows": point.n_rows,
        "error": point.error,
        "balanced_error": point.balanced_error,
        "gaps": {
            name: {
                **{key: getattr(gap, key) for key in names},
                "compared": compared[name].gap if name in compared else None,
            }
            for name, gap in point.gaps.items()
        },
        "worst_group": point.worst_group,
        "worst_group_accuracy": point.worst_group_accuracy,
        "share_favored": point.share_positive,
        "levelled_down": list(point.levelled_down),
        "member": point.member,
        "epoch": point.epoch,
    }
