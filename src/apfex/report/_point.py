"""One point of a front, as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

from apfex.auditing import Audit
from apfex.estimator import APFExClassifier, Point
from apfex.groups import Groups
from apfex.metrics import balanced_accuracy
from apfex.report._changes import changes_between
from apfex.report._doubts import (
    doubts_of_all,
    doubts_of_audit,
    doubts_of_choice,
    doubts_of_decisions,
    doubts_of_gaps,
    levelled_down,
)
from apfex.report._levels import Level, Rates, describe_rates

_WORST = 8


@final
@dataclass(frozen=True, eq=False)
class Measured:
    """What a point does to fresh rows."""

    place: int
    audit: Audit
    rates: Rates
    y: np.ndarray
    decided: np.ndarray
    favored: np.ndarray
    """Which rows get the favorable label, bool [n]."""
    weight: np.ndarray | None


@final
@dataclass(frozen=True, eq=False)
class Shown:
    """What a page shows: levels, places of their groups, keys of rates."""

    levels: list[Level]
    groups: dict[str, np.ndarray]
    rates: list[str]


def describe_point(
    clf: APFExClassifier,
    one: Measured,
    baseline: Measured,
    crossing: Groups,
    shown: Shown,
    fresh: bool,
) -> dict[str, Any]:
    """Figures of fresh rows, and those of the rows that chose the point."""
    point, audit = clf.front_[one.place], one.audit
    right = one.rates["accuracy", None]
    error = float(1 - right.rate[0])
    changes = changes_between(baseline.favored, one.favored, crossing, shown.levels)
    crossed, confidence = changes[shown.levels[-1].by], audit.settings.confidence
    levelled = levelled_down(crossed, shown.levels[-1].names)
    doubts = [
        *doubts_of_choice(point, levelled),
        *doubts_of_decisions(one.decided, error, one.y, one.weight, clf.classes_),
        *doubts_of_gaps(*_both_gaps(clf, point, audit)),
        *doubts_of_all(fresh=fresh, group_thresholds=clf.group_thresholds),
        *doubts_of_audit(audit.notes),
    ]
    return {
        "point": one.place,
        "error": error,
        "error_lower": 1 - right.upper[0],
        "error_upper": 1 - right.lower[0],
        "balanced_error": 1 - balanced_accuracy(one.y, one.decided, sample_weight=one.weight),
        "share_favored": audit.share_favored,
        "trivial": point.trivial,
        "levelled_down": levelled,
        "gaps": describe_gaps(audit),
        "worst": audit.worst(_WORST).to_dict("records"),
        "rates": describe_rates(one.rates, shown.rates, shown.groups),
        "tally": crossed.tally(confidence),
        "changes": {
            by: change.take(shown.groups[by], confidence) for by, change in changes.items()
        },
        "doubts": doubts,
        "validation": _chosen(point),
    }


def describe_gaps(audit: Audit) -> list[dict[str, Any]]:
    """Gaps of every criterion and level, with the two groups that make each."""
    return [
        {**row, "ends": audit.ends(row["criterion"], row["by"]).to_dict("records")}
        for row in audit.gaps.to_dict("records")
    ]


def _chosen(point: Point) -> dict[str, Any]:
    """Figures of the rows that chose a point, which flatter it."""
    gaps = {name: asdict(interval) for name, interval in point.gaps.items()}
    names = ("gap", "lower", "upper", "noise_floor", "confidence")
    return {
        "rows": point.n_rows,
        "error": point.error,
        "balanced_error": point.balanced_error,
        "gaps": {name: {key: gap[key] for key in names} for name, gap in gaps.items()},
        "worst_group": point.worst_group,
        "worst_group_accuracy": point.worst_group_accuracy,
        "share_favored": point.share_positive,
        "levelled_down": list(point.levelled_down),
        "member": point.member,
        "epoch": point.epoch,
    }


def _both_gaps(
    clf: APFExClassifier, point: Point, audit: Audit
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Gaps that chose a point, and the same on fresh rows: of the crossing, or the attributes."""
    aimed = audit.attributes if clf.grouping == "attributes" else (" x ".join(audit.attributes),)
    gaps: Any = audit.gaps
    gaps = gaps[gaps["by"].isin(aimed) & gaps["gap"].notna()]
    fresh = {
        name: {key: float(part[key].max()) for key in ("gap", "lower", "upper")}
        for name, part in gaps.groupby("criterion")
    }
    return {name: gap.gap for name, gap in point.gaps.items()}, fresh
