"""Whether probabilities are what they say: reliability curve, Brier score, and by group."""

from __future__ import annotations

from typing import Any

import numpy as np

from apfex.estimator import APFExClassifier, AuditRows
from apfex.metrics import Measure, read_measures

_BINS = 10
_FEWEST = 20
"""Rows in a bin, below which there are fewer bins."""


def measure_calibration(
    clf: APFExClassifier, rows: AuditRows, X: Any, sensitive_features: Any
) -> dict[str, Any] | None:
    """Probabilities of the favorable label on the rows at hand; None with more than two labels."""
    if len(rows.classes) != 2:
        return None
    score = clf.predict_proba(X, sensitive_features=sensitive_features)[:, rows.favorable]
    return calibration_of(rows, score)


def calibration_of(rows: AuditRows, score: np.ndarray) -> dict[str, Any]:
    """Probabilities [n] of the favorable one of two labels, beside what the rows are.

    Returns
    -------
    dict
        ``measures`` by name (Brier score, AUC, calibration) with intervals, ``constant`` the Brier
        score of giving everybody the share of the favorable label, ``bins`` of equally many
        rows (mean probability, share that was so, its interval) and ``groups`` of the crossing.
    """
    y = (rows.y == rows.favorable).astype(np.int64)
    confidence, weight = rows.settings.confidence, rows.weight
    base = np.average(y, weights=weight)
    return {
        "measures": {
            one.name: _measured(one, y, score, weight, confidence)
            for one in read_measures(["brier", "auc", "calibration"])
        },
        "constant": float(base * (1 - base)),
        "bins": _bins(y, score, weight, confidence),
        "groups": _groups(rows, y, score),
    }


def _measured(
    one: Measure,
    y: np.ndarray,
    score: np.ndarray,
    weight: np.ndarray | None,
    confidence: float,
) -> dict[str, float]:
    lower, upper = one.interval(y, score, weight, confidence)
    return {"value": one.value(y, score, weight), "lower": lower, "upper": upper}


def _bins(
    y: np.ndarray, score: np.ndarray, weight: np.ndarray | None, confidence: float
) -> list[dict[str, Any]]:
    """Rows in the order of their probability, in parts of equal size."""
    (calibration,) = read_measures(["calibration"])
    n = max(1, min(_BINS, len(y) // _FEWEST))
    found = []
    for part in np.array_split(np.argsort(score, kind="stable"), n):
        own = None if weight is None else weight[part]
        mean = float(np.average(score[part], weights=own))
        # The interval is of the share less the mean probability.
        off = _measured(calibration, y[part], score[part], own, confidence)
        ends = {key: min(1.0, max(0.0, mean + off[key])) for key in ("lower", "upper")}
        found.append({"rows": len(part), "probability": mean, "share": mean + off["value"], **ends})
    return found


def _groups(rows: AuditRows, y: np.ndarray, score: np.ndarray) -> list[dict[str, Any]]:
    """How far the mean probability of each group is from what came true, with its interval."""
    (calibration,) = read_measures(["calibration"])
    found = []
    for place, name in enumerate(rows.crossing.names):
        own = rows.crossing.codes == place
        weight = None if rows.weight is None else rows.weight[own]
        told = _measured(calibration, y[own], score[own], weight, rows.settings.confidence)
        mean = float(np.average(score[own], weights=weight))
        found.append({"group": name, "rows": int(own.sum()), "probability": mean, **told})
    return found
