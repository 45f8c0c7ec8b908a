"""OxonFair: thresholds per group on the network, searched on validation rows.

Twice: with the true groups at prediction, and with groups guessed from the inputs by a multinomial
logistic regression, which needs no attribute at prediction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from rivals.common import (
    Method,
    NetworkClassifier,
    Part,
    Point,
    needs_attribute,
    plain_step,
    train_network,
)

BOUNDS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)


@needs_attribute
def true_groups(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
    return _points(train, validation, test, seed, guessed=False)


def guessed_groups(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
    return _points(train, validation, test, seed, guessed=True)


def _points(train: Part, validation: Part, test: Part, seed: int, guessed: bool) -> list[Point]:
    from oxonfair import DataDict, FairPredictor
    from oxonfair.utils import group_metrics

    network = NetworkClassifier(train_network(train, seed, plain_step))
    guess = LogisticRegression(max_iter=300).fit(train.x, train.group) if guessed else None

    def rows(part: Part) -> dict:
        columns = [network.predict_proba(part.x)]
        if guess is not None:
            columns.append(guess.predict_proba(part.x))
        return DataDict(part.y, np.hstack(columns), part.group)

    seen, new = rows(validation), rows(test)
    points = [Point("plain", network.predict(validation.x), network.predict(test.x))]
    rates = {"dp": group_metrics.pos_pred_rate, "tpr": group_metrics.recall}
    for gap, rate in rates.items():
        predictor = FairPredictor(
            _probabilities,
            seen,
            inferred_groups=_guesses if guessed else False,
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
    "OxonFair + network": true_groups,
    "OxonFair + network, guessed groups": guessed_groups,
}
