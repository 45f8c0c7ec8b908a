"""One point of a front, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from apfex.auditing import Audit
from apfex.estimator import APFExClassifier
from apfex.groups import Groups, grouping_name
from apfex.metrics import balanced_accuracy, levelled_down
from apfex.report._caveats import (
    doubts_of_all,
    doubts_of_audit,
    doubts_of_choice,
    doubts_of_decisions,
    doubts_of_gaps,
    doubts_of_growth,
    doubts_of_verdicts,
)
from apfex.report._changes import changes_between
from apfex.report._choosing import compared_gaps, describe_choosing
from apfex.report._groupings import Level, Rates, describe_rates

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
    """What a page shows: levels, places of their groups, keys of rates, labels in words."""

    levels: list[Level]
    groups: dict[str, np.ndarray]
    rates: list[str]
    labels: list[str]


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
    # Only what is clear on these rows counts as a change.
    down = levelled_down(crossed.direction(confidence))
    levelled = [name for name, lost in zip(shown.levels[-1].names, down, strict=True) if lost]
    compared = compared_gaps(point, audit.settings.min_count)
    gaps = _aimed_gaps(clf, audit)
    doubts = [
        *doubts_of_choice(point, levelled, baseline.place),
        *doubts_of_decisions(one.decided, error, one.y, one.weight, shown.labels),
        *doubts_of_verdicts(audit),
        *doubts_of_growth(gaps, _aimed_gaps(clf, baseline.audit), baseline.place),
        *doubts_of_gaps(compared, gaps),
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
        "validation": describe_choosing(point, compared),
    }


def describe_gaps(audit: Audit) -> list[dict[str, Any]]:
    """Gaps of every criterion and level, with the two groups that make each."""
    return [
        {**row, "ends": audit.ends(row["criterion"], row["by"]).to_dict("records")}
        for row in audit.gaps.to_dict("records")
    ]


def _aimed_gaps(clf: APFExClassifier, audit: Audit) -> dict[str, dict[str, Any]]:
    """The largest gap of each criterion on the levels that points were chosen by.

    That is the crossing, or the attributes; ``groups`` have enough rows for it.
    """
    single = [(name,) for name in audit.attributes]
    levels = single if clf.grouping == "attributes" else [audit.attributes]
    aimed = [grouping_name(attributes) for attributes in levels]
    gaps: Any = audit.gaps
    groups: Any = audit.groups
    gaps = gaps[gaps["by"].isin(aimed) & gaps["gap"].notna()]
    found: dict[str, dict[str, Any]] = {}
    for row in gaps.to_dict("records"):
        name = row["criterion"]
        if name not in found or row["gap"] > found[name]["gap"]:
            counted = groups[(groups["by"] == row["by"]) & (groups["of"] == name)]
            enough = counted.loc[counted["in_gap"], "group"].nunique()
            keys = ("gap", "lower", "upper", "verdict")
            found[name] = {**{key: row[key] for key in keys}, "groups": enough}
    return found
