"""What changed between two audits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from apfex.auditing._names import plain
from apfex.auditing._verdicts import Tested
from apfex.auditing._wilson import difference_interval


@final
@dataclass(frozen=True, eq=False)
class AuditChange:
    """Change of every gap and every rate between two audits of different rows.

    Attributes
    ----------
    gaps : pandas.DataFrame
        A row per criterion and level of either: ``criterion``, ``by``, ``earlier``, ``now``,
        ``change``, ``lower``, ``upper``, ``verdict`` (larger, smaller, no clear change, or not
        estimable).
    groups : pandas.DataFrame
        A row per group and rate: ``by``, ``group``, ``of``, (``class``,) ``earlier``, ``now``,
        ``change``, ``lower``, ``upper``, ``verdict`` (the same, or new, or gone).

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
        shown = shown.assign(group=[plain(name) for name in shown["group"]])
        left = len(self.groups) - len(shown)
        lines = ["Change of the gaps", self.gaps.round(3).to_string(index=False, max_rows=12)]
        if len(shown):
            lines += ["", "Rates that changed most", shown.round(3).to_string(index=False)]
        return "\n".join([*lines, f"{left:,} more rates in .groups"])


def change_of_gaps(
    now: Sequence[Tested], earlier: Sequence[Tested], confidence: float
) -> pd.DataFrame:
    """Change of the gaps that both audits have.

    Notes
    -----
    Each gap gets an interval at ``(1 + confidence) / 2``; if both cover, which has probability
    ``confidence`` at least, then so does ``[lower - upper_before, upper - lower_before]``.
    """
    before = {(one.criterion, one.by): one for one in earlier}
    rows = []
    for one in now:
        other = before.get((one.criterion, one.by))
        if other is None:
            continue
        stricter = (1 + confidence) / 2
        a, b = one.at(stricter), other.at(stricter)
        low, high = a.lower - b.upper, a.upper - b.lower
        row: dict[str, Any] = {"criterion": one.criterion, "by": one.by}
        row |= {"earlier": b.gap, "now": a.gap, "change": a.gap - b.gap}
        rows.append(row | {"lower": low, "upper": high, "verdict": _verdict(low, high)})
    if not rows:
        raise ValueError(
            "earlier must share a criterion and an attribute with this audit, got "
            f"{sorted({one.criterion for one in earlier})} by {sorted({one.by for one in earlier})}"
            f" against {sorted({one.criterion for one in now})} by "
            f"{sorted({one.by for one in now})}."
        )
    return pd.DataFrame(rows)


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
