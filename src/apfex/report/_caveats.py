"""Caveats: why a model may not be trusted, and what to know of the rows. One list for all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, final

import numpy as np

from apfex.auditing import Audit, about_strata, worst_first
from apfex.front import Point
from apfex.metrics import NEAR_CONSTANT
from apfex.plain import beside, printable
from apfex.report._constant import Gain
from apfex.report._rates import title_of

_NEARLY_ALL = 0.995
_NAMED = 5

REMEDY = (
    "rank the models by balanced accuracy (--scoring balanced_accuracy), give the costs of the two "
    "kinds of error (--cost), or fix the share of people that is selected (--selection-rate)"
)
"""What to do about a front that is trivial."""

Gaps = Mapping[str, Mapping[str, Any]]
"""By criterion: ``gap``, its interval, its verdict, and the ``groups`` with enough rows."""


@final
@dataclass(frozen=True)
class Caveat:
    """A reason to look twice; made with the description, and shown wherever its point is.

    Attributes
    ----------
    code : str
        What it is, for programs: "trivial_front", "trivial", "constant", "no_better",
        "near_constant", "violation", "violation_within", "levelled_down", "gap_grew",
        "flattered", "seen_rows", "group_thresholds", "note"; and those of the data and of the
        training, as "leak", "sensitive_inputs" and "groups_left_out".
    level : {"warning", "note"}
        Whether it speaks against the point, or only helps to read its figures.
    text : str
    data : mapping
        What the text is about: ``groups`` by their names, or the ``criterion`` and its ``gap``.
    """

    code: str
    level: Literal["warning", "note"]
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """In words, for a terminal; of many groups the first are named."""
        groups = [printable(name, 80) for name in self.data.get("groups", ())]
        more = [f"{len(groups) - _NAMED:,} more"] if len(groups) > _NAMED else []
        names = f" ({'; '.join([*groups[:_NAMED], *more])})" if groups else ""
        return f"{printable(self.text)}{names}"


def caveats_of_search(point: Point, levelled: list[str], baseline: int) -> list[Caveat]:
    """What the search itself knew of a point, and whether the rows at hand agree.

    ``levelled`` are the groups that clearly lose favorable decisions on these rows.
    """
    found = []
    if point.trivial:
        text = (
            "Trivial: on the validation rows it gives (nearly) everybody one label, or is no "
            "better than that. Its gaps are small for want of decisions."
        )
        found.append(_warning("trivial", text))
    if levelled:
        text = (
            f"Levelled down: against point {baseline} no group clearly gains favorable "
            "decisions, and these clearly lose some."
        )
        found.append(_warning("levelled_down", text, groups=levelled))
    elif point.levelled_down:
        text = (
            "Levelled down on the validation rows, though not clearly on these: there no group "
            "gained favorable decisions, and these lost some."
        )
        found.append(_warning("levelled_down", text, groups=list(point.levelled_down)))
    return found


def caveats_of_decisions(
    shares: np.ndarray, gain: Gain | None, labels: Sequence[str]
) -> list[Caveat]:
    """Whether decisions of these rows are as good as none, or nearly; labels are in words.

    Parameters
    ----------
    shares : array of shape [c]
        Of the rows that get each label, by weight.
    gain : Gain, optional
        Against the constant decision; None where there are no labels to compare with.

    Notes
    -----
    These are facts of the rows at hand, shown as such. Whether a point is *trivial* was settled
    by the validation rows (:func:`apfex.metrics.is_trivial`).
    """
    if shares.max() >= _NEARLY_ALL:
        text = (
            f"{100 * shares.max():.1f}% of these rows get one label, "
            f"“{labels[int(shares.argmax())]}”: gaps are small for want of decisions."
        )
        return [_warning("constant", text)]
    if gain is None:
        return []
    constant = gain.constant
    if gain.size <= 0:
        text = (
            f"No more accurate on these rows than giving “{constant.label}” to everybody: its "
            f"{constant.kind} is {100 * gain.error:.1f}%, that of the constant decision "
            f"{100 * constant.ranked:.1f}%."
        )
        return [_warning("no_better", text)]
    if not gain.near_constant:
        return []
    if gain.flagged is not None:
        text = (
            "On the validation rows it is little better than giving one label to everybody; these "
            f"rows are too few to tell: its {constant.kind} is {100 * gain.error:.1f}%, that of "
            f"“{constant.label}” for everybody {100 * constant.ranked:.1f}%."
        )
        return [_warning("near_constant", text, gain=gain.size, share=gain.share)]
    text = (
        f"Little better than giving “{constant.label}” to everybody: its {constant.kind} is "
        f"{100 * gain.error:.1f}%, that of the constant decision {100 * constant.ranked:.1f}%, "
        f"that of the best model {100 * gain.best:.1f}%. It closes {100 * gain.share:.0f}% of "
        f"the way; less than {100 * NEAR_CONSTANT:.0f}% is flagged."
    )
    return [_warning("near_constant", text, gain=gain.size, share=gain.share)]


def caveats_of_verdicts(audit: Audit) -> list[Caveat]:
    """Gaps of any grouping that surely exceed the limit, one caveat a criterion."""
    found, limit = [], audit.settings.tolerance
    worst: Any = worst_first(audit.gaps)
    stands = audit.summary.stands_corrected is not False
    surely = "surely exceeds" if stands else "by itself surely exceeds"
    corrected = "" if stands else " Corrected for all gaps that are looked at, none is sure."
    for name in audit.settings.criteria:
        above = worst[(worst["criterion"] == name) & (worst["verdict"] == "violation")]
        if above.empty:
            continue
        first, *others = above.to_dict("records")
        also = f", and by {', '.join(row['by'] for row in others)}" if others else ""
        text = (
            f"Violation: the gap in {title_of(name).lower()} {surely} the limit of "
            f"{limit:g}. It is {_interval(first, limit)} by {first['by']}{also}."
            f"{_resting(first)}{corrected}"
        )
        found.append(_warning("violation", text, criterion=name, by=first["by"], gap=first["gap"]))
    return found


def caveats_of_strata(audit: Audit) -> list[Caveat]:
    """That gaps within strata of control features surely exceed the limit, or may exceed it."""
    within: Any = audit.gaps_within
    if within is None or (within["verdict"] == "within tolerance").all():
        return []
    if not (within["verdict"] == "violation").any():
        return [Caveat("note", "note", f"{about_strata(audit)}")]
    first = worst_first(within).iloc[0].to_dict()
    controls = list(within.columns[: list(within.columns).index("count")])
    where = ", ".join(f"{name}={first[name]}" for name in controls)
    limit = audit.settings.tolerance
    text = (
        f"Violation within strata: {about_strata(audit)} The gap in "
        f"{title_of(first['criterion']).lower()} by {first['by']} within {where} is "
        f"{_interval(first, limit)}; the limit is {limit:g}.{_resting(first)}"
    )
    data = {"criterion": first["criterion"], "by": first["by"], "gap": first["gap"]}
    return [_warning("violation_within", text, **data)]


def caveats_of_growth(gaps: Gaps, before: Gaps, baseline: int) -> list[Caveat]:
    """Gaps that are larger than at the starting point: surely, or above the limit only now.

    Parameters
    ----------
    gaps, before
        Of this point, and of the starting point, on the same rows.
    """
    found = []
    for name in (name for name in gaps if name in before):
        now, then = gaps[name], before[name]
        is_new = now["verdict"] == "violation" != then["verdict"]
        if now["lower"] > then["gap"] or (is_new and now["gap"] > then["gap"]):
            above = " It now surely exceeds the limit." if is_new else ""
            text = (
                f"The gap in {title_of(name).lower()} is larger than at point {baseline}: "
                f"{_interval(now)}, there {_interval(then)}.{above}"
            )
            data = {"criterion": name, "gap": now["gap"], "before": then["gap"]}
            found.append(_warning("gap_grew", text, **data))
    return found


def caveats_of_validation(gaps: Gaps, validation: Gaps) -> list[Caveat]:
    """Gaps that are surely larger than the validation rows made them look.

    Parameters
    ----------
    gaps, validation
        On the rows at hand, and on the validation rows.
    """
    found = []
    for name in (name for name in validation if name in gaps):
        now, then = gaps[name], validation[name]
        if now["lower"] > then["gap"]:
            text = (
                "Looked better than it is: on the validation rows its gap in "
                f"{title_of(name).lower()} was {then['gap']:.3f}; on these it is {_interval(now)}."
            )
            if then["groups"] != now["groups"]:
                text += (
                    f" Part of that may be the groups: {then['groups']} had enough rows there, "
                    f"{now['groups']} have here."
                )
            data = {"criterion": name, "gap": now["gap"], "validation": then["gap"]}
            found.append(_warning("flattered", text, **data))
    return found


def caveats_of_front(
    *, fresh: bool, group_thresholds: bool, is_trivial: bool = False
) -> list[Caveat]:
    """What holds for every point of a front."""
    found = []
    if is_trivial:
        text = (
            "Every model that was found gives (nearly) everybody the same decision, or is no "
            f"better than that: none is of use. Train again: {REMEDY}."
        )
        found.append(_warning("trivial_front", text))
    if not fresh:
        text = (
            "Measured on rows that the models were trained on or chosen by: errors and gaps look "
            "smaller than they are. Measure it on rows that fit has not seen."
        )
        found.append(_warning("seen_rows", text))
    if group_thresholds:
        text = (
            "Decides by the group of the row itself: people with the same inputs are treated "
            "differently. That may not be allowed where it is to be used."
        )
        found.append(_warning("group_thresholds", text))
    return found


def caveats_of_notes(audit: Audit) -> list[Caveat]:
    """Notes of an audit, as of small groups and weights."""
    return [Caveat("note", "note", note) for note in audit.notes]


def _warning(code: str, text: str, **data: Any) -> Caveat:
    return Caveat(code, "warning", text, data)


def _resting(gap: Mapping[str, Any]) -> str:
    """The cases of a violation that rests on few."""
    return f" This rests on {gap['rests_on']}." if gap["rests_on"] else ""


def _interval(gap: Mapping[str, Any], limit: float = math.nan) -> str:
    found, lower, upper = (beside(gap[name], limit) for name in ("gap", "lower", "upper"))
    return f"{found} ({lower} to {upper})"
