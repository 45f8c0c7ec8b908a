"""What changed between two audits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from apfex.auditing._estimates import difference_interval
from apfex.auditing._verdicts import Tested
from apfex.groups import grouping_name
from apfex.metrics import GapInterval
from apfex.plain import printable

_ALONE = {"new": "now", "gone": "earlier"}
"""Verdicts on what only one of the audits has."""
_NAMED, _MANY = 5, 10


@final
@dataclass(frozen=True, eq=False)
class AuditChange:
    """Change of every gap and every rate between two audits of different rows.

    Attributes
    ----------
    gaps : pandas.DataFrame
        A row per criterion and grouping of either: ``criterion``, ``by``, ``earlier``, ``now``,
        ``change``, ``lower``, ``upper``, ``verdict`` (larger, smaller, no clear change, not
        estimable, or new or gone where only one of the audits has it).
    groups : pandas.DataFrame
        A row per group and rate: ``by``, ``group``, ``of``, (``class``,) ``earlier``, ``now``,
        ``change``, ``lower``, ``upper``, ``verdict`` (the same words). Each row by itself: of
        many rates some may seem to change by chance.

    Examples
    --------
    >>> from apfex import audit
    >>> sex = ["F"] * 200 + ["M"] * 200
    >>> before = audit(None, [0, 1] * 200, sensitive_features={"sex": sex}, criteria="dp")
    >>> after = audit(None, [0] * 200 + [1] * 200, sensitive_features={"sex": sex}, criteria="dp")
    >>> after.diff(before).gaps["verdict"].tolist()
    ['larger']
    """

    gaps: pd.DataFrame
    groups: pd.DataFrame

    def __repr__(self) -> str:
        """The gaps, and the groups that changed most clearly."""
        clear = self.groups.query("verdict in ('larger', 'smaller')")
        shown = clear.sort_values("change", key=abs, ascending=False).head(5)
        shown = shown.assign(group=[printable(name) for name in shown["group"]])
        left = len(self.groups) - len(shown)
        lines = ["Change of the gaps", self.gaps.round(3).to_string(index=False, max_rows=12)]
        if len(shown):
            lines += ["", "Rates that changed most", shown.round(3).to_string(index=False)]
        alone = [self._alone(verdict, when) for verdict, when in _ALONE.items()]
        if any(alone):
            told = "; ".join(filter(None, alone))
            lines += ["", f"Not the same groups, on which gaps depend: {told}"]
        return "\n".join([*lines, f"{left:,} more rates in .groups", *self.notes])

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: that of many rates some may seem to change by chance."""
        unknown = {*_ALONE, "not estimable"}
        compared = sum(verdict not in unknown for verdict in self.groups["verdict"])
        if compared < _MANY:
            return ()
        return (
            f"Verdicts are row by row: among {compared:,} rates some may seem to change by chance.",
        )

    def _alone(self, verdict: str, when: str) -> str:
        """The groups that only one of the audits has, of groupings that both have."""
        both: Any = self.gaps.loc[~self.gaps["verdict"].isin(_ALONE), "by"]
        groups: Any = self.groups[self.groups["by"].isin(both)]
        columns = [name for name in ("group", "class") if name in groups]
        is_alone: Any = groups["verdict"].eq(verdict).groupby([groups[n] for n in columns]).all()
        names = is_alone.index[is_alone].tolist()
        shown = [" of class ".join(map(printable, _parts(name))) for name in names[:_NAMED]]
        more = [f"{len(names) - _NAMED:,} more"] if len(names) > _NAMED else []
        return f"{', '.join([*shown, *more])} only {when}" if names else ""


def _parts(name: object) -> tuple[object, ...]:
    return name if isinstance(name, tuple) else (name,)


def change_of_gaps(
    now: Sequence[Tested], earlier: Sequence[Tested], confidence: float
) -> pd.DataFrame:
    """Change of the gaps; one that only one of the audits has is new or gone.

    Notes
    -----
    Each gap gets an interval at ``(1 + confidence) / 2``; if both cover, which has probability
    ``confidence`` at least, then so does ``[lower - upper_before, upper - lower_before]``.
    """
    before, after = (
        {(one.criterion, one.attributes): one for one in audit} for audit in (earlier, now)
    )
    if not before.keys() & after.keys():
        raise ValueError(
            "earlier must share a criterion and an attribute with this audit, got "
            f"{sorted({one.criterion for one in earlier})} by {sorted({one.by for one in earlier})}"
            f" against {sorted({one.criterion for one in now})} by "
            f"{sorted({one.by for one in now})}."
        )
    rows = []
    for key in [*after, *(key for key in before if key not in after)]:
        row = _change_of_gap(after.get(key), before.get(key), (1 + confidence) / 2)
        rows.append({"criterion": key[0], "by": grouping_name(key[1])} | row)
    return pd.DataFrame(rows)


def _change_of_gap(
    now: Tested | None, earlier: Tested | None, confidence: float
) -> dict[str, float | str]:
    a, b = (
        (math.nan,) * 3 if one is None else _gap_and_ends(one.at(confidence))
        for one in (now, earlier)
    )
    low, high = a[1] - b[2], a[2] - b[1]
    alone = "gone" if now is None else "new" if earlier is None else None
    return {
        "earlier": b[0],
        "now": a[0],
        "change": a[0] - b[0],
        "lower": low,
        "upper": high,
        "verdict": alone or _verdict(low, high),
    }


def _gap_and_ends(interval: GapInterval) -> tuple[float, float, float]:
    return interval.gap, interval.lower, interval.upper


def change_of_rates(now: pd.DataFrame, earlier: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Change of the rates; a group that only one of the audits has is new or gone."""
    keys = [name for name in ("by", "group", "of", "class") if name in now and name in earlier]
    kept = [*keys, "rate", "effective"]
    both = now[kept].merge(
        earlier[kept], on=keys, how="outer", suffixes=("", "_before"), indicator=True, sort=False
    )
    place = {key: at for at, key in enumerate(map(tuple, now[keys].to_numpy().tolist()))}
    order = [place.get(tuple(key), len(place)) for key in both[keys].to_numpy().tolist()]
    both = both.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)
    a, b = both["rate"].to_numpy(float), both["rate_before"].to_numpy(float)
    sizes = [both[name].fillna(0).to_numpy(float) for name in ("effective", "effective_before")]
    low, high = difference_interval(a, sizes[0], b, sizes[1], confidence)
    frame = both[keys].assign(earlier=b, now=a, change=a - b, lower=low, upper=high)
    alone = {"left_only": "new", "right_only": "gone"}
    frame["verdict"] = [
        alone.get(kind) or _verdict(*ends)
        for kind, *ends in zip(both["_merge"], low, high, strict=True)
    ]
    return frame


def _verdict(low: float, high: float) -> str:
    if np.isnan(low) or np.isnan(high):
        return "not estimable"
    if low > 0:
        return "larger"
    return "smaller" if high < 0 else "no clear change"
