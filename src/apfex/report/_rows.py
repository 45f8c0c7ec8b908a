"""What the points of a front decide for fresh rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from apfex.auditing import audit_counts
from apfex.estimator import AuditRows
from apfex.report._groupings import Rates, rates_of
from apfex.report._point import Measured

_MORE_RATES = ("dp", "tpr", "fpr", "ppv", "accuracy")
"""Shown whatever the criteria are."""


def measure(rows: AuditRows, decisions: np.ndarray) -> list[Measured]:
    """Count and audit what every point decides, codes of classes [points, n]."""
    return [_measure(rows, place, codes) for place, codes in enumerate(decisions)]


def _measure(rows: AuditRows, place: int, codes: np.ndarray) -> Measured:
    counts, settings = rows.count(codes), rows.settings
    audit = audit_counts(counts, settings)
    rates = rates_of(audit)
    more = tuple(of for of in _MORE_RATES if of not in settings.rates)
    if more:
        # No group is large enough for a gap then, so that none is tested: the tests are what
        # takes time, and only rates and their intervals are wanted here.
        untested = replace(settings, criteria=more, min_count=np.inf)
        rates |= rates_of(audit_counts(counts, untested), min_count=settings.min_count)
    return Measured(
        place,
        audit,
        rates | _favored(rows, rates),
        rows.y,
        codes,
        codes == rows.favorable,
        rows.weight,
    )


def _favored(rows: AuditRows, rates: Rates) -> Rates:
    """Rates of the favorable label, from the selection rates."""
    key = f"dp:{rows.favorable}" if len(rows.classes) > 2 else "dp"
    return {("favored", by): column for (of, by), column in rates.items() if of == key}
