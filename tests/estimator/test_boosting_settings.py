"""Arguments of trees: what reaches them, monotone constraints, and what is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.estimator.tables import DATA
from tests.estimator.trees import BOTH, base_of, fitted, trees


@pytest.mark.parametrize(("name", "low", "high"), [("n_estimators", 1, 12), ("max_depth", 1, 4)])
@BOTH
def test_parameters_of_trees_reach_them(form, name, low, high):
    sizes = []
    for value in (low, high):
        point = fitted(**{**form, name: value}).front_[0]
        module: Any = point.module
        trees_ = module.joint.models[0].label if form == {} else base_of(module)
        frame = trees_.booster.trees_to_dataframe()
        sizes.append((frame["Tree"].max(), frame.groupby("Tree").size().max()))
    place = 0 if name == "n_estimators" else 1
    assert sizes[0][place] < sizes[1][place]


MONOTONE = {"merit_1": 1, "noise_1": -1}


class TestMonotone:
    def test_every_point_is_monotone(self):
        noisy = DATA.X.assign(merit_1=-DATA.X["merit_1"])  # against what the rows say
        free, bound = (
            fitted(noisy, search="inprocess", monotone_constraints=signs)
            for signs in (None, MONOTONE)
        )
        sweep = noisy.iloc[:20].loc[lambda rows: rows.index.repeat(30)].reset_index(drop=True)

        def rises(clf, name):
            rows = sweep.assign(**{name: np.tile(np.linspace(-4, 4, 30), 20)})
            return np.stack(
                [
                    np.diff(clf.at(p).decision_function(rows).reshape(20, 30), axis=1)
                    for p in range(len(clf.front_))
                ]
            )

        assert (rises(free, "merit_1") < -1e-3).any()
        assert (rises(free, "noise_1") > 1e-3).any()
        assert (rises(bound, "merit_1") >= -1e-6).all()
        assert (rises(bound, "noise_1") <= 1e-6).all()

    def test_they_get_members(self):
        clf = fitted(monotone_constraints=MONOTONE)
        assert clf.front_[0].n_rows == 200  # rules would be crossed
        zeros = fitted(monotone_constraints={"merit_1": 0})
        assert zeros.front_[0].n_rows == 600
        with pytest.raises(ValueError, match="search must be 'inprocess' or 'auto' with monotone"):
            fitted(monotone_constraints=MONOTONE, search="postprocess")

    def test_one_on_a_column_that_does_not_vary_is_met(self):
        X = DATA.X.assign(merit_2=1.0)
        assert len(fitted(X, monotone_constraints={"merit_1": 1, "merit_2": 1}).front_) >= 1

    BAD = {  # noqa: RUF012
        "unknown": ({"merit_9": 1}, {}, r"must name columns of numbers, got \['merit_9'\]"),
        "category": ({"town": 1}, {}, r"must name columns of numbers, got \['town'\]"),
        "two": ({"merit_1": 2}, {}, r"must be of -1, 0 and 1, got \{'merit_1': 2\}"),
        "tuple": ((1, 0), {}, r"must map columns to -1, 0 or 1, got \(1, 0\)"),
        "network": (
            MONOTONE,
            {"model": "mlp"},
            "must be None unless model is 'auto' or 'boosting'",
        ),
        "both": (
            MONOTONE,
            {"model": ("mlp", "boosting"), "learning_rate": None},
            "must be None unless model is 'auto' or 'boosting'",
        ),
    }

    @pytest.mark.parametrize(("given", "more", "message"), BAD.values(), ids=BAD.keys())
    def test_bad_ones_are_refused(self, given, more, message):
        with pytest.raises(ValueError, match=f"monotone_constraints {message}"):
            fitted(monotone_constraints=given, **more)


BAD = {
    "patience of rules": ({"patience": 3}, "patience must be None for rules, got 3"),
    "rate of two models": (
        {"model": ("mlp", "boosting")},
        "learning_rate must be None for several models, got 0.2",
    ),
    "typo": ({"model": "boostin"}, r"model must be 'auto', of \['mlp', .*got 'boostin'"),
    "typo in a tuple": (
        {"model": ("mlp", "tree")},
        r"model must be 'auto', of .*got \('mlp', 'tree'\)",
    ),
    "nested": ({"model": (["mlp"], "boosting")}, "model must be 'auto', of "),
    "twice": ({"model": ("boosting", "boosting")}, "model must be 'auto', of "),
    "none": ({"model": ()}, r"model must be 'auto', of .*got \(\)"),
    "mlp and linear": ({"model": ("mlp", "linear")}, "must not name both 'mlp' and 'linear'"),
    "two as members": (
        {"model": ("mlp", "boosting"), "learning_rate": None, "search": "inprocess"},
        "model must be a single one for members",
    ),
    "no rounds": ({"n_estimators": 0}, "n_estimators must be at least 1, got 0"),
    "half a round": ({"n_estimators": 1.5}, "n_estimators must be None or an integer, got 1.5"),
    "no depth": ({"max_depth": 0}, "max_depth must be at least 1, got 0"),
    "text depth": ({"max_depth": "6"}, "max_depth must be None or an integer, got '6'"),
    "members crossed": ({"search": "inprocess", "validation": "cross"}, "validation must be"),
    "old word": ({"search": "networks"}, "search must be one of .* got 'networks'"),
    "constant": ({}, "X must have a column that varies"),
}


@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD.keys())
def test_settings_that_do_not_go_together_are_refused(changes, message):
    X = DATA.X if changes else pd.DataFrame({"one": np.ones(600)})
    clf = trees(**changes)
    with pytest.raises(ValueError, match=message):
        clf.fit(X, DATA.y, sensitive_features=DATA.sensitive)
    assert not hasattr(clf, "front_")
