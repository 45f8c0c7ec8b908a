"""One point of a front on the rows at hand: its figures, and whose decisions it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from scipy.stats import binom

from apfex.auditing import Audit, audit_counts
from apfex.estimator import APFExClassifier, AuditRows
from apfex.front import Point
from apfex.groups import Groups, grouping_name
from apfex.metrics import balanced_accuracy, levelled_down
from apfex.report._caveats import (
    Caveat,
    Gaps,
    caveats_of_decisions,
    caveats_of_front,
    caveats_of_growth,
    caveats_of_notes,
    caveats_of_search,
    caveats_of_validation,
    caveats_of_verdicts,
)
from apfex.report._constant import Constant, Gain, shares_of
from apfex.report._description import Shown, describe_decisions
from apfex.report._groupings import Grouping
from apfex.report._rates import Rates, rates_of
from apfex.report._summary import Choice, summarize_point

_MORE_RATES = ("dp", "tpr", "fpr", "ppv", "accuracy")
"""Shown whatever the criteria are."""
_WORST = 8


@final
@dataclass(frozen=True, eq=False)
class MeasuredPoint:
    """What a point decides for the rows: codes of classes [n], their audit, and more rates."""

    place: int
    decided: np.ndarray
    audit: Audit
    rates: Rates
    balanced_error: float

    @property
    def error(self) -> float:
        """Share of rows that are decided wrongly, by weight."""
        return float(1 - self.rates["accuracy", None].rate[0])


@final
@dataclass(frozen=True, eq=False)
class Others:
    """What a point is seen against: the starting point, the constant decision, the best point.

    ``losses`` are those that rank the points; ``caveats`` those of all points, as of the data.
    """

    baseline: MeasuredPoint
    constant: Constant | None
    losses: Sequence[float]
    caveats: Sequence[Caveat]
    fresh: bool
    flagged: Sequence[bool] | None
    """Points that the validation rows flag as nearly constant, where these rows are too few."""

    def gain(self, one: MeasuredPoint) -> Gain | None:
        """Of a point over the constant decision."""
        if self.constant is None:
            return None
        flagged = None if self.flagged is None else self.flagged[one.place]
        return Gain(self.constant, self.losses[one.place], min(self.losses), flagged)

    @property
    def is_useless(self) -> bool:
        """Whether no point is better than the constant decision."""
        if self.constant is None or self.flagged is not None:
            return False
        return min(self.losses) >= self.constant.ranked


def measure_point(rows: AuditRows, place: int, decided: np.ndarray) -> MeasuredPoint:
    """Count and audit decisions, codes of classes [n]."""
    counts, settings = rows.count(decided), rows.settings
    audit = audit_counts(counts, settings)
    rates = rates_of(audit)
    more = tuple(of for of in _MORE_RATES if of not in settings.rates)
    if more:
        # No group is large enough for a gap then, so that none is tested: the tests are what
        # takes time, and only rates and their intervals are wanted here.
        untested = replace(settings, criteria=more, min_count=np.inf)
        rates |= rates_of(audit_counts(counts, untested), min_count=settings.min_count)
    balanced = 1 - balanced_accuracy(rows.y, decided, sample_weight=rows.weight)
    return MeasuredPoint(place, decided, audit, rates, float(balanced))


def describe_point(
    clf: APFExClassifier,
    rows: AuditRows,
    one: MeasuredPoint,
    others: Others,
    shown: Shown,
    choice: Choice,
) -> dict[str, Any]:
    """Figures of the rows at hand, and those of the validation rows."""
    point, audit, right = clf.front_[one.place], one.audit, one.rates["accuracy", None]
    baseline, gain = others.baseline, others.gain(one)
    before, after = (measured.decided == rows.favorable for measured in (baseline, one))
    changes = changes_between(before, after, rows.crossing, shown.groupings)
    crossing, confidence = shown.groupings[-1], audit.settings.confidence
    crossed = changes[crossing.by]
    # Only what is clear on these rows counts as a change.
    down = levelled_down(crossed.direction(confidence))
    levelled = [name for name, lost in zip(crossing.names, down, strict=True) if lost]
    validation = validation_gaps(point, audit.settings.min_count)
    gaps = _aimed_gaps(clf, audit)
    shares = shares_of(one.decided, rows.weight, len(shown.labels))
    caveats = [
        *caveats_of_front(
            fresh=others.fresh,
            group_thresholds=clf.group_thresholds,
            is_trivial=choice.is_trivial,
        ),
        *caveats_of_verdicts(audit),
        *caveats_of_search(point, levelled, baseline.place),
        *caveats_of_decisions(shares, gain, shown.labels),
        *caveats_of_growth(gaps, _aimed_gaps(clf, baseline.audit), baseline.place),
        *caveats_of_validation(gaps, validation),
        *others.caveats,
        *caveats_of_notes(audit),
    ]
    told = describe_decisions(audit, one.rates, shown, caveats, gain)
    tally, worst = crossed.tally(confidence), audit.worst(_WORST).to_dict("records")
    compared = {
        "before": baseline.error,
        "now": one.error,
        "gaps": _both_gaps(baseline.audit, audit, crossing.by),
        "tally": tally,
        "rows": "test rows" if others.fresh else "rows that fit has seen",
    }
    return {
        **told,
        "summary": summarize_point(
            audit, told["gaps"], worst, gain, shown.favorable, choice, compared
        ),
        "point": one.place,
        "error": one.error,
        "error_lower": 1 - right.upper[0],
        "error_upper": 1 - right.lower[0],
        "balanced_error": one.balanced_error,
        "loss": point.loss,
        "trivial": point.trivial,
        "levelled_down": levelled,
        "worst": worst,
        "tally": tally,
        "changes": {
            by: change.take(shown.groups[by], confidence) for by, change in changes.items()
        },
        "validation": describe_validation(point, validation),
    }


def _both_gaps(before: Audit, now: Audit, by: str) -> dict[str, tuple[float | None, float | None]]:
    """Gaps of each criterion by one grouping, of two audits; None where it is not estimable."""
    found: list[dict[str, float | None]] = []
    for gaps in (before.gaps, now.gaps):
        own: Any = gaps[gaps["by"] == by]
        sizes = zip(own["criterion"], own["gap"], strict=True)
        found.append({name: None if gap != gap else gap for name, gap in sizes})
    return {name: (gap, found[1][name]) for name, gap in found[0].items()}


def _aimed_gaps(clf: APFExClassifier, audit: Audit) -> Gaps:
    """The largest gap of each criterion on the groupings that points were chosen by.

    That is the crossing, or the attributes; ``groups`` have enough rows for it.
    """
    single = [(name,) for name in audit.attributes]
    groupings = single if clf.grouping == "attributes" else [audit.attributes]
    aimed = [grouping_name(attributes) for attributes in groupings]
    gaps: Any = audit.gaps
    groups: Any = audit.groups
    gaps = gaps[gaps["by"].isin(aimed) & gaps["gap"].notna()]
    found: dict[str, dict[str, Any]] = {}
    for row in gaps.to_dict("records"):
        name = row["criterion"]
        if name not in found or row["gap"] > found[name]["gap"]:
            of = audit.ends(name, row["by"])["of"].iloc[0]
            counted = groups[(groups["by"] == row["by"]) & (groups["of"] == of)]
            enough = counted.loc[counted["in_gap"], "group"].nunique()
            keys = ("gap", "lower", "upper", "verdict")
            found[name] = {**{key: row[key] for key in keys}, "groups": enough}
    return found


def validation_gaps(point: Point, min_count: float) -> Gaps:
    """Gaps on the validation rows, counted as an audit counts them.

    The search counts every group that has a row. A criterion that cannot be estimated among groups
    of ``min_count`` rows is missing here.
    """
    found = {name: point.widest(name, min_count=min_count) for name in point.gaps}
    return {
        name: {"gap": rates.gap, "groups": int(rates.counted.any(0).sum())}
        for name, rates in found.items()
        if rates.gap == rates.gap
    }


def describe_validation(point: Point, compared: Gaps) -> dict[str, Any]:
    """Figures of the validation rows; ``compared`` is a gap without groups of too few rows."""
    names = ("gap", "lower", "upper", "noise_floor", "confidence")
    return {
        "rows": point.n_rows,
        "error": point.error,
        "balanced_error": point.balanced_error,
        "gaps": {
            name: {
                **{key: getattr(gap, key) for key in names},
                "compared": compared[name]["gap"] if name in compared else None,
            }
            for name, gap in point.gaps.items()
        },
        "worst_group": point.worst_group,
        "worst_group_accuracy": point.worst_group_accuracy,
        "share_favored": point.share_favored,
        "levelled_down": list(point.levelled_down),
        "member": point.member,
        "epoch": point.epoch,
    }


@final
@dataclass(frozen=True, eq=False)
class Change:
    """Rows of the k groups of a grouping that gain, and that lose, the favorable label."""

    gained: np.ndarray
    lost: np.ndarray
    count: np.ndarray

    @property
    def net_share(self) -> np.ndarray:
        """Gained less lost, of all rows of the group."""
        return (self.gained - self.lost) / self.count

    def direction(self, confidence: float) -> np.ndarray:
        """1 gains, -1 loses, 0 where a coin might have decided who of the changed ones gains.

        Notes
        -----
        The exact sign test of the rows that changed (McNemar's), two-sided, group by group.
        """
        fewer, changed = np.minimum(self.gained, self.lost), self.gained + self.lost
        p_value = np.minimum(1, 2 * binom.cdf(fewer, changed, 0.5))
        return np.where(p_value <= 1 - confidence, np.sign(self.gained - self.lost), 0)

    def tally(self, confidence: float) -> dict[str, int]:
        """Rows that gain and lose, and groups that gain, lose or show no clear change."""
        direction = self.direction(confidence)
        return {
            "gained": int(self.gained.sum()),
            "lost": int(self.lost.sum()),
            "groups_gain": int((direction > 0).sum()),
            "groups_lose": int((direction < 0).sum()),
            "groups_same": int((direction == 0).sum()),
        }

    def take(self, kept: np.ndarray, confidence: float) -> dict[str, Any]:
        """Some of the groups, as plain columns."""
        return {
            "gained": self.gained[kept],
            "lost": self.lost[kept],
            "net_share": self.net_share[kept],
            "direction": self.direction(confidence)[kept],
        }


def changes_between(
    before: np.ndarray, after: np.ndarray, crossing: Groups, groupings: list[Grouping]
) -> dict[str, Change]:
    """Changes on each grouping, from whether rows are favored before and after, bool [n]."""
    k = len(crossing)
    gained = np.bincount(crossing.codes[after & ~before], minlength=k)
    lost = np.bincount(crossing.codes[before & ~after], minlength=k)
    found = {}
    for grouping in groupings:
        codes, size = crossing.parent_codes(grouping.attributes), len(grouping.names)
        sums = [np.bincount(codes, part, size) for part in (gained, lost, crossing.counts)]
        found[grouping.by] = Change(*(part.astype(np.int64) for part in sums))
    return found
