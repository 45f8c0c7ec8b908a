"""Fresh rows, and what the points of a front decide for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from apfex.auditing import Audit, AuditSettings, audit_counts
from apfex.estimator import APFExClassifier
from apfex.groups import Groups, make_groups
from apfex.rates import count_rows
from apfex.report._levels import Rates, rates_of
from apfex.report._point import Measured

_MORE_RATES = ("dp", "tpr", "fpr", "ppv", "accuracy")
"""Shown whatever the criteria are."""


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """Fresh rows, read once for all points."""

    X: Any
    y: np.ndarray
    crossing: Groups
    weight: np.ndarray | None
    favorable: int
    classes: np.ndarray
    settings: AuditSettings
    sensitive_features: Any

    def measure(self, clf: APFExClassifier, place: int, first: Audit) -> Measured:
        """Predict with a point, and count what it decides."""
        used = self.sensitive_features if clf.group_thresholds else None
        decided = clf.at(place).predict(self.X, sensitive_features=used)
        codes = np.searchsorted(self.classes, decided)
        counts = count_rows(
            self.y,
            codes,
            self.crossing,
            self.weight,
            classes=self.classes.tolist(),
            favorable=self.favorable,
        )
        audit = first if place == 0 else audit_counts(counts, self.settings)
        rates = rates_of(audit)
        more = tuple(of for of in _MORE_RATES if of not in self.settings.rates)
        if more:
            # No group is large enough for a gap then, so that none is tested: the tests are what
            # takes time, and only rates and their intervals are wanted here.
            untested = replace(self.settings, criteria=more, min_count=np.inf)
            others = audit_counts(counts, untested)
            rates |= rates_of(others, min_count=self.settings.min_count)
        return Measured(
            place,
            audit,
            rates | self._favored(rates),
            self.y,
            codes,
            codes == self.favorable,
            self.weight,
        )

    def _favored(self, rates: Rates) -> Rates:
        """Rates of the favorable label, from the selection rates."""
        key = f"dp:{self.favorable}" if len(self.classes) > 2 else "dp"
        return {("favored", by): column for (of, by), column in rates.items() if of == key}


def read_rows(
    clf: APFExClassifier,
    X: Any,
    y: Any,
    sensitive_features: Any,
    sample_weight: Any,
    settings: AuditSettings,
) -> Rows:
    """Rows that ``clf.audit`` has accepted, by its settings."""
    names = [clf.sensitive] if isinstance(clf.sensitive, str) else clf.sensitive
    columns = sensitive_features if names is None else X[list(names)]
    classes = clf.classes_
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return Rows(
        X=X,
        y=np.searchsorted(classes, np.asarray(y).reshape(-1)),
        crossing=make_groups(columns),
        weight=None if weight is None else weight / weight.max(),  # squares stay finite
        favorable=classes.tolist().index(settings.favorable_label),
        classes=classes,
        settings=settings,
        sensitive_features=sensitive_features,
    )
