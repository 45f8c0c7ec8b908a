"""OxonFair: thresholds per group on the network, searched on validation rows.

Twice: with the true groups at prediction, and with groups guessed from the inputs by a multinomial
logistic regression, which needs no attribute at prediction. On XGBoost: ``trees_.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from rivals.common import MakeModel, Method, Part, Point, fitted_network, needs_attribute

BOUNDS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)


def true_groups(fit_model: MakeModel) -> Method:
    @needs_attribute
    def method(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
        return _points(fit_model(train, seed), None, validation, test)

    return method


def guessed_groups(fit_model: MakeModel) -> Method:
    def method(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
        guess = LogisticRegression(max_iter=300).fit(train.x, train.group)
        return _points(fit_model(train, seed), guess, validation, test)

    return method


def _points(model: Any, guess: Any, validation: Part, test: Part) -> list[Point]:
    """Points of a fitted model, with the true groups where there is no guess."""
    from oxonfair import DataDict, FairPredictor
    from oxonfair.utils import group_metrics

    def rows(part: Part) -> dict:
        columns = [found.predict_proba(part.x) for found in (model, guess) if found is not None]
        return DataDict(part.y, np.hstack(columns), part.group)

    seen, new = rows(validation), rows(test)
    points = [Point("plain", model.predict(validation.x), model.predict(test.x))]
    rates = {"dp": group_metrics.pos_pred_rate, "tpr": group_metrics.recall}
    for gap, rate in rates.items():
        predictor = FairPredictor(
            _probabilities,
            seen,
            inferred_groups=False if guess is None else _guesses,
            # Version 0.3 fails here where a group is never guessed; its other search is slow.
            use_fast=True,
        )
        for bound in BOUNDS:
            first = bound == BOUNDS[0]
            predictor.fit(group_metrics.accuracy, rate.max_diff, bound, recompute=first)
            decided = [np.asarray(predictor.predict(part)) for part in (seen, new)]
            points.append(Point(f"{gap} bound {bound}", *decided))
    return points


def _probabilities(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    return columns[:, :2].copy()


def _guesses(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    return columns[:, 2:]


METHODS: dict[str, Method] = {
    "OxonFair + network": true_groups(fitted_network),
    "OxonFair + network, guessed groups": guessed_groups(fitted_network),
}
