"""The two tables that people look at: gaps, and worst-off groups; cells as short text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import pandas as pd

from apfex.auditing._verdicts import VERDICTS
from apfex.groups import grouping_name

if TYPE_CHECKING:
    from apfex.auditing._audit import Audit

Style = Callable[[object], str]


@final
@dataclass(frozen=True)
class TextTable:
    """A title, columns, rows of cells and how many rows are left out."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left_out: str


def worst_first(gaps: pd.DataFrame) -> pd.DataFrame:
    """Rows of gaps by verdict, the most alarming first, then by the lower end and the gap.

    Examples
    --------
    >>> verdicts = ["within tolerance", "not estimable", "violation"]
    >>> gaps = pd.DataFrame({"verdict": verdicts, "lower": 0.0, "gap": 0.0})
    >>> worst_first(gaps)["verdict"].tolist()
    ['violation', 'not estimable', 'within tolerance']
    """
    rank = [VERDICTS.index(verdict) for verdict in gaps["verdict"]]
    order = gaps.assign(_rank=rank).sort_values(
        ["_rank", "lower", "gap"], ascending=[True, False, False], kind="stable"
    )
    return order.drop(columns="_rank")


def gaps_table(audit: Audit, most: int, style: Style) -> TextTable:
    """Gaps, the worst first."""
    gaps = worst_first(audit.gaps)
    rows = [
        [
            row["criterion"],
            style(row["by"]),
            number(row["gap"]),
            between(row["lower"], row["upper"]),
            number(row["noise_floor"]),
            number(row["p_adjusted"]),
            row["verdict"],
        ]
        for row in gaps.head(most).to_dict("records")
    ]
    columns = ("criterion", "by", "gap", "interval", "noise floor", "p adjusted", "verdict")
    return TextTable("Gaps", columns, rows, _left_out(len(gaps), most, ".gaps"))


def worst_table(audit: Audit, most: int, style: Style) -> TextTable:
    """Groups with the fewest favorable decisions, as far as these are fewer than those of all."""
    worst = audit.worst(audit.n_groups, only_below=True)
    rows = [
        [
            style(row["group"]),
            f"{row['count']:,}",
            share(row["favored"]),
            f"{share(row['lower'])} to {share(row['upper'])}",
            points(row["difference"]),
            _driver(row, style),
        ]
        for row in worst.head(most).to_dict("records")
    ]
    columns = ("group", "rows", "favored", "interval", "to overall", "driven by")
    title = "Worst-off groups"
    if not audit.n_worse_off:
        title += ": none is clearly worse off" if rows else ": none, all fare alike"
    return TextTable(title, columns, rows, _left_out(len(worst), most, ".groups"))


def head_of(audit: Audit, style: Style) -> str:
    """What was audited, in a line."""
    settings = audit.settings
    return (
        f"Audit of {audit.n_rows:,} decisions, {audit.n_groups:,} groups of "
        f"{style(grouping_name(audit.attributes))}; {share(audit.share_favored)} favored (label "
        f"{style(settings.favorable_label)}); tolerance {settings.tolerance:g}, "
        f"{100 * settings.confidence:g}% confidence"
    )


def number(value: Any) -> str:
    """Three decimals; a dash where unknown."""
    return "-" if _unknown(value) else f"{value:.3f}"


def between(low: Any, high: Any) -> str:
    """An interval."""
    return "-" if _unknown(low) else f"{low:.3f} to {high:.3f}"


def share(value: Any) -> str:
    """A rate in percent."""
    return "-" if _unknown(value) else f"{100 * value:.1f}%"


def points(value: Any) -> str:
    """A difference of rates in percentage points."""
    return "-" if _unknown(value) else f"{100 * value:+.1f}"


def _driver(row: dict[str, Any], style: Style) -> str:
    if row["driver"] is None or row["driver"] != row["driver"]:
        return "-"
    return f"{style(row['driver'])} (others {share(row['others'])})"


def _unknown(value: Any) -> bool:
    return value is None or math.isnan(value)


def _left_out(n: int, shown: int, where: str) -> str:
    return f"{n - shown:,} more in {where}" if n > shown else ""
