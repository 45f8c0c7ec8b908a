"""fairlearn: reductions on logistic regression and on trees, thresholds per group on trees.

Decisions of ExponentiatedGradient and ThresholdOptimizer are drawn at random by design; one draw,
with the run's seed, is what is judged.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from apfex.front import non_dominated
from rivals.base_models import (
    MakeModel,
    cross_fitted_scores,
    quick_xgboost,
    started_logistic,
)
from rivals.common import (
    MOST_POINTS,
    SHORT_LADDER,
    Candidate,
    Decisions,
    Method,
    Part,
    by_bounds,
    by_candidates,
    hold_out,
    mark,
    values_of,
)

GRID_LIMIT = 0.5
"""Multipliers of the default limit, 2, overshoot: no point of theirs beats the plain model."""


def _constraints(problem: str, **bound: float) -> Any:
    from fairlearn import reductions

    names = {"dp": "DemographicParity", "tpr": "TruePositiveRateParity", "eo": "EqualizedOdds"}
    return getattr(reductions, names[problem])(**bound)


def exponentiated_gradient(make_model: MakeModel, encoding: str) -> Method:
    """A mixture of models for each bound; it bounds the distance from the overall rate."""

    @mark(encoding=encoding, slow=True)
    def method(rows: Part, test: Part, seed: int):  # noqa: ANN202
        from fairlearn.reductions import ExponentiatedGradient

        estimator = make_model(rows, seed)

        def decide(problem: str, bound: float) -> Decisions:
            constraints = _constraints(problem, difference_bound=bound / 2)
            model = ExponentiatedGradient(estimator, constraints)
            model.fit(rows.x, rows.y, sensitive_features=rows.group)
            return model.predict(test.x, random_state=seed)

        yield from by_bounds(decide, SHORT_LADDER)

    return method


def grid_search(make_model: MakeModel, encoding: str) -> Method:
    """A model for each multiplier of a grid; those that are best on held rows are handed out."""

    @mark(encoding=encoding, slow=True)
    def method(rows: Part, test: Part, seed: int):  # noqa: ANN202
        from fairlearn.reductions import GridSearch

        train, held = hold_out(rows, seed)
        estimator, size = make_model(train, seed), _full_grid(train)

        def fit(problem: str) -> list[Candidate]:
            constraints = _constraints(problem)
            search = GridSearch(estimator, constraints, grid_size=size, grid_limit=GRID_LIMIT)
            search.fit(train.x, train.y, sensitive_features=train.group)
            found = [Candidate(m.predict(held.x), m.predict(test.x)) for m in search.predictors_]
            return thinned(found, problem, held)

        yield from by_candidates(fit, held)

    return method


def thinned(found: list[Candidate], problem: str, held: Part) -> list[Candidate]:
    """At most 16 of those that no other dominates on the held rows, evenly along the front."""
    values = np.array([values_of(problem, one.held, held) for one in found])
    kept = np.flatnonzero(non_dominated(values))
    kept = kept[np.argsort(values[kept, 0], kind="stable")]
    places = np.linspace(0, len(kept) - 1, min(len(kept), MOST_POINTS)).round().astype(int)
    return [found[index] for index in kept[places]]


def _full_grid(rows: Part) -> int:
    """Points of the L1 ball of radius two steps, or one step where that is many.

    fairlearn keeps the first points of a ball that has too many, all on one side of it.
    """
    present = len(set(rows.group.tolist()))
    return 2 * present * (present + 1) + 1 if present <= 4 else 2 * present + 1


class GivenScores(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose only input is its own probability, for post-processing."""

    def __init__(self) -> None:
        self.classes_ = np.array([0, 1])

    def fit(self, _x: Any, _y: Any) -> GivenScores:
        return self

    def predict_proba(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        positive = np.asarray(x)[:, 0]
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        return (np.asarray(x)[:, 0] > 0.5).astype(np.int64)


@mark(needs_attribute=True)
def threshold_optimizer(rows: Part, test: Part, seed: int):  # noqa: ANN201
    """Equalized odds are strict, or not asked for: they have no tolerance."""
    from fairlearn.postprocessing import ThresholdOptimizer

    names = {"dp": "demographic_parity", "tpr": "true_positive_rate_parity", "eo": "equalized_odds"}
    seen, new = (scores[:, None] for scores in cross_fitted_scores(rows, test, seed))

    @functools.cache
    def fit_and_decide(problem: str, tolerance: float | None) -> Decisions:
        model = ThresholdOptimizer(
            estimator=GivenScores(),
            constraints=names[problem],
            prefit=True,
            predict_method="predict_proba",
            tol=tolerance,
        )
        model.fit(seen, rows.y, sensitive_features=rows.group)
        return model.predict(new, sensitive_features=test.group, random_state=seed)

    def decide(problem: str, bound: float) -> Decisions:
        if bound == 1.0:
            return GivenScores().predict(new)
        return fit_and_decide(problem, None if problem == "eo" else bound or None)

    yield from by_bounds(decide)


METHODS: dict[str, Method] = {
    "EG + LR": exponentiated_gradient(started_logistic, "numbers"),
    "EG + XGBoost": exponentiated_gradient(quick_xgboost, "codes"),
    "GridSearch + LR": grid_search(started_logistic, "numbers"),
    "GridSearch + XGBoost": grid_search(quick_xgboost, "codes"),
    "ThresholdOptimizer + HGB": threshold_optimizer,
}
