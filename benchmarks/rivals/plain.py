"""Reference points: models that know nothing of fairness."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from rivals.common import Method, Part, Point, network_points


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


def logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=500)


def started_logistic(train: Part, _seed: int) -> StartedLogistic:
    plain = logistic().fit(train.x, train.y)
    return StartedLogistic(np.append(plain.coef_[0], plain.intercept_))


def plain_logistic(train: Part, validation: Part, test: Part, _seed: int) -> list[Point]:
    model = logistic().fit(train.x, train.y)
    return [Point("plain", model.predict(validation.x), model.predict(test.x))]


def plain_network(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
    return network_points(train, validation, test, seed, [])


METHODS: dict[str, Method] = {"plain LR": plain_logistic, "plain network": plain_network}
