"""An audit, as plain values for the page."""

from __future__ import annotations

import math
from typing import Any

from apfex.auditing import Audit
from apfex.report._caveats import caveats_of_notes
from apfex.report._description import AUDIT, Shown, describe, describe_decisions
from apfex.report._rates import rates_of

_WORST = 50
_PLANNED_GROUPS = 500
"""Groups up to which the rows that are missing are worked out: a second or two."""
_PLAN_SHOWN = 5


def describe_audit(
    audit: Audit, *, title: str | None, source: str | None, command: str | None
) -> dict[str, Any]:
    """All that the page shows of an audit."""
    rates, labels = rates_of(audit), [str(label) for label in audit.counts.classes]
    shown = Shown.of([audit], [rates], str(audit.settings.favorable_label), labels)
    point = {
        **describe_decisions(audit, rates, shown, caveats_of_notes(audit)),
        "point": 0,
        "worst": audit.worst(_WORST, only_below=True).to_dict("records"),
        "worse_off": audit.n_worse_off,
    }
    parts = {
        "title": title or "Audit of decisions",
        "source": source,
        "command": command,
        "thresholds": _thresholds(audit),
        "plan": _plan(audit),
    }
    return describe(AUDIT, audit, shown, [point], parts)


def _thresholds(audit: Audit) -> list[dict[str, Any]] | None:
    """Gaps over all thresholds, as columns for each criterion and grouping."""
    thresholds: Any = audit.thresholds
    if thresholds is None:
        return None
    names = ("threshold", "gap", "lowest_rate", "highest_rate", "lowest", "highest")
    return [
        {"criterion": criterion, "by": by, **{name: part[name].to_numpy() for name in names}}
        for (criterion, by), part in thresholds.groupby(["criterion", "by"], sort=False)
    ]


def _plan(audit: Audit) -> list[dict[str, Any]]:
    """What would settle each verdict that is open: rows in all, and the groups that need most."""
    if audit.n_groups > _PLANNED_GROUPS:
        return []
    plan: Any = audit.plan()
    found = []
    for (criterion, by), part in plan.groupby(["criterion", "by"], sort=False):
        total = float(part["more_rows"].sum())
        most = part.sort_values("more_rows", ascending=False, kind="stable").head(_PLAN_SHOWN)
        found.append(
            {
                "criterion": criterion,
                "by": by,
                "expected": part["expected"].iloc[0],
                "more_rows": total if math.isfinite(total) else None,
                "n_groups": len(part),
                "groups": most[["group", "count", "more_rows"]].to_dict("records"),
            }
        )
    return found
