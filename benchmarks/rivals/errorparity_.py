"""error-parity (Cruz and Hardt 2024): thresholds per group, by a convex program on ROC curves."""

from __future__ import annotations

from rivals.base_models import cross_fitted_scores
from rivals.common import Decisions, Method, Part, by_bounds, mark

CONSTRAINTS = {
    "dp": "demographic_parity",
    "tpr": "true_positive_rate_parity",
    "eo": "equalized_odds",
}


@mark(needs_attribute=True)
def error_parity(rows: Part, test: Part, seed: int):  # noqa: ANN201
    from error_parity import RelaxedThresholdOptimizer

    seen, new = cross_fitted_scores(rows, test, seed)

    def decide(problem: str, bound: float) -> Decisions:
        model = RelaxedThresholdOptimizer(
            predictor=lambda scores: scores[:, 0],
            constraint=CONSTRAINTS[problem],
            tolerance=bound,
            seed=seed,
        )
        model.fit(X=seen[:, None], y=rows.y, group=rows.group)
        return model(new[:, None], group=test.group)

    yield from by_bounds(decide)


METHODS: dict[str, Method] = {"error-parity + HGB": error_parity}
