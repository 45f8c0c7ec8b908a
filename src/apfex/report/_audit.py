"""An audit, as plain values for the page."""

from __future__ import annotations

import math
from typing import Any

from apfex.auditing import Audit
from apfex.plain import jsonable
from apfex.report._caveats import doubts_of_audit
from apfex.report._groupings import (
    Rates,
    classes_of,
    describe_levels,
    describe_rates,
    ends_of,
    levels_of,
    rates_of,
    shown_groups,
    shown_names,
)
from apfex.report._names import names_within
from apfex.report._point import describe_gaps
from apfex.report._rates import describe_criteria, describe_rate

KIND, SCHEMA_VERSION = "apfex.audit-page", 1
_WORST = 50
_ROUNDING = 1e-9
"""Of a rate that is that of all rows."""
_PLANNED_GROUPS = 500
"""Groups up to which the rows that are missing are worked out: a second or two."""
_PLAN_SHOWN = 5


def describe_audit(
    audit: Audit, *, title: str | None, source: str | None, command: str | None
) -> dict[str, Any]:
    """All that the page shows of an audit."""
    settings, levels = audit.settings, levels_of(audit)
    rates, labels = rates_of(audit), classes_of(audit.groups)
    described, rates = _rate_list(audit, rates, labels)
    keys = [rate["key"] for rate in described]
    ranked = rates if ("favored", None) in rates else _ranking(rates, keys[0])
    shown = shown_groups(levels, [ranked], len(keys), ends_of(audit))
    label = str(settings.favorable_label)
    worst: Any = audit.worst(audit.n_groups)
    worst = worst[worst["difference"] < -_ROUNDING]
    page = jsonable(
        {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "title": title or "Audit of decisions",
            "source": source,
            "command": command,
            "rows": audit.n_rows,
            "groups": audit.n_groups,
            "weighted": audit.is_approximate,
            "settings": {
                "tolerance": settings.tolerance,
                "confidence": settings.confidence,
                "min_count": settings.min_count,
            },
            "favorable": label,
            "criteria": describe_criteria(settings.criteria, label, len(labels) or 2),
            "rates": described,
            "levels": describe_levels(levels, shown),
            "chosen": 0,
            "baseline": 0,
            "points": [
                {
                    "point": 0,
                    "share_favored": audit.share_favored,
                    "gaps": describe_gaps(audit),
                    "worst": worst.head(_WORST).to_dict("records"),
                    "worse_off": audit.n_worse_off,
                    "rates": describe_rates(rates, keys, shown),
                    "doubts": doubts_of_audit(audit.notes),
                }
            ],
            "thresholds": _thresholds(audit),
            "plan": _plan(audit),
        }
    )
    return page | {"names": names_within(page, shown_names(levels))}


def _rate_list(audit: Audit, rates: Rates, labels: list[Any]) -> tuple[list[dict[str, Any]], Rates]:
    """Rates in words, and with that of the favorable label where it can be had."""
    favorable = audit.settings.favorable_label
    place = labels.index(favorable) if favorable in labels else None
    source = "dp" if not labels else f"dp:{place}"
    for (key, by), column in list(rates.items()):
        if key == source:
            rates["favored", by] = column
    found = []
    for key in dict.fromkeys(key for key, _ in rates):
        of, _, code = key.partition(":")
        if key == source:
            continue
        if of == "favored":
            found.insert(0, describe_rate("favored", favorable, None))
        elif code:
            found.append(describe_rate(of, labels[int(code)], int(code)))
        else:
            found.append(describe_rate(of, str(favorable), None))
    return found, rates


def _ranking(rates: Rates, key: str) -> Rates:
    """Without selection rates: the first rate decides which of too many groups are shown."""
    return {("favored", by): column for (of, by), column in rates.items() if of == key}


def _thresholds(audit: Audit) -> list[dict[str, Any]] | None:
    """Gaps over all thresholds, as columns for each criterion and level."""
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
        most = part.sort_values("more_rows", ascending=False, kind="stable")
        found.append(
            {
                "criterion": criterion,
                "by": by,
                "expected": part["expected"].iloc[0],
                "more_rows": total if math.isfinite(total) else None,
                "n_groups": len(part),
                "groups": most[["group", "count", "more_rows"]]
                .head(_PLAN_SHOWN)
                .to_dict("records"),
            }
        )
    return found
