"""The first screen in plain words: what was decided, for whom, how far from the limit, how sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import pandas as pd

from apfex.auditing import Audit, about_strata, worst_first
from apfex.groups import grouping_name
from apfex.plain import beside
from apfex.report._caveats import REMEDY
from apfex.report._constant import Gain
from apfex.report._rates import title_of

_TIMES = " \u00d7 "
_THERE = " on the validation rows"
"""Ends the name of a loss that only those rows know."""
_NAMED = 3
Text = list[Any]
"""Parts of a sentence: text, and ``{"group": name}`` for a name from data."""

SAYS = {
    "violation": "The gap exceeds the limit.",
    "inconclusive": "Too little data to tell whether the gap exceeds the limit.",
    "not estimable": "Too few rows to measure the gap.",
    "within tolerance": "The gap is within the limit.",
}


@final
@dataclass(frozen=True)
class Choice:
    """How a point came to be the proposed one.

    Attributes
    ----------
    place, chosen, baseline : int
        Of this point, of the proposed one, and of the one that others are compared with.
    by : {"bounds", "nearest", "hand"}
        Whether the proposed point meets the limits, comes closest, or was taken by hand.
    bounds : mapping
        The limits by criterion, on the validation rows.
    gaps : mapping
        The gaps of this point there.
    is_trivial : bool
        Whether all points are.
    without_goal : bool
        Whether the one that others are compared with was trained without any fairness goal.
    """

    place: int
    chosen: int
    baseline: int
    by: str
    bounds: Mapping[str, float]
    gaps: Mapping[str, float]
    is_trivial: bool
    without_goal: bool


def worst_gaps(gaps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The most alarming gap of each criterion over all groupings, the most alarming first.

    As :func:`apfex.auditing.worst_first` has them: by verdict, then by the lower end and the gap.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for gap in worst_first(pd.DataFrame(gaps)).to_dict("records"):
        found.setdefault(gap["criterion"], gap)
    return list(found.values())


def summarize_audit(
    audit: Audit,
    gaps: Sequence[Mapping[str, Any]],
    worst: Sequence[Mapping[str, Any]],
    gain: Gain | None,
    favorable: str,
) -> dict[str, Any]:
    """The summary of decisions that somebody else made.

    Parameters
    ----------
    gaps : sequence of mappings
        As described, of all criteria and groupings.
    worst : sequence of mappings
        Groups of the crossing with few favorable decisions; those ``clearly_below`` are surely
        below all rows.

    Returns
    -------
    dict
        ``headline``, ``parts``, and as ``larger`` the groups of fewer attributes than the crossing
        that surely get fewer favorable decisions than all.
    """
    whose = "these decisions"
    parts = {
        "What was audited": [
            f"{audit.n_rows:,} decisions; {_percent(audit.share_favored)} of them are "
            f"“{favorable}”, the favorable one."
        ],
        "For whom": _for_whom(audit, gaps, worst),
        "How far from the limit": _distances(gaps, audit.settings.tolerance),
        "How sure": _how_sure(audit, gaps),
    }
    if (within := about_strata(audit)) is not None:
        parts["Within strata"] = [within]
    if gain is not None:
        parts["Against doing nothing"] = _against_constant(gain, whose, of_front=False)
    return {**_told(audit.summary.text, parts), "larger": _larger(audit)}


def summarize_point(
    audit: Audit,
    gaps: Sequence[Mapping[str, Any]],
    worst: Sequence[Mapping[str, Any]],
    gain: Gain | None,
    favorable: str,
    choice: Choice,
    compared: Mapping[str, Any],
) -> dict[str, Any]:
    """The summary of one point of a front.

    Parameters
    ----------
    compared : mapping
        Against the point that others are compared with: ``error`` of both (``before``, ``now``),
        their ``gaps`` of the crossing, and the ``tally`` of who gains and loses; ``rows`` says
        which they are.
    """
    limit, whose = audit.settings.tolerance, "this model"
    error, rank = compared["now"], _rank_of(gain)
    decided: Text = [
        f"It decides “{favorable}” for {_percent(audit.share_favored)} of people, and is wrong for "
        f"{_percent(error)}."
    ]
    parts = {
        "What was decided": [_how_chosen(choice, rank) + " ", *decided],
        "For whom": _for_whom(audit, gaps, worst),
        "How far from the limit": _distances(gaps, limit),
        "How sure": _how_sure(audit, gaps, compared["rows"]),
        "Against doing nothing": [
            *([] if gain is None else _against_constant(gain, whose, of_front=True)),
            _against_baseline(choice, compared, rank),
        ],
    }
    return _told(_headline(choice, gaps, limit, error), parts)


def _told(headline: str, parts: Mapping[str, Text]) -> dict[str, Any]:
    told = [{"title": title, "text": text} for title, text in parts.items()]
    return {"headline": headline, "parts": told}


def _headline(choice: Choice, gaps: Sequence[Mapping[str, Any]], limit: float, error: float) -> str:
    wrong = f"It is wrong for {_percent(error)} of people."
    verdict = _verdict_sentence(gaps, limit)
    if choice.is_trivial:
        return (
            "No usable model was found: every one gives (nearly) everybody the same decision, or "
            f"is no better than that. {wrong} Train again: {REMEDY}."
        )
    if choice.place == choice.chosen and choice.by == "nearest":
        return f"No model meets your limit; this one comes closest. {verdict} {wrong}"
    return f"{verdict} {wrong}"


def _verdict_sentence(gaps: Sequence[Mapping[str, Any]], limit: float) -> str:
    """The most alarming verdict of all groupings, in a sentence."""
    first, *others = worst_gaps(gaps)
    verdict = first["verdict"]
    same = [first, *(gap for gap in others if gap["verdict"] == verdict)]
    what = " and ".join(title_of(gap["criterion"]).lower() for gap in same)
    by = f"between groups of {_by(first)}"
    clearest = "it is" if len(same) == 1 else "the clearest is"
    if verdict == "violation":
        over = f"This model exceeds the limit of {limit:g} for the gap in {what}"
        return f"{over}: {clearest} {beside(first['gap'], limit)} {by}."
    if verdict == "inconclusive":
        return (
            f"Too little data to tell whether this model exceeds the limit of {limit:g} for the "
            f"gap in {what}: {clearest} {beside(first['gap'], limit)} {by} among these rows."
        )
    if verdict == "not estimable":
        some = any(gap["verdict"] != verdict for gap in gaps)
        return f"Too few rows to measure the gap in {what}{f' {by}' if some else ''}."
    return f"This model keeps the limit of {limit:g} in every grouping that was compared."


def _rank_of(gain: Gain | None) -> str:
    """What ranks models, as it stands after "the lowest"; "error" where they are the accurate."""
    kind = "error" if gain is None else gain.constant.kind
    return kind.removesuffix(_THERE)


def _how_chosen(choice: Choice, rank: str) -> str:
    bounds = ", ".join(
        f"gap in {title_of(name).lower()} at most {limit:g}"
        for name, limit in choice.bounds.items()
    )
    reached = ", ".join(
        f"{beside(choice.gaps[name], limit)} in {title_of(name).lower()}"
        for name, limit in choice.bounds.items()
    )
    if choice.is_trivial:
        return f"Nothing: point {choice.place} is what was found, but it should not be used."
    if choice.place != choice.chosen:
        return f"Point {choice.place} is shown for comparison; point {choice.chosen} is proposed."
    if choice.by == "hand" or not choice.bounds:
        return f"Point {choice.place} was chosen by hand."
    if choice.by == "nearest":
        return (
            f"Point {choice.place} is proposed, though no model meets your limit ({bounds}): on "
            f"the validation rows its gap is {reached}."
        )
    has = f"has the lowest {rank}"
    return (
        f"Point {choice.place} is proposed: of the models that meet your limit ({bounds}) on the "
        f"validation rows it {'is the most accurate' if rank == 'error' else has} there."
    )


def _for_whom(
    audit: Audit, gaps: Sequence[Mapping[str, Any]], worst: Sequence[Mapping[str, Any]]
) -> Text:
    """Groups of any grouping that surely get fewer, single attributes first."""
    told: Text = [f"{audit.n_groups:,} groups of {_TIMES.join(audit.attributes)}."]
    sure = [*_larger(audit), *(row for row in worst if row["clearly_below"])]
    if not sure:
        apart = any(gap["criterion"] == "dp" and gap["verdict"] == "violation" for gap in gaps)
        though = ", though some groups surely get fewer than others" if apart else ""
        return [
            *told,
            f" No group surely gets fewer favorable decisions than people do on average{though}.",
        ]
    told.append(" Surely fewer favorable decisions than people get on average: ")
    for place, row in enumerate(sure[:_NAMED]):
        told += [", "] if place else []
        told += [{"group": row["group"]}, f" with {_percent(row['favored'])}"]
    rest = len(audit.worse_off) - _NAMED
    more = f", and {rest:,} more {'group' if rest == 1 else 'groups'}" if rest > 0 else ""
    return [*told, f"{more}; the average is {_percent(audit.share_favored)}."]


def _larger(audit: Audit) -> list[dict[Any, Any]]:
    """Groups of fewer attributes than the crossing that surely get fewer."""
    found: Any = audit.worse_off
    return found[found["by"] != grouping_name(audit.attributes)].to_dict("records")


def _distances(gaps: Sequence[Mapping[str, Any]], limit: float) -> Text:
    told: Text = []
    for gap in worst_gaps(gaps):
        title, says = title_of(gap["criterion"]), SAYS[gap["verdict"]]
        if not _is_known(gap):
            told.append(f"{title}: {says} ")
            continue
        away = gap["gap"] - limit
        where = f"{beside(abs(away), 0)} {'above' if away > 0 else 'below'} the limit of {limit:g}"
        where += " among these rows" if gap["verdict"] == "inconclusive" else ""
        found = beside(gap["gap"], limit)
        told.append(f"{title}: {found} between groups of {_by(gap)}, {where}. {says} ")
    return told


def _how_sure(audit: Audit, gaps: Sequence[Mapping[str, Any]], rows: str = "rows") -> Text:
    told = [
        f"{title_of(gap['criterion']).lower()} {beside(gap['lower'], audit.settings.tolerance)} "
        f"to {beside(gap['upper'], audit.settings.tolerance)} "
        f"({gap['groups_compared']:,} of {gap['groups']:,} groups compared)"
        for gap in worst_gaps(gaps)
        if _is_known(gap)
    ]
    sure = f"Measured on {audit.n_rows:,} {rows}"
    if not told:
        return [f"{sure}: too few to measure any gap."]
    confidence = 100 * audit.settings.confidence
    return [f"{sure}. With {confidence:g}% confidence the gaps lie between: {'; '.join(told)}."]


def _against_constant(gain: Gain, whose: str, *, of_front: bool) -> Text:
    constant = gain.constant
    is_share = not constant.kind.endswith(_THERE)  # a cost has its own unit
    size = f"{100 * abs(gain.size):.1f} points" if is_share else f"{abs(gain.size):.3f}"
    better = f"{size} {'lower' if gain.size > 0 else 'higher'}"
    better = better if abs(gain.size) > 0.0005 else "which is the same"
    its, own = (
        _percent(loss) if is_share else f"{loss:.3f}" for loss in (constant.ranked, gain.error)
    )
    article = "an" if constant.kind.startswith("error") else "a"
    told = (
        f"Deciding without looking ({constant.text}) would have {article} {constant.kind} of "
        f"{its}; that of {whose} is {own}, {better}."
    )
    if of_front and gain.share == gain.share:
        told += f" That is {100 * gain.share:.0f}% of the way to the best model."
    return [told]


def _against_baseline(choice: Choice, compared: Mapping[str, Any], rank: str) -> str:
    base = choice.baseline
    which = (
        "the model trained without any fairness goal"
        if choice.without_goal
        else "the model that is most accurate on the validation rows"
        if rank == "error"
        else f"the model with the lowest {rank} on the validation rows"
    )
    if choice.place == base:
        return f" This is {which}: the others are compared with it."
    more = 100 * (compared["now"] - compared["before"])
    clauses = [f"the error is {abs(more):.1f} points {'higher' if more > 0 else 'lower'}"]
    if abs(more) < 0.05:
        clauses = ["the error is the same"]
    for name, (before, now) in compared["gaps"].items():
        if before is not None and now is not None:
            moved = f"is {now:.3f} instead of" if f"{now:.3f}" != f"{before:.3f}" else "stays at"
            clauses.append(f"the gap in {title_of(name).lower()} {moved} {before:.3f}")
    tally = compared["tally"]
    gain, lose = tally["groups_gain"], tally["groups_lose"]
    who = (
        "no group clearly gains or loses favorable decisions"
        if not gain and not lose
        else f"{gain:,} {'group' if gain == 1 else 'groups'} clearly "
        f"{'gains' if gain == 1 else 'gain'} favorable decisions and {lose:,} "
        f"{'loses' if lose == 1 else 'lose'} some"
    )
    return f" Against {which} (point {base}), {', '.join(clauses)}; {who}."


def _by(gap: Mapping[str, Any]) -> str:
    return gap["by"].replace(" x ", _TIMES)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def _is_known(gap: Mapping[str, Any]) -> bool:
    return gap["gap"] is not None and gap["gap"] == gap["gap"]
