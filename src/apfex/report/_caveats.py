"""Why a point may not be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from apfex.auditing import Audit, worst_first
from apfex.front import Point
from apfex.report._choosing import Compared
from apfex.report._rates import title_of

_NEARLY_ALL = 0.995


def doubts_of_choice(point: Point, levelled: list[str], baseline: int) -> list[dict[str, Any]]:
    """What the search itself knew of a point, and whether fresh rows agree."""
    found = []
    if point.trivial:
        found.append(
            _doubt(
                "trivial",
                "Trivial: on the rows that chose it, it gives (nearly) everybody one label, or is "
                "no better than that. Its gaps are small for want of decisions.",
            )
        )
    if levelled:
        found.append(
            _doubt(
                "levelled_down",
                f"Levelled down: against point {baseline} no group clearly gains favorable "
                "decisions, and these clearly lose some.",
                levelled,
            )
        )
    elif point.levelled_down:
        found.append(
            _doubt(
                "levelled_down",
                "Levelled down on the rows that chose it, though not clearly on these: there no "
                "group gained favorable decisions, and these lost some.",
                list(point.levelled_down),
            )
        )
    return found


def doubts_of_decisions(
    decided: np.ndarray,
    error: float,
    y: np.ndarray,
    weight: np.ndarray | None,
    classes: Sequence[str],
) -> list[dict[str, Any]]:
    """Whether decisions of these rows are as good as none; classes in words.

    These are facts of the rows at hand, shown as such. Whether a point is *trivial* was settled
    by the rows that chose it (:func:`apfex.metrics.is_trivial`).
    """
    shares = np.bincount(decided, weight, len(classes)) / _total(decided, weight)
    if shares.max() >= _NEARLY_ALL:
        label = classes[int(shares.argmax())]
        return [
            _doubt(
                "constant",
                f"{100 * shares.max():.1f}% of these rows get one label, “{label}”: gaps are small "
                "for want of decisions.",
            )
        ]
    truth = np.bincount(y, weight, len(classes)) / _total(y, weight)
    constant = 1 - float(truth.max())
    if error < constant:
        return []
    return [
        _doubt(
            "no_better",
            f"No more accurate on these rows than “{classes[int(truth.argmax())]}” for everybody, "
            f"which is wrong for {100 * constant:.1f}%.",
        )
    ]


def doubts_of_gaps(
    chosen: Mapping[str, Compared], fresh: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Gaps that are surely larger than the rows that chose the point made them look.

    Parameters
    ----------
    chosen : mapping from criterion to its gap on the rows that chose
    fresh : mapping from criterion to ``gap``, ``lower``, ``upper`` and ``groups`` on fresh rows
    """
    return [
        _doubt(
            "flattered",
            f"Looked better than it is: on the rows that chose it, its gap in "
            f"{title_of(name).lower()} was {one.gap:.3f}; on these it is {_told(fresh[name])}."
            f"{_other_groups(one.groups, fresh[name]['groups'])}",
        )
        for name, one in chosen.items()
        if name in fresh and fresh[name]["lower"] > one.gap
    ]


def _other_groups(there: int, here: int) -> str:
    if there == here:
        return ""
    return f" Part of that may be the groups: {there} had enough rows there, {here} have here."


def doubts_of_growth(
    own: Mapping[str, Mapping[str, Any]], before: Mapping[str, Mapping[str, Any]], baseline: int
) -> list[dict[str, Any]]:
    """Gaps that are larger than at the starting point: surely, or above the tolerance only now.

    Parameters
    ----------
    own, before : mapping from criterion to ``gap``, ``lower``, ``upper`` and ``verdict``
        Of this point, and of the starting point, on the same rows.
    """
    found = []
    for name in (name for name in own if name in before):
        now, then = own[name], before[name]
        is_new = now["verdict"] == "violation" != then["verdict"]
        if now["lower"] > then["gap"] or (is_new and now["gap"] > then["gap"]):
            above = " It is now surely above the tolerance." if is_new else ""
            text = (
                f"The gap in {title_of(name).lower()} is larger than at point {baseline}: "
                f"{_told(now)}, there {_told(then)}.{above}"
            )
            found.append(_doubt("gap_grew", text))
    return found


def doubts_of_verdicts(audit: Audit) -> list[dict[str, Any]]:
    """Gaps on any level that are surely above the tolerance, one doubt a criterion."""
    found = []
    worst: Any = worst_first(audit.gaps)
    for name in audit.settings.criteria:
        above = worst[(worst["criterion"] == name) & (worst["verdict"] == "violation")]
        if above.empty:
            continue
        first, *others = above.to_dict("records")
        also = f", and by {', '.join(row['by'] for row in others)}" if others else ""
        text = (
            f"The gap in {title_of(name).lower()} is surely above the tolerance "
            f"{audit.settings.tolerance:g}: {_told(first)} by {first['by']}{also}."
        )
        found.append(_doubt("violation", text))
    return found


def _told(gap: Mapping[str, Any]) -> str:
    return f"{gap['gap']:.3f} ({gap['lower']:.3f} to {gap['upper']:.3f})"


def doubts_of_all(*, fresh: bool, group_thresholds: bool) -> list[dict[str, Any]]:
    """What holds for every point of a front."""
    found = []
    if not fresh:
        found.append(
            _doubt(
                "chosen_on_these_rows",
                "Measured on rows that also chose the points: errors and gaps look smaller than "
                "they are. Measure it on rows that fit has not seen.",
            )
        )
    if group_thresholds:
        found.append(
            _doubt(
                "group_thresholds",
                "Decides by the group of the row itself: people with the same inputs are treated "
                "differently. That may not be allowed where it is to be used.",
            )
        )
    return found


def doubts_of_audit(notes: tuple[str, ...]) -> list[dict[str, Any]]:
    """Notes of an audit, as small groups and weights."""
    return [_doubt("note", note) for note in notes]


def _doubt(kind: str, text: str, groups: list[str] | None = None) -> dict[str, Any]:
    return {"kind": kind, "text": text, "groups": groups or []}


def _total(rows: np.ndarray, weight: np.ndarray | None) -> float:
    return float(len(rows) if weight is None else weight.sum())
