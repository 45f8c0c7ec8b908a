"""The models below methods that need one: boosted trees, also cross-fitted, and logistic.

Rounds are fixed: a reduction's weights and labels would mislead early stopping.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from rivals.common import Part, deal

FOLDS, LARGE = 5, 5_000
"""Above so many training rows trees may be deep."""
HISTOGRAM: dict[str, dict[str, float]] = {
    "large": {"max_leaf_nodes": 31, "learning_rate": 0.1, "max_iter": 120},
    "small": {"max_depth": 3, "learning_rate": 0.05, "max_iter": 80},
}
GROUP_ROUNDS = 0.5
"""Rounds of the model of the group, as a share of those of the label."""
QUICK: dict[str, dict[str, float]] = {
    "large": {"max_depth": 5, "learning_rate": 0.25, "n_estimators": 40},
    "small": {"max_depth": 3, "learning_rate": 0.1, "n_estimators": 40},
}
"""Of XGBoost under reductions, which fit fifty models for a point; a small one fits in a tenth of
the time of histogram boosting."""


def histogram(rows: Part, seed: int, **given: Any) -> HistGradientBoostingClassifier:
    """Threads are as many as ``OMP_NUM_THREADS`` says."""
    settings = {**HISTOGRAM["large" if len(rows) > LARGE else "small"], **given}
    kinds = [kind == "c" for kind in rows.feature_types]
    extra = settings.pop("extra_columns", 0)
    return HistGradientBoostingClassifier(
        **settings,
        categorical_features=kinds + [False] * extra,
        early_stopping=False,
        random_state=seed,
    )


def quick_xgboost(rows: Part, seed: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(
        **QUICK["large" if len(rows) > LARGE else "small"],
        feature_types=list(rows.feature_types),
        enable_categorical=True,
        n_jobs=1,
        random_state=seed,
    )


class StartedLogistic(LogisticRegression):
    """Logistic regression that starts from the given coefficients [d + 1], the intercept last.

    A reduction fits it a hundred times and more, on weights and labels that differ a little. From
    nothing, each fit needs 300 steps of L-BFGS on tree bins; from the plain solution a few do.
    """

    def __init__(self, start: NDArray[np.float64] | None = None, max_iter: int = 50) -> None:
        super().__init__(max_iter=max_iter, warm_start=True)
        self.start = start

    def fit(self, x: Any, y: Any, sample_weight: Any = None) -> StartedLogistic:
        if self.start is not None:
            self.classes_ = np.array([0, 1])
            self.coef_, self.intercept_ = self.start[None, :-1].copy(), self.start[-1:].copy()
        return super().fit(x, y, sample_weight)


def logistic(_rows: Part, _seed: int) -> LogisticRegression:
    return LogisticRegression(max_iter=500)


def started_logistic(rows: Part, seed: int) -> StartedLogistic:
    plain = logistic(rows, seed).fit(rows.x, rows.y)
    return StartedLogistic(np.append(plain.coef_[0], plain.intercept_))


MakeModel = Callable[[Part, int], Any]
"""From training rows and a seed to a classifier as scikit-learn has them."""


def folds_of(rows: Part, seed: int) -> NDArray[np.int64]:
    return deal(rows.cells, range(FOLDS), np.random.default_rng([seed, 22]))


def cross_fitted_scores(
    rows: Part, test: Part, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """P(y = 1 | x) out of fold, and of new rows by the mean of the models of all folds."""
    out, new = np.empty(len(rows)), np.zeros(len(test))
    folds = folds_of(rows, seed)
    for fold in range(FOLDS):
        own, others = folds == fold, rows.take(np.flatnonzero(folds != fold))
        model = histogram(others, seed).fit(others.x, others.y)
        out[own] = model.predict_proba(rows.x[own])[:, 1]
        new += model.predict_proba(test.x)[:, 1] / FOLDS
    return out, new


def cross_fitted_joint(
    rows: Part, test: Part, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """P(group, y | x) [n, k, 2] out of fold, and of new rows: the label, and the group given it."""
    k = rows.n_groups
    out, new = np.empty((len(rows), k, 2)), np.zeros((len(test), k, 2))
    folds = folds_of(rows, seed)
    for fold in range(FOLDS):
        own, others = folds == fold, rows.take(np.flatnonzero(folds != fold))
        label = histogram(others, seed).fit(others.x, others.y)
        rounds = int(GROUP_ROUNDS * label.max_iter)
        group = histogram(others, seed, max_iter=rounds, extra_columns=1)
        group.fit(_with_label(others.x, others.y), others.group)
        out[own] = _joint(label, group, rows.x[own], k)
        new += _joint(label, group, test.x, k) / FOLDS
    return out, new


def _joint(label: Any, group: Any, x: NDArray[np.float32], k: int) -> NDArray[np.float64]:
    of_label = label.predict_proba(x)
    found = np.zeros((len(x), k, 2))
    for y in (0, 1):
        given = group.predict_proba(_with_label(x, np.full(len(x), y)))
        found[:, group.classes_, y] = given * of_label[:, y : y + 1]
    return found


def _with_label(x: NDArray[np.float32], y: NDArray[Any]) -> NDArray[np.float32]:
    return np.hstack([x, y[:, None].astype(np.float32)])
