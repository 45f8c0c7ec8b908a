"""Gates: ``--fail-on "dp_gap.lower > 0.05"``, read by a small grammar and never evaluated.

rule   = verdict | gap [ "[" level "]" ] [ "." column ] sign number
gap    = criterion "_gap" | "any_gap"
column = "gap" | "lower" | "upper" | "p_value" | "p_adjusted"
sign   = ">" | ">=" | "<" | "<="
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from apfex.cli._errors import CommandError, nearest
from apfex.cli._screen import shown

if TYPE_CHECKING:
    import pandas as pd

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
    r"(?P<bound>\d*\.?\d+(e-?\d+)?)"
)
_NOT_ESTIMABLE = "not estimable"


@final
@dataclass(frozen=True)
class Rule:
    """What must not be the case; made by :func:`read_rule`."""

    text: str
    criterion: str = "any"
    by: str | None = None
    column: str = "gap"
    sign: str = ">"
    bound: float = 0.0
    verdict: str | None = None

    def rows(self, gaps: pd.DataFrame) -> pd.DataFrame:
        """The gaps that the rule is about; an error where there are none."""
        wanted = {"criterion": None if self.criterion == "any" else self.criterion, "by": self.by}
        for column, value in wanted.items():
            known = gaps[column].unique().tolist()
            if value is not None and value not in known:
                near = nearest(value, known)
                hint = f"did you mean {near!r}?" if near else f"audited are {', '.join(known)}."
                what = "criterion" if column == "criterion" else "level"
                raise CommandError(
                    f"--fail-on '{shown(self.text)}': the {what} '{shown(value)}' is not audited; "
                    f"{hint}"
                )
            gaps = gaps if value is None else gaps.loc[gaps[column].eq(value)]
        return gaps

    def check(self, gaps: pd.DataFrame, *, allow_not_estimable: bool) -> Checked:
        """Rows where the rule holds, or cannot be said not to."""
        rows = self.rows(gaps)
        if self.verdict is not None:
            holds = rows["verdict"] == self.verdict
        else:
            holds = _SIGNS[self.sign](rows[self.column], self.bound)
        unknown = rows["verdict"] == _NOT_ESTIMABLE
        hit = holds if allow_not_estimable else holds | unknown
        return Checked(self, rows.loc[hit & ~unknown], rows.loc[unknown], bool(hit.any()))


@final
@dataclass(frozen=True, eq=False)
class Checked:
    """A rule, the rows where it holds, those that cannot be estimated, and whether it stops."""

    rule: Rule
    holds: pd.DataFrame
    unknown: pd.DataFrame
    hit: bool

    def lines(self, most: int = 3) -> list[str]:
        """What to tell the user."""
        found = [
            f"{row['criterion']} by {shown(row['by'])}: {row['gap']:.3f} "
            f"({row['lower']:.3f} to {row['upper']:.3f})"
            for row in self.holds.sort_values("gap", ascending=False).to_dict("records")
        ]
        found += [
            f"{row['criterion']} by {shown(row['by'])}: {_NOT_ESTIMABLE}, too few rows"
            for row in self.unknown.to_dict("records")
        ]
        more = [f"and {len(found) - most} more"] if len(found) > most else []
        return found[:most] + more

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "rule": self.rule.text,
            "hit": self.hit,
            "gaps": self.holds.to_dict("records"),
            "not_estimable": self.unknown.filter(["criterion", "by"]).to_dict("records"),
        }


def read_rule(text: str) -> Rule:
    """Read a rule, or say what is wrong with it."""
    from apfex.metrics import CRITERIA, read_criteria

    if text.strip() in _VERDICTS:
        return Rule(text.strip(), verdict=text.strip())
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise CommandError(
            f"--fail-on must read as 'dp_gap > 0.1', 'dp_gap.lower > 0.05', 'tpr_gap[sex].upper > "
            f"0.2' or 'violation', got '{shown(text)}'."
        )
    criterion, column = match["criterion"], match["column"] or "gap"
    if criterion != "any" and criterion not in CRITERIA:
        known = [f"{name}_gap" for name in (*CRITERIA, "any")]
        raise CommandError(_unknown(text, f"{criterion}_gap", known))
    if column not in _COLUMNS:
        raise CommandError(_unknown(text, column, _COLUMNS))
    criterion = criterion if criterion == "any" else read_criteria(criterion)[0]
    by = None if match["by"] is None else match["by"].strip()
    return Rule(text.strip(), criterion, by, column, match["sign"], float(match["bound"]))


def _unknown(text: str, found: str, known: Sequence[str]) -> str:
    near = nearest(found, known)
    hint = f"did you mean {near}?" if near else f"known are {', '.join(known)}."
    return f"--fail-on '{shown(text)}': there is no {found}; {hint}"
