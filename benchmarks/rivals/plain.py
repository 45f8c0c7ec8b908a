"""Reference points: models that know nothing of fairness."""

from __future__ import annotations

from rivals.base_models import MakeModel, histogram, logistic
from rivals.common import PROBLEMS, Handed, Method, Part, mark


def plain(make_model: MakeModel, encoding: str) -> Method:
    @mark(encoding=encoding)
    def method(rows: Part, test: Part, seed: int):  # noqa: ANN202
        decided = make_model(rows, seed).fit(rows.x, rows.y).predict(test.x)
        for problem in PROBLEMS:
            yield problem, Handed([decided])

    return method


METHODS: dict[str, Method] = {
    "plain LR": plain(logistic, "numbers"),
    "plain HGB": plain(histogram, "codes"),
}
