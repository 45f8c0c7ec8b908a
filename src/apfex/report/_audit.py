"""An audit, as plain values for the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from apfex.auditing import Audit
from apfex.metrics import error_of_counts
from apfex.report._caveats import (
    Caveat,
    caveats_of_decisions,
    caveats_of_notes,
    caveats_of_strata,
    caveats_of_verdicts,
)
from apfex.report._constant import Constant, Gain
from apfex.report._description import AUDIT, Shown, describe, describe_decisions
from apfex.report._groupings import Grouping
from apfex.report._rates import rates_of
from apfex.report._summary import summarize_audit

_WORST = 50
_PLANNED_GROUPS = 500
"""Groups up to which the rows that are missing are worked out: a second or two."""
_PLAN_SHOWN = 5


def describe_audit(
    audit: Audit,
    *,
    title: str | None,
    source: str | None,
    command: str | None,
    caveats: Sequence[Caveat] = (),
    run: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """All that the page shows of an audit."""
    rates, labels = rates_of(audit), [str(label) for label in audit.counts.classes]
    favorable = str(audit.settings.favorable_label)
    shown = Shown.of([audit], [rates], favorable, labels)
    constant = Constant.of(audit, labels, favorable)
    gain = None
    if constant is not None:
        error = error_of_counts(audit.counts)
        gain = Gain(constant, error, min(error, constant.error))
    worst = _worst(audit, shown.groupings[-1])
    told = describe_decisions(audit, rates, shown, caveats_of_audit(audit, gain, caveats), gain)
    point = {
        **told,
        "near_constant": False,  # there is no better model to compare with
        "summary": summarize_audit(audit, told["gaps"], worst, gain, favorable),
        "verdict": audit.summary.verdict,
        "error": None if gain is None else gain.error,
        "point": 0,
        "worst": worst,
        "worse_off": audit.n_worse_off,
    }
    parts = {
        "title": title or "Audit of decisions",
        "source": source,
        "command": command,
        "constant": None if constant is None else constant.describe(),
        "run": None if run is None else dict(run),
        "thresholds": _thresholds(audit),
        "plan": _plan(audit),
    }
    return describe(AUDIT, audit, shown, [point], parts)


def caveats_of_audit(audit: Audit, gain: Gain | None, more: Sequence[Caveat] = ()) -> list[Caveat]:
    """The one list of an audit: violations first, then what the decisions are worth, then notes."""
    shares = np.array([1 - audit.share_favored, audit.share_favored])
    favorable = str(audit.settings.favorable_label)
    useless = caveats_of_decisions(shares, gain, [f"not {favorable}", favorable])
    return [
        *caveats_of_verdicts(audit),
        *caveats_of_strata(audit),
        *(caveat for caveat in useless if caveat.code != "near_constant"),
        *more,
        *caveats_of_notes(audit),
    ]


def _worst(audit: Audit, crossing: Grouping) -> list[dict[str, Any]]:
    """Groups below the rate of all rows, with the values of their attributes as they are shown."""
    values = dict(zip(crossing.names, crossing.values, strict=True))
    columns = (
        *("group", "count", "favored", "lower", "upper", "difference"),
        *("clearly_below", "driver", "others"),
    )
    found: Any = audit.worst(_WORST, only_below=True)
    return [{**row, "values": values[row["group"]]} for row in found[[*columns]].to_dict("records")]


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
