"""Gates: rules such as ``dp_gap.lower > 0.05``, read by a small grammar and never evaluated.

rule   = verdict | gap [ "[" grouping "]" ] [ "." column ] sign number
gap    = criterion "_gap" | "any_gap"
column = "gap" | "lower" | "upper" | "p_value" | "p_adjusted"
sign   = ">" | ">=" | "<" | "<="

Rules that are checked together are one gate, corrected for the number of gaps that it looks at.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from apfex.arguments import as_names
from apfex.plain import beside, printable
from apfex.sources import RunError, hint, unknown

if TYPE_CHECKING:
    import pandas as pd

    from apfex.auditing import Audit

_COLUMNS = ("gap", "lower", "upper", "p_value", "p_adjusted")
_VERDICTS = ("violation", "inconclusive")
_SIGNS: Mapping[str, Callable[[Any, float], Any]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_RULE = re.compile(
    r"(?P<criterion>\w+?)_gap\s*"
    r"(\[(?P<by>.+)\]\s*)?"
    r"(\.\s*(?P<column>\w+)\s*)?"
    r"(?P<sign>>=|<=|>|<)\s*"
    r"(?P<bound>\d*\.?\d+([eE][+-]?\d+)?)"
)
_NOT_ESTIMABLE = "not estimable"
_DECIMALS = 12


@final
@dataclass(frozen=True)
class GateRule:
    """What must not be the case; made by :func:`read_rule`."""

    text: str
    criterion: str = "any"
    by: str | None = None
    column: str = "gap"
    sign: str = ">"
    bound: float = 0.0
    verdict: str | None = None

    def __post_init__(self) -> None:
        """Refuse a bound that every gap would pass, or none."""
        if self.verdict is not None:
            return
        if not (0 <= self.bound < 1 or (self.bound == 1 and self.sign == ">=")):
            points = self.bound if 1 <= self.bound <= 100 else 5
            are = "point is" if points == 1 else "points are"
            raise RunError(
                f"{hint('fail_on')} '{self.text}' must have a number from 0 to below 1, as gaps, "
                f"their ends and p-values have; {points:g} {are} {points / 100:g}.",
                found=self.text,
            )
        if self.bound == 0 and self.sign in (">=", "<"):
            always = "always" if self.sign == ">=" else "never"
            raise RunError(
                f"{hint('fail_on')} '{self.text}' {always} holds, as gaps, their ends and p-values "
                "are at least 0; compare with a number above 0.",
                found=self.text,
            )

    def rows(self, gaps: pd.DataFrame) -> pd.DataFrame:
        """The gaps that the rule is about; an error where there are none."""
        wanted = {"criterion": None if self.criterion == "any" else self.criterion, "by": self.by}
        for column, value in wanted.items():
            known = gaps[column].unique().tolist()
            if value is not None and value not in known and value.strip() in known:
                value = value.strip()  # names may begin or end with blanks, and come first
            if value is not None and value not in known:  # the order of attributes says nothing
                same = [name for name in known if _attributes(name) == _attributes(value)]
                value = same[0] if len(same) == 1 else value
            if value is not None and value not in known:
                word = "criterion" if column == "criterion" else "grouping"
                said = f"{hint('fail_on')} '{self.text}': the {word} '{value}' is not audited"
                raise unknown(value, known, said, there="audited are")
            gaps = gaps if value is None else gaps.loc[gaps[column].eq(value)]
        return gaps

    @property
    def is_test(self) -> bool:
        """Whether it asks if gaps are surely above a bound, which many rows make likely."""
        return self.verdict is not None or (self.column == "lower" and self.sign in (">", ">="))

    def bound_in(self, tolerance: float) -> float:
        """What a gap must be surely above; a lower end of just the bound counts for ``>=``."""
        if self.verdict is not None:
            return tolerance
        return math.nextafter(self.bound, -1.0) if self.sign == ">=" else self.bound

    def holds(self, rows: Any) -> pd.Series:
        """Where it holds, each row by itself."""
        if self.verdict is not None:
            return rows["verdict"] == self.verdict
        return self._compare(rows[self.column])

    def n_within(self, gaps: pd.DataFrame) -> int:
        """How many gaps within strata it holds for, each by itself."""
        asked = (self.criterion in ("any", one) for one in gaps["criterion"])
        there = (self.by is None or self.by.strip() == one.strip() for one in gaps["by"])
        return sum(map(all, zip(asked, there, self.holds(gaps), strict=True)))

    def holds_among(self, rows: Any, corrected: Corrected) -> pd.Series:
        """Where it holds once it is corrected for all gaps that the gate looks at."""
        if self.is_test:
            bound = self.bound_in(corrected.tolerance)
            sure = rows.index.map(lambda row: corrected.above[row, bound]).to_series(rows.index)
            if self.verdict != "inconclusive":
                return sure.astype(bool)
            unsure = (rows["verdict"] == "violation") & ~sure.astype(bool)
            return self.holds(rows) | unsure
        if self.column == "p_value":
            return self._compare(corrected.p_values.loc[rows.index])
        return self.holds(rows)

    def said(self, row: Mapping[Any, Any]) -> str:
        """A gap with its interval, so that it is seen why the rule holds."""
        bound = math.nan if self.verdict is not None else self.bound
        gap, lower, upper = (
            beside(row[name], bound if name == self.column else math.nan)
            for name in ("gap", "lower", "upper")
        )
        return f"{gap} ({lower} to {upper})"

    def _compare(self, values: Any) -> pd.Series:
        """A gap of 0.55 - 0.5 is not above 0.05, though floating point has it so."""
        return _SIGNS[self.sign](values.round(_DECIMALS), self.bound)

    def n_tests(self, corrected: Corrected) -> int:
        """Gaps that it is corrected for."""
        if self.is_test:
            return len(corrected.above)
        return len(corrected.p_values) if self.column == "p_value" else 1


@final
@dataclass(frozen=True, eq=False)
class Corrected:
    """What rules ask together: whether rows are above bounds, and p-values adjusted (Holm)."""

    tolerance: float
    above: Mapping[tuple[int, float], bool]
    p_values: pd.Series


def _attributes(grouping: str) -> list[str]:
    return sorted(name.strip() for name in grouping.split(" x "))


def _resting(row: Mapping[Any, Any]) -> str:
    """The cases of a violation that rests on few."""
    return f", resting on {printable(row['rests_on'])}" if row.get("rests_on") else ""


@final
@dataclass(frozen=True, eq=False)
class GateResult:
    """A rule, the rows where it holds, those that cannot be estimated, and whether it stops.

    ``alone`` are rows where it holds for each by itself, but not once all ``n_tests`` gaps that the
    gate looks at are taken together. ``n_within`` gaps within strata of control features, at which
    no gate looks, are such that it holds for each by itself.
    """

    rule: GateRule
    hit: bool
    holds: pd.DataFrame
    unknown: pd.DataFrame
    alone: pd.DataFrame
    n_tests: int
    n_within: int = 0

    def lines(self, most: int = 3) -> list[str]:
        """What to tell the user."""
        found = [
            f"{row['criterion']} by {printable(row['by'])}: {self.rule.said(row)}{_resting(row)}"
            for row in self.holds.sort_values("gap", ascending=False).to_dict("records")
        ]
        found += [
            f"{row['criterion']} by {printable(row['by'])}: {_NOT_ESTIMABLE}, too few rows"
            for row in self.unknown.to_dict("records")
        ]
        found += [
            f"{row['criterion']} by {printable(row['by'])}: only by itself, not among "
            f"{self.n_tests} gaps"
            for row in self.alone.to_dict("records")
        ]
        more = [f"and {len(found) - most} more"] if len(found) > most else []
        return [*found[:most], *more, *self._within()]

    def _within(self) -> list[str]:
        """That it would hold within strata."""
        if not self.n_within:
            return []
        gaps = "gap" if self.n_within == 1 else "gaps"
        return [
            f"not looked at: {self.n_within:,} {gaps} within strata, each by itself; audit one "
            "stratum alone to gate on it"
        ]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "rule": self.rule.text,
            "hit": self.hit,
            "gaps": self.holds.to_dict("records"),
            "not_estimable": self.unknown.filter(["criterion", "by"]).to_dict("records"),
            "only_by_itself": self.alone.filter(["criterion", "by"]).to_dict("records"),
            "corrected_for": self.n_tests,
            "within_strata": self.n_within,
        }


def check_gates(
    audit: Audit,
    fail_on: str | GateRule | Sequence[str | GateRule],
    *,
    allow_not_estimable: bool = False,
) -> tuple[GateResult, ...]:
    """What rules find in an audit, all of them taken together as one gate.

    Parameters
    ----------
    audit : Audit
    fail_on : str or sequence of str
        Rules, such as "dp_gap > 0.1", "dp_gap[sex x race].lower > 0.05" or "violation"; those of
        :func:`read_rule`, too.
    allow_not_estimable : bool
        Whether gaps pass that too few rows speak of; a rule is hit by them otherwise.

    Returns
    -------
    tuple of GateResult
        One for each rule; ``hit`` says whether it stops.

    Notes
    -----
    A gate that asks whether any of 14 gaps is surely above a bound would be hit by chance far more
    often than each gap. What is asked of lower ends and verdicts is therefore asked by
    :meth:`apfex.auditing.Audit.exceeds`, and p-values are adjusted for all that are compared.
    Rules are about ``audit.gaps``. Gaps within strata stop nothing, but are told where a rule
    would hold for them.

    Examples
    --------
    >>> from apfex import audit
    >>> sex, decided = ["F"] * 200 + ["M"] * 200, [0, 0, 0, 1] * 50 + [0, 1] * 100
    >>> result = audit(None, decided, sensitive_features={"sex": sex}, criteria="dp")
    >>> [result.hit for result in check_gates(result, ["dp_gap.lower > 0.1", "dp_gap > 0.5"])]
    [True, False]
    """
    if not hasattr(audit, "gaps"):
        raise TypeError(f"audit must be an Audit, as from apfex.audit, got {type(audit).__name__}.")
    given = [fail_on] if isinstance(fail_on, GateRule) else as_names("fail_on", fail_on)
    rules = [rule if isinstance(rule, GateRule) else read_rule(rule) for rule in given]
    corrected = _correct(audit, rules)
    within = getattr(audit, "gaps_within", None)
    return tuple(
        replace(
            _check(rule, rule.rows(audit.gaps), corrected, allow_not_estimable),
            n_within=0 if within is None else rule.n_within(within),
        )
        for rule in rules
    )


def read_rule(text: str) -> GateRule:
    """Read a rule, or say what is wrong with it; see :func:`check_gates`.

    Examples
    --------
    >>> read_rule("tpr_gap[sex].upper > 0.2").bound
    0.2
    """
    from apfex.metrics import CRITERIA, read_criteria

    if text.strip() in _VERDICTS:
        return GateRule(text.strip(), verdict=text.strip())
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise RunError(
            f"{hint('fail_on')} must read as 'dp_gap > 0.1', 'dp_gap.lower > 0.05', "
            f"'tpr_gap[sex].upper > 0.2' or 'violation', got '{text}'.",
            found=text,
        )
    criterion, column = match["criterion"], match["column"] or "gap"
    if criterion != "any" and criterion not in CRITERIA:
        known = [f"{name}_gap" for name in (*CRITERIA, "any")]
        said = f"{hint('fail_on')} '{text}': there is no {criterion}_gap"
        raise unknown(f"{criterion}_gap", known, said, there="known are")
    if column not in _COLUMNS:
        said = f"{hint('fail_on')} '{text}': there is no {column}"
        raise unknown(column, _COLUMNS, said, there="known are")
    criterion = criterion if criterion == "any" else read_criteria(criterion)[0]
    sign, bound = match["sign"], float(match["bound"])
    return GateRule(text.strip(), criterion, match["by"], column, sign, bound)


def _correct(audit: Audit, rules: Sequence[GateRule]) -> Corrected:
    """Ask all that the rules need at once, so that it is corrected together (Holm)."""
    import pandas as pd

    from apfex.auditing import holm

    gaps, tolerance = audit.gaps, audit.settings.tolerance
    asked = dict.fromkeys(
        (row, rule.bound_in(tolerance))
        for rule in rules
        if rule.is_test
        for row in rule.rows(gaps).index
    )
    compared = dict.fromkeys(
        row
        for rule in rules
        if not rule.is_test and rule.column == "p_value"
        for row in rule.rows(gaps).index
    )
    above = dict(zip(asked, audit.exceeds(list(asked)), strict=True))
    p_values = gaps.loc[list(compared), "p_value"]
    adjusted = pd.Series(holm(p_values.tolist()), p_values.index, dtype=float)
    return Corrected(tolerance, above, adjusted)


def _check(
    rule: GateRule, rows: pd.DataFrame, corrected: Corrected, allow_not_estimable: bool
) -> GateResult:
    unknown = rows["verdict"] == _NOT_ESTIMABLE
    holds = rule.holds_among(rows, corrected) & ~unknown
    alone = rule.holds(rows) & ~holds & ~unknown
    hit = bool(holds.any() or (unknown.any() and not allow_not_estimable))
    n_tests = rule.n_tests(corrected)
    return GateResult(rule, hit, rows.loc[holds], rows.loc[unknown], rows.loc[alone], n_tests)
