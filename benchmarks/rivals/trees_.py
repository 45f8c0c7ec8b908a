"""Boosted trees: XGBoost alone and under OxonFair, histogram boosting under fairlearn.

XGBoost's settings are those that serve tables of these sizes well, histogram boosting has the same
depth of work. Rounds are fixed: a reduction's weights and labels would mislead early stopping.
"""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier

from rivals.common import MakeModel, Method, Part, Point, takes
from rivals.fairlearn_ import exponentiated_gradient, grid_search, threshold_optimizer
from rivals.oxonfair_ import true_groups

LARGE = 5_000
"""Training rows above which trees may be deep."""
XGBOOST: dict[str, dict[str, float]] = {
    "large": {"max_depth": 6, "learning_rate": 0.1, "n_estimators": 120, "min_child_weight": 2},
    "small": {"max_depth": 3, "learning_rate": 0.05, "n_estimators": 80},
}
HISTOGRAM: dict[str, dict[str, float]] = {
    "large": {"max_leaf_nodes": 31, "learning_rate": 0.1, "max_iter": 120},
    "small": {"max_depth": 3, "learning_rate": 0.05, "max_iter": 80},
}


def xgboost(train: Part, seed: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(
        **XGBOOST[_size(train)],
        colsample_bytree=0.5,
        feature_types=list(train.feature_types),
        enable_categorical=True,
        n_jobs=1,
        random_state=seed,
    )


def histogram(train: Part, seed: int) -> HistGradientBoostingClassifier:
    """Threads are as many as ``OMP_NUM_THREADS`` says."""
    return HistGradientBoostingClassifier(
        **HISTOGRAM[_size(train)],
        categorical_features=[kind == "c" for kind in train.feature_types],
        early_stopping=False,
        random_state=seed,
    )


def _size(train: Part) -> str:
    return "large" if len(train) > LARGE else "small"


def fitted(make_model: MakeModel) -> MakeModel:
    return lambda train, seed: make_model(train, seed).fit(train.x, train.y)


def plain_xgboost(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
    model = fitted(xgboost)(train, seed)
    return [Point("plain", model.predict(validation.x), model.predict(test.x))]


on_tree_inputs = takes("plain", "codes")  # bins of trees are nothing new to a tree
METHODS: dict[str, Method] = {
    "plain XGBoost": on_tree_inputs(plain_xgboost),
    "fairlearn EG + HGB": on_tree_inputs(exponentiated_gradient(histogram)),
    "fairlearn GridSearch + HGB": on_tree_inputs(grid_search(histogram)),
    "fairlearn ThresholdOptimizer + HGB": on_tree_inputs(threshold_optimizer(fitted(histogram))),
    "OxonFair + XGBoost": on_tree_inputs(true_groups(fitted(xgboost))),
}
