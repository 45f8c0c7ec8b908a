"""FairGBM (Cruz et al. 2023): boosted trees with constraints on false negative and positive rates.

It has no demographic parity. Its scikit-learn layer calls a function that is gone from today's
scikit-learn, so it is called by its own ``train``.
"""

from __future__ import annotations

from rivals.common import Decisions, Method, Part, by_bounds, mark

CONSTRAINTS = {"tpr": "FNR", "eo": "FNR,FPR"}
LARGEST = 0.99
"""FairGBM takes no tolerance of 1."""
ROUNDS = {"large": 120, "small": 80}


@mark()
def fairgbm(rows: Part, test: Part, seed: int):  # noqa: ANN201
    import fairgbm as package

    large = len(rows) > 5_000
    categories = [place for place, kind in enumerate(rows.feature_types) if kind == "c"]

    def decide(problem: str, bound: float) -> Decisions:
        data = package.Dataset(
            rows.x, label=rows.y, constraint_group=rows.group, categorical_feature=categories
        )
        settings = {
            "objective": "constrained_cross_entropy",
            "constraint_type": CONSTRAINTS[problem],
            "constraint_fnr_tolerance": min(bound, LARGEST),
            "constraint_fpr_tolerance": min(bound, LARGEST),
            "multiplier_learning_rate": 0.1,
            "learning_rate": 0.1 if large else 0.05,
            "num_leaves": 31 if large else 8,
            "num_threads": 1,
            "verbosity": -1,
            "seed": seed,
        }
        model = package.train(settings, data, ROUNDS["large" if large else "small"])
        return model.predict(test.x, raw_score=True) > 0

    yield from by_bounds(decide, problems=("tpr", "eo"))


METHODS: dict[str, Method] = {"FairGBM": fairgbm}
