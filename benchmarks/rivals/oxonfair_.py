"""OxonFair: thresholds per group on cross-fitted scores, with the true groups at prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rivals.base_models import cross_fitted_scores
from rivals.common import Decisions, Method, Part, by_bounds, mark


@mark(needs_attribute=True)
def oxonfair(rows: Part, test: Part, seed: int):  # noqa: ANN201
    from oxonfair import DataDict, FairPredictor
    from oxonfair.utils import group_metrics

    seen, new = cross_fitted_scores(rows, test, seed)
    known = DataDict(rows.y, np.stack([1 - seen, seen], 1), rows.group)
    unknown = DataDict(test.y, np.stack([1 - new, new], 1), test.group)
    gaps = {
        "dp": group_metrics.pos_pred_rate.max_diff,
        "tpr": group_metrics.recall.max_diff,
        "eo": group_metrics.equalized_odds_max,
    }
    predictors: dict[str, Any] = {}

    def decide(problem: str, bound: float) -> Decisions:
        first = problem not in predictors
        if first:
            predictors[problem] = FairPredictor(_probabilities, known, use_fast=True)
        predictor = predictors[problem]
        predictor.fit(group_metrics.accuracy, gaps[problem], bound, recompute=first)
        return np.asarray(predictor.predict(unknown))

    yield from by_bounds(decide)


def _probabilities(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    return columns.copy()


METHODS: dict[str, Method] = {"OxonFair + HGB": oxonfair}
