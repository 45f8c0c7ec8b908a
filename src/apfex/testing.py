"""Fairness as a test: gates for pytest, or any script that may stop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import pandas as pd

from apfex.arguments import as_names, require_numbers
from apfex.auditing import Audit
from apfex.groups import grouping_name
from apfex.metrics import read_criteria
from apfex.plain import beside

__all__ = ["assert_gap"]

End = Literal["lower", "gap", "upper"]
_WORDS = {"lower": "the lower end", "gap": "the gap", "upper": "the upper end"}
_SHOWN = 5


def assert_gap(
    audit: Audit,
    *,
    max_gap: float | None = None,
    end: End = "lower",
    criteria: str | Sequence[str] | None = None,
    by: str | tuple[str, ...] | list[str | tuple[str, ...]] | None = None,
    allow_not_estimable: bool = False,
) -> None:
    """Fail, with a readable message, where gaps of an audit exceed a bound.

    Parameters
    ----------
    audit : Audit
        From :func:`apfex.audit`, or ``clf.audit``. Looked at are its ``gaps``, of all rows; those
        within strata of control features are not.
    max_gap : float, optional
        The bound; the tolerance of the audit by default.
    end : {"lower", "gap", "upper"}
        What must not exceed it. "lower": fails where the data show a violation, and only there,
        corrected for the number of gaps that are looked at (:meth:`Audit.exceeds`). "gap": the
        raw gap, noise included. "upper": fails unless the data show that the gap is within the
        bound.
    criteria : str or sequence of str, optional
        Rows of ``audit.gaps`` to look at; all by default.
    by : str, tuple of str or list of these, optional
        A grouping as in ``audit.gaps``, a tuple of its attributes, or several of them.
    allow_not_estimable : bool
        Whether a gap that cannot be estimated passes.

    Raises
    ------
    AssertionError
        It names each gap that fails, the worst first, and the groups at its ends.

    Examples
    --------
    >>> from apfex import audit
    >>> sex = ["F"] * 200 + ["M"] * 200
    >>> fair = audit(None, [0, 1] * 200, sensitive_features=sex, criteria="dp")
    >>> assert_gap(fair, max_gap=0.1)
    >>> decided = [0, 0, 0, 1] * 50 + [0, 1] * 100
    >>> unfair = audit(None, decided, sensitive_features=sex, criteria="dp")
    >>> assert_gap(unfair, max_gap=0.1)
    Traceback (most recent call last):
    AssertionError: 1 of 1 gaps fail: the lower end must not exceed 0.1.
      dp by attribute0: 0.250 (0.151 to 0.368), from 'attribute0=F' 25.0% to 'attribute0=M' 50.0%
    """
    __tracebackhide__ = True
    if not isinstance(audit, Audit):
        raise TypeError(
            f"audit must be an Audit, got {type(audit).__name__}; call apfex.audit(...) first."
        )
    if end not in get_args(End):
        raise ValueError(f"end must be one of {list(get_args(End))}, got {end!r}.")
    bound = audit.settings.tolerance if max_gap is None else max_gap
    require_numbers(max_gap=bound)
    if not 0 <= bound < 1:
        raise ValueError(f"max_gap must be at least 0 and below 1, got {bound}.")
    rows = _rows(audit, criteria, by)
    above = rows[end].round(12).gt(bound)  # 0.55 - 0.5 is not above 0.05
    if end == "lower":
        above = pd.Series(audit.exceeds((row, bound) for row in rows.index), rows.index)
    fails = above | (rows["gap"].isna() & (not allow_not_estimable))
    failing = rows.loc[fails].sort_values(by=str(end), ascending=False)
    if len(failing):
        raise AssertionError(_message(audit, failing, len(rows), end, bound))


def _rows(
    audit: Audit,
    criteria: str | Sequence[str] | None,
    by: str | tuple[str, ...] | list[str | tuple[str, ...]] | None,
) -> pd.DataFrame:
    rows = audit.gaps
    wanted = {
        "criteria": ("criterion", None if criteria is None else read_criteria(criteria)),
        "by": ("by", None if by is None else _groupings(by)),
    }
    for argument, (column, values) in wanted.items():
        if values is None:
            continue
        known = audit.gaps[column].unique().tolist()
        missing = [value for value in values if value not in known]
        if missing or not values:
            raise ValueError(f"{argument} must be among those audited, {known}, got {missing}.")
        rows = rows.loc[[value in values for value in rows[column]]]
    return rows


def _groupings(by: str | tuple[str, ...] | list[str | tuple[str, ...]]) -> list[str]:
    asked = by if isinstance(by, list) else [by]
    return [one if isinstance(one, str) else grouping_name(as_names("by", one)) for one in asked]


def _message(audit: Audit, failing: pd.DataFrame, n: int, end: End, bound: float) -> str:
    corrected = f", corrected for {n} gaps (Holm)" if end == "lower" and n > 1 else ""
    lines = [
        f"{len(failing)} of {n} gaps fail: {_WORDS[end]} must not exceed {bound:g}{corrected}."
    ]
    for row in failing.head(_SHOWN).to_dict("records"):
        name = f"{row['criterion']} by {row['by']}"
        if row["gap"] != row["gap"]:
            small = audit.settings.min_count
            lines.append(f"  {name}: not estimable, fewer than two groups of {small:g} rows")
            continue
        gap, lower, upper = (
            beside(row[column], bound if column == end else math.nan)
            for column in ("gap", "lower", "upper")
        )
        interval = f"{gap} ({lower} to {upper})"
        lines.append(f"  {name}: {interval}{_ends(audit, row['criterion'], row['by'])}")
    if len(failing) > _SHOWN:
        lines.append(f"  and {len(failing) - _SHOWN} more")
    return "\n".join([*lines, *audit.notes])


def _ends(audit: Audit, criterion: str, by: str) -> str:
    low, high = audit.ends(criterion, by).to_dict("records")
    return (
        f", from {low['group']!r} {100 * low['rate']:.1f}% to {high['group']!r} "
        f"{100 * high['rate']:.1f}%"
    )
