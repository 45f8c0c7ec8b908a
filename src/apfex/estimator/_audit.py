"""What decisions do to fresh rows: their audit, and whose decision another point changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from apfex.auditing import Audit, AuditSettings, audit_counts
from apfex.estimator._inputs import (
    class_code,
    read_codes,
    read_features,
    read_groups,
    read_weights,
    split_columns,
)
from apfex.groups import Groups
from apfex.rates import ConfusionCounts, count_rows
from apfex.tables import check_indexes

if TYPE_CHECKING:
    from apfex.estimator._classifier import APFExClassifier


@final
@dataclass(frozen=True, eq=False)
class AuditRows:
    """Fresh rows, checked once for any number of points, and how they are audited.

    Attributes
    ----------
    y : int array of shape [n]
        Codes into ``classes``.
    crossing : Groups
    weight : array of shape [n] or None
    classes : array of shape [c]
    favorable : int
        Code of the favorable class.
    settings : AuditSettings
    """

    y: np.ndarray
    crossing: Groups
    weight: np.ndarray | None
    classes: np.ndarray
    favorable: int
    settings: AuditSettings

    def count(self, decisions: np.ndarray) -> ConfusionCounts:
        """Count decisions [n], codes into the classes, by group."""
        return count_rows(
            self.y,
            decisions,
            self.crossing,
            self.weight,
            classes=self.classes.tolist(),
            favorable=self.favorable,
        )

    def audit(self, decisions: np.ndarray) -> Audit:
        """Audit decisions [n], codes into the classes."""
        return audit_counts(self.count(decisions), self.settings)


def read_audit_rows(
    clf: APFExClassifier,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    tolerance: float = 0.05,
    confidence: float = 0.95,
    min_count: float = 10,
) -> AuditRows:
    """Check fresh rows, by the criteria and the classes of a fitted classifier.

    Parameters
    ----------
    clf : APFExClassifier
        Fitted.
    X, y, sensitive_features, sample_weight, tolerance, confidence, min_count
        As for ``clf.audit``.

    Returns
    -------
    AuditRows

    Examples
    --------
    >>> from apfex import APFExClassifier, make_biased
    >>> data, new = make_biased(n=400, random_state=0), make_biased(n=400, random_state=1)
    >>> clf = APFExClassifier(model="linear", max_gap=1.0, epochs=2, random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    >>> rows = read_audit_rows(clf, new.X, new.y, sensitive_features=new.sensitive)
    >>> audits = [rows.audit(codes) for codes in clf.decide_all(new.X)]  # classes are 0 and 1
    >>> audits[0].gaps.equals(clf.at(0).audit(new.X, new.y, sensitive_features=new.sensitive).gaps)
    True
    """
    check_is_fitted(clf, "front_")
    classes = clf.classes_
    label = clf.front_.favorable_label
    favorable = class_code(classes, label)
    settings = AuditSettings(clf.criteria, tolerance, confidence, min_count, label)
    X = read_features(X)
    check_indexes(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
    codes = read_codes(y, len(X), classes)
    columns, _ = split_columns(X, clf.sensitive, sensitive_features, clf.include_sensitive)
    if columns is None:
        raise ValueError("sensitive_features must be given to audit, got None.")
    crossing = read_groups(columns, len(codes))
    weight = read_weights(sample_weight, len(codes))
    return AuditRows(codes, crossing, weight, classes, favorable, settings)


def compare_decisions(decisions: np.ndarray, groups: Groups | None, favorable: int) -> pd.DataFrame:
    """Flips from the first to the second of decisions [2, n], codes of classes, by group."""
    first, second = decisions
    codes = np.zeros(len(first), dtype=np.int64) if groups is None else groups.codes
    names = ("all rows",) if groups is None else groups.names
    changed = first != second

    def count(rows: np.ndarray) -> np.ndarray:
        return np.bincount(codes[rows], minlength=len(names))

    frame = pd.DataFrame({"group": list(names), "count": count(np.ones_like(changed))})
    frame["changed"] = count(changed)
    frame["gained"] = count(changed & (second == favorable))
    frame["lost"] = count(changed & (first == favorable))
    frame["net_share"] = (frame["gained"] - frame["lost"]) / frame["count"]
    return frame
