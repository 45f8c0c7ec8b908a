"""The headline of an audit: its worst verdict, in a record and in plain sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pandas as pd

from apfex.auditing._verdicts import (
    VERDICTS,
    Tested,
    Verdict,
    surely_above,
    verdict_of,
    worst_first,
)
from apfex.metrics import CRITERIA, TITLES, GroupRates, surest_pair
from apfex.plain import beside

if TYPE_CHECKING:
    from apfex.auditing._result import Audit

_FEW_CASES = 5
"""Cases below which a reader is told how many a rate rests on."""
_NOTED = 4


@final
@dataclass(frozen=True)
class AuditSummary:
    """What an audit says at first glance: the worst verdict of all groupings and criteria.

    Attributes
    ----------
    verdict : str
        The most alarming of all rows of ``gaps``.
    text : str
        The same in two to four sentences; the first holds the verdict.
    criterion, by : str
        The row of ``gaps`` that it is about: of those with this verdict the one with the largest
        lower end, or upper end where all are within the limit.
    gap, lower, upper : float
        Of that row; NaN where it is not estimable.
    limit : float
        The tolerance of the audit.
    excess : float
        The gap less the limit.
    confidence : float
    low_group, high_group : str or None
        For a violation, the two groups that most surely lie apart; None for any other verdict,
        because the rows then do not show who is worse off.
    low_rate, high_rate : float
        Their rates.
    few_cases : bool
        Whether the difference of these two rests on fewer than five cases.
    stands_corrected : bool or None
        Whether a violation is left once all gaps are taken together (Holm); None for any other
        verdict.
    stratum : str or None
        Where no gap of all rows is a violation, but one within a stratum of control features: the
        stratum of that row of ``gaps_within``. Groups are not named then.
    groups_compared, groups : int
        Groups of that row that are compared, and all of them.
    verdicts : mapping from verdict to int
        Rows of ``gaps`` with each verdict.

    Examples
    --------
    >>> from apfex import audit
    >>> sex, decided = ["F"] * 200 + ["M"] * 200, [0, 0, 0, 1] * 50 + [0, 1] * 100
    >>> found = audit(None, decided, sensitive_features={"sex": sex}, criteria="dp").summary
    >>> found.verdict, found.low_group, found.high_group
    ('violation', 'sex=F', 'sex=M')
    >>> print(found.text.split(": ")[0])
    The gap exceeds the limit
    """

    verdict: Verdict
    text: str
    criterion: str
    by: str
    gap: float
    lower: float
    upper: float
    limit: float
    excess: float
    confidence: float
    low_group: str | None
    low_rate: float
    high_group: str | None
    high_rate: float
    few_cases: bool
    stands_corrected: bool | None
    stratum: str | None
    groups_compared: int
    groups: int
    verdicts: Mapping[str, int]


def summarize(audit: Audit, tested: Sequence[Tested]) -> AuditSummary:
    """Find the worst row of the gaps, and say it."""
    one, limit = tested[_place_of_worst(audit.gaps)], audit.settings.tolerance
    verdict = verdict_of(one.interval.lower, one.interval.upper, limit)
    pair, stands = _Pair(), None
    if verdict == "violation":
        pair = _surest(one)
        bounds = [(other, limit) for other in tested]
        stands = any(surely_above(bounds, audit.settings.confidence))
    all_verdicts = audit.gaps["verdict"].tolist()
    found = {name: all_verdicts.count(name) for name in VERDICTS}
    facts: dict[str, Any] = {
        "verdict": verdict,
        "criterion": one.criterion,
        "by": one.by,
        "gap": one.interval.gap,
        "lower": one.interval.lower,
        "upper": one.interval.upper,
        "limit": limit,
        "excess": one.interval.gap - limit,
        "confidence": audit.settings.confidence,
        "low_group": pair.low,
        "low_rate": pair.low_rate,
        "high_group": pair.high,
        "high_rate": pair.high_rate,
        "few_cases": pair.rests_on is not None,
        "stands_corrected": stands,
        "stratum": None,
        "groups_compared": one.groups_compared,
        "groups": one.n_groups,
        "verdicts": found,
    }
    told = AuditSummary(text="", **facts)
    sentences = [
        _about_everyone(audit),
        _about_the_gap(told, pair, audit.settings.min_count),
        f"Mind that this rests on {pair.rests_on}." if pair.rests_on else "",
        _about_all(told),
        _about_chance(told),
        _about_groups(told, audit.settings.min_count),
    ]
    text = " ".join(filter(None, sentences))
    if audit.gaps_within is None:
        return AuditSummary(text=text, **facts)
    strata = _Strata.of(audit.gaps_within)
    if verdict == "violation" or strata.worst["verdict"] != "violation":
        return AuditSummary(text=f"{text} {strata.count()}", **facts)
    row = strata.worst
    names = ("verdict", "criterion", "by", "gap", "lower", "upper", "groups_compared", "groups")
    facts |= {name: row[name] for name in names}
    facts |= {"excess": row["gap"] - limit, "stratum": strata.name}
    facts["few_cases"] = bool(row["rests_on"])
    mind = f" Mind that this rests on {row['rests_on']}." if row["rests_on"] else ""
    gap, lower = _points(row["gap"], limit), _points(row["lower"], limit)
    first = (
        f"The gap exceeds the limit within strata: within {strata.name}, the "
        f"{what_differs(row['criterion'])} by {row['by']} differs by {gap} points, "
        f"{_points(facts['excess'], 0)} more than the limit of {100 * limit:g} points, and by at "
        f"least {lower} with {100 * audit.settings.confidence:g}% confidence.{mind}"
    )
    return AuditSummary(text=f"{first} {strata.count()} Over all strata: {text}", **facts)


def about_strata(audit: Audit) -> str | None:
    """In how many strata of control features a gap exceeds the limit; None without any."""
    return None if audit.gaps_within is None else _Strata.of(audit.gaps_within).count()


def _place_of_worst(gaps: pd.DataFrame) -> int:
    """The row that the headline is about; where all are within the limit, that nearest to it."""
    order = worst_first(gaps)
    if order["verdict"].iloc[0] == "within tolerance":
        order = order.sort_values("upper", ascending=False, kind="stable")
    return int(order.index.tolist()[0])


def rests_on(tested: Sequence[Tested], limit: float) -> list[str | None]:
    """Of each gap the cases that a violation rests on, where these are fewer than five."""
    return [_surest(one).rests_on if one.interval.lower > limit else None for one in tested]


def few_cases(gaps: pd.DataFrame) -> list[str]:
    """A note of the violations that rest on fewer than five cases."""
    few: Any = gaps[gaps["rests_on"].notna()]
    controls = _controls(few) if "count" in few else []
    found = [
        f"{row['criterion']} by {row['by']}{_within(row, controls)} ({row['rests_on']})"
        for row in few.to_dict("records")
    ]
    if not found:
        return []
    more = f" and {len(found) - _NOTED} more" if len(found) > _NOTED else ""
    where = " within strata" if controls else ""
    return [
        f"Violations{where} that rest on fewer than {_FEW_CASES} cases: "
        f"{'; '.join(found[:_NOTED])}{more}."
    ]


def _controls(within: pd.DataFrame) -> list[str]:
    """Columns of the control features: those before the rows of a stratum."""
    return list(within.columns[: list(within.columns).index("count")])


def _within(row: Mapping[Any, Any], controls: Sequence[str]) -> str:
    return " within " + ", ".join(f"{name}={row[name]}" for name in controls) if controls else ""


@final
@dataclass(frozen=True)
class _Pair:
    """Two groups that surely lie apart, and the cases that it rests on where these are few."""

    low: str | None = None
    low_rate: float = math.nan
    high: str | None = None
    high_rate: float = math.nan
    of: str = ""
    rests_on: str | None = None


def _surest(one: Tested) -> _Pair:
    """The pair of groups that makes the lower end, of all rates and classes."""
    n_tests = int(sum(table.usable.sum() for table in one.tables))
    alpha = (1 - one.interval.confidence) / n_tests
    found = []
    for table in one.tables:
        for code in np.flatnonzero(table.usable):
            places = np.flatnonzero(table.counted[code])
            x, n = table.successes[code][places], table.totals[code][places]
            least, low, high = surest_pair(x, n, critical=one.interval.critical, alpha=alpha)
            found.append((least, table, int(code), int(places[low]), int(places[high])))
    _, table, code, low, high = max(found, key=lambda pair: pair[0])
    names, rates = table.counts.names, table.rates[code]
    of = TITLES[table.rate].lower()
    of += f" of {table.classes[code]}" if table.classes else ""
    return _Pair(
        names[low],
        float(rates[low]),
        names[high],
        float(rates[high]),
        of,
        _rests_on(table, code, low, high),
    )


def _rests_on(table: GroupRates, code: int, low: int, high: int) -> str | None:
    """Cases that are few: positive ones of the higher group, negative ones of the lower."""
    x, n = table.successes[code], table.totals[code]
    few = [
        f"{cases} of {total} rows of {table.counts.names[place]}"
        for cases, total, place in ((n[low] - x[low], n[low], low), (x[high], n[high], high))
        if cases < _FEW_CASES
    ]
    return " and on ".join(few) if few else None


def _about_everyone(audit: Audit) -> str:
    if not audit.counts.is_constant:
        return ""
    return "All decisions are the same, so that no gap can show and none is shown to be absent."


def _about_the_gap(told: AuditSummary, pair: _Pair, min_count: float) -> str:
    limit = f"{100 * told.limit:g} points"
    gap, lower, upper = (_points(end, told.limit) for end in (told.gap, told.lower, told.upper))
    name = f"the {what_differs(told.criterion)} by {told.by}"
    sure = f"with {100 * told.confidence:g}% confidence"
    if told.verdict == "violation":
        apart = (
            f"{pair.low} has {100 * pair.low_rate:.1f}%, {pair.high} {100 * pair.high_rate:.1f}%"
        )
        of = "" if pair.of == what_differs(told.criterion) else f" ({pair.of})"
        if abs(pair.high_rate - pair.low_rate - told.gap) > 5e-4:  # other groups make the gap
            return (
                f"The gap exceeds the limit: {name} differs by at least {lower} "
                f"points {sure}, and the limit is {limit}. The clearest difference{of}: {apart}."
            )
        return (
            f"The gap exceeds the limit: {name} differs by {gap} points, {_points(told.excess, 0)} "
            f"more than the limit of {limit}, and by at least {lower} {sure}. The "
            f"clearest difference{of}: {apart}."
        )
    if told.verdict == "inconclusive":
        return (
            f"Too little data to tell whether the gap exceeds the limit: {name} differs by {gap} "
            f"points among these rows; in truth it may be anything from {lower} to "
            f"{upper} points ({100 * told.confidence:g}% confidence), and the limit "
            f"is {limit}."
        )
    if told.verdict == "not estimable":
        return (
            f"Too few rows to measure the gap: for {name} fewer than two groups have "
            f"{min_count:g} rows that count."
        )
    which = "the gap nearest to it" if sum(told.verdicts.values()) > 1 else "the gap"
    return (
        f"Within the limit of {limit}: {which}, of {name}, is {gap} points, and at most "
        f"{upper} {sure}."
    )


def _about_all(told: AuditSummary) -> str:
    n = sum(told.verdicts.values())
    if n < 2:
        return ""
    if told.verdicts[told.verdict] == n:
        every = f"all {n} gaps" if n > 2 else "both gaps"
        words = {
            "violation": f"{every.capitalize()} exceed the limit.",
            "inconclusive": f"The same holds for {every}.",
            "not estimable": f"The same holds for {every}.",
            "within tolerance": f"{every.capitalize()} are within it.",
        }
        return words[told.verdict]
    limit = "it" if told.verdicts["violation"] else "the limit"
    within = "it" if told.verdicts["violation"] or told.verdicts["inconclusive"] else "the limit"
    words = {
        "violation": ("exceeds the limit", "exceed the limit"),
        "inconclusive": (f"may exceed {limit} or not",) * 2,
        "not estimable": ("cannot be measured",) * 2,
        "within tolerance": (f"is within {within}", f"are within {within}"),
    }
    parts = [f"{n} {words[name][n > 1]}" for name, n in told.verdicts.items() if n]
    return f"Of {f'all {n}' if n > 2 else 'the two'} gaps, {', '.join(parts)}."


def _about_chance(told: AuditSummary) -> str:
    if told.stands_corrected is not False:
        return ""
    n = sum(told.verdicts.values())
    return f"Among {n} gaps, chance alone may show one like this: corrected for that, none is sure."


def _about_groups(told: AuditSummary, min_count: float) -> str:
    if told.groups_compared in (0, told.groups):
        return ""
    left_out = told.groups - told.groups_compared
    has = "has" if left_out == 1 else "have"
    return (
        f"Compared are {told.groups_compared:,} of {told.groups:,} groups; {left_out:,} {has} "
        f"fewer than {min_count:g} rows that count."
    )


@final
@dataclass(frozen=True, eq=False)
class _Strata:
    """The worst gap within strata, and what is known of how many of them."""

    controls: Sequence[str]
    worst: Mapping[Any, Any]
    found: Mapping[str, int]
    """Strata of which each of the sentences is true; those without any are left out."""

    @staticmethod
    def of(within: pd.DataFrame) -> _Strata:
        controls = _controls(within)
        parts: Any = within.groupby(controls, sort=False, dropna=False)["verdict"]
        said = [_about_stratum(set(verdicts)) for _, verdicts in parts]
        worst = worst_first(within).iloc[0].to_dict()
        found = {text: said.count(text) for text in _STRATUM if text in said}
        return _Strata(controls, worst, found)

    @property
    def name(self) -> str:
        return ", ".join(f"{name}={self.worst[name]}" for name in self.controls)

    def count(self) -> str:
        n, of = sum(self.found.values()), " x ".join(self.controls)
        if len(self.found) == 1:
            (text,) = self.found
            which = {1: "the one stratum", 2: "both strata"}.get(n, f"all {n} strata")
            return f"Within {which} of {of} {text}."
        parts = [f"in {many} {text}" for text, many in self.found.items()]
        return f"Of the {n} strata of {of}: {', '.join(parts)}."


_STRATUM = (
    "a gap exceeds the limit",
    "there is too little data to tell whether a gap exceeds the limit",
    "no comparison is possible",
    "some gaps cannot be measured",
    "every gap is within the limit",
)
"""What the verdicts of a stratum come to, the most alarming first."""


def _about_stratum(verdicts: Set[str]) -> str:
    above, unsure, alone, partly, within = _STRATUM
    if "violation" in verdicts:
        return above
    if "inconclusive" in verdicts:
        return unsure
    if "not estimable" in verdicts:
        return alone if len(verdicts) == 1 else partly
    return within


def what_differs(criterion: str) -> str:
    """A criterion as the quantity that differs between groups, in plain words.

    Examples
    --------
    >>> what_differs("dp"), what_differs("equalized_odds")
    ('selection rate', 'true or false positive rate')
    """
    if len(CRITERIA[criterion]) > 1:
        return "true or false positive rate"
    return TITLES[criterion].lower()


def _points(value: float, limit: float) -> str:
    return beside(100 * value, 100 * limit, 1)
