"""Reference points: models that know nothing of fairness."""

from __future__ import annotations

from sklearn.linear_model import LogisticRegression

from rivals.common import Method, Part, Point, network_points


def logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=300)


def plain_logistic(train: Part, validation: Part, test: Part, _seed: int) -> list[Point]:
    model = logistic().fit(train.x, train.y)
    return [Point("plain", model.predict(validation.x), model.predict(test.x))]


def plain_network(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
    return network_points(train, validation, test, seed, [])


METHODS: dict[str, Method] = {"plain LR": plain_logistic, "plain network": plain_network}
