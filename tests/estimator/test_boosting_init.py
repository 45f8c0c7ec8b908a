"""``init``: the front around the trees in production."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import xgboost
from sklearn.base import clone
from tests.estimator import trees as shared
from tests.estimator.tables import DATA, FRESH
from tests.estimator.trees import BY_NAME, base_of

from apfex.metrics import accuracy, dp_gap


def categorical(X, order=None):
    """Text as pandas categories, in the same order for any rows."""
    levels = {
        name: pd.CategoricalDtype(sorted(DATA.X[name].unique())[::order])
        for name in ("town", "noise_2")
    }
    return X.astype(levels)


def trees(**changes: Any):
    """Members that start from a model, unless another search is asked for."""
    return shared.trees(**{"search": "inprocess", **changes})


def fitted(X: Any, y: Any = DATA.y, **changes: Any):
    return trees(**changes).fit(X, y, sensitive_features=DATA.sensitive)


NUMBERS, FRESH_NUMBERS = (X.select_dtypes("number") for X in (DATA.X, FRESH.X))
CATEGORIES, FRESH_CATEGORIES = categorical(DATA.X), categorical(FRESH.X)


def production(X: Any = CATEGORIES, y: Any = DATA.y, **changes: Any):
    """Fitted until no row is wrong, so that nothing is more accurate."""
    settings = {"n_estimators": 150, "max_depth": 8, "enable_categorical": True, "n_jobs": 1}
    return xgboost.XGBClassifier(**{**settings, **changes}).fit(X, y)


MODEL = production()


class TestInit:
    @pytest.mark.parametrize("init", [MODEL, MODEL.get_booster()], ids=["classifier", "booster"])
    def test_the_model_in_production_is_the_first_candidate(self, init):
        clf = fitted(CATEGORIES, init=init)
        point = clf.front_[0]
        assert point.epoch == 0
        assert point.error == 1 - accuracy(DATA.y, MODEL.predict(CATEGORIES)) == 0
        found = clf.at(0)
        margins = MODEL.predict(FRESH_CATEGORIES, output_margin=True)
        np.testing.assert_array_equal(found.decision_function(FRESH_CATEGORIES), margins)
        assert (found.predict(FRESH_CATEGORIES) == MODEL.predict(FRESH_CATEGORIES)).all()

    def test_it_is_not_changed_and_gaps_get_smaller(self):
        model = production(NUMBERS, n_estimators=20, max_depth=3, learning_rate=0.2)
        before = model.get_booster().save_raw()
        clf = fitted(NUMBERS, init=model)
        assert model.get_booster().save_raw() == before
        own = dp_gap(FRESH.y, model.predict(FRESH_NUMBERS), sensitive_features=FRESH.sensitive)
        fair = clf.at(-1).predict(FRESH_NUMBERS)
        assert dp_gap(FRESH.y, fair, sensitive_features=FRESH.sensitive) < own
        assert accuracy(FRESH.y, fair) > 0.55

    def test_three_classes(self):
        y = np.where(DATA.X["merit_1"] > 1, 2, DATA.y)
        model = production(y=y)
        clf = fitted(CATEGORIES, y, init=model)
        assert clf.front_[0].epoch == 0
        found = clf.at(0).decision_function(FRESH_CATEGORIES)
        margins = model.predict(FRESH_CATEGORIES, output_margin=True)
        np.testing.assert_array_equal(found, margins)

    def test_missing_values_go_through(self):
        X, fresh = (X.mask(X > 1.5) for X in (NUMBERS, FRESH_NUMBERS))
        model = production(X)
        clf = fitted(X, init=model)
        assert clf.front_[0].epoch == 0
        margins = model.predict(fresh, output_margin=True)
        np.testing.assert_array_equal(clf.at(0).decision_function(fresh), margins)

    @pytest.mark.parametrize("as_booster", [False, True], ids=["classifier", "booster"])
    def test_rounds_are_those_that_the_model_itself_uses(self, as_booster):
        """A classifier stops at its best round, a booster counts all."""
        other = FRESH_NUMBERS, FRESH.y
        model = xgboost.XGBClassifier(n_estimators=60, early_stopping_rounds=20, learning_rate=0.9)
        model.fit(NUMBERS, DATA.y, eval_set=[other], verbose=False)
        assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
        init = model.get_booster() if as_booster else model
        clf = fitted(NUMBERS, init=init)
        data = xgboost.DMatrix(FRESH_NUMBERS)
        margins = (
            init.predict(data, output_margin=True)
            if as_booster
            else init.predict(FRESH_NUMBERS, output_margin=True)
        )
        base = base_of(clf.front_[0].module)
        fresh = clf.fitted_.encoder.transform(FRESH_NUMBERS)
        np.testing.assert_array_equal(base(torch.from_numpy(fresh)).squeeze(1), margins)

    def test_columns_are_found_by_name(self):
        X = pd.concat([NUMBERS, DATA.sensitive], axis=1)
        clf = trees(**BY_NAME, init=production(NUMBERS)).fit(X, DATA.y)
        turned = X[X.columns[::-1]]
        assert (clf.predict_proba(turned) == clf.predict_proba(X)).all()

    def test_other_columns_are_refused(self):
        X = pd.concat([NUMBERS, DATA.sensitive], axis=1)
        clf = trees(**BY_NAME, init=production(NUMBERS)).fit(X, DATA.y)
        with pytest.raises(ValueError, match=r"without \['merit_1'\] and with \['Merit_1'\]"):
            clf.predict(X.rename(columns={"merit_1": "Merit_1"}))

    def test_a_mismatch_is_found_wherever_it_is(self):
        """Levels in another order that only the last rows tell."""
        order = np.argsort(DATA.X["noise_2"].to_numpy(), kind="stable")
        *first, last, other = sorted(DATA.X["noise_2"].unique())
        X = CATEGORIES.iloc[order].copy()
        X["noise_2"] = X["noise_2"].cat.reorder_categories([*first, other, last])
        with pytest.raises(ValueError, match="init must score X as it did"):
            trees(init=MODEL).fit(X, DATA.y[order], sensitive_features=DATA.sensitive.iloc[order])

    @pytest.mark.parametrize("init", [MODEL, MODEL.get_booster()], ids=["classifier", "booster"])
    def test_a_clone_keeps_the_fitted_model(self, init):
        clf: Any = clone(trees(init=init))
        assert clf.init is init
        clf.fit(CATEGORIES, DATA.y, sensitive_features=DATA.sensitive)

    def test_a_pickle_holds_the_model(self):
        clf = fitted(CATEGORIES, init=MODEL)
        again = pickle.loads(pickle.dumps(clf))
        for place in range(len(clf.front_)):
            found, expected = (
                c.at(place).decision_function(FRESH_CATEGORIES) for c in (again, clf)
            )
            assert (found == expected).all()

    def test_arrays_are_fine_and_constraints_hold_for_the_repair(self):
        model = production(NUMBERS.to_numpy(), monotone_constraints=(1, 0, 0))
        clf = fitted(NUMBERS.to_numpy(), init=model, monotone_constraints={"x0": 1})
        rows = np.repeat(NUMBERS.to_numpy()[:1], 50, 0)
        rows[:, 0] = np.linspace(-4, 4, 50)
        for place in range(len(clf.front_)):
            assert (np.diff(clf.at(place).decision_function(rows)) >= -1e-5).all()

    MISFITS = {  # noqa: RUF012
        "columns": (NUMBERS, DATA.y, MODEL, "init must take the 3 columns of X, got a model of 5"),
        "labels": (
            CATEGORIES,
            np.where(DATA.y == 1, "yes", "no"),
            MODEL,
            r"init must know the classes \['no', 'yes'\] of y, got \[",
        ),
        "classes": (
            CATEGORIES,
            np.arange(600) % 3,
            MODEL,
            r"init must know the classes \[0, 1, 2\] of y, got \[",
        ),
        "scores": (
            CATEGORIES,
            np.arange(600) % 3,
            MODEL.get_booster(),
            "init must have 3 scores for 3 classes, got 1",
        ),
        "reordered categories": (
            categorical(DATA.X, -1),
            DATA.y,
            MODEL,
            "init must score X as it did when it was fitted, got margins that differ",
        ),
        "text": (DATA.X, DATA.y, MODEL, "X must hold numbers and categories, as init takes them"),
        "names": (
            CATEGORIES.to_numpy()[:, [0, 1, 3, 3, 3]].astype(float),
            DATA.y,
            MODEL.get_booster(),
            "init must take X as it is, got one that fails on it",
        ),
        "path": (CATEGORIES, DATA.y, "model.json", "init must be a fitted XGBoost .* got str"),
        "unfitted": (
            CATEGORIES,
            DATA.y,
            xgboost.XGBClassifier(),
            "init must be a fitted classifier or Booster, got XGBClassifier",
        ),
        "regression": (
            NUMBERS,
            DATA.y,
            xgboost.XGBRegressor(n_estimators=2).fit(NUMBERS, DATA.y),
            "init must be a fitted classifier or Booster, got XGBRegressor",
        ),
        "scores that are no logits": (
            NUMBERS,
            DATA.y,
            xgboost.XGBRegressor(n_estimators=2).fit(NUMBERS, DATA.y).get_booster(),
            "init must have logits as margins, .* got 'reg:squarederror'",
        ),
        "linear": (
            NUMBERS,
            DATA.y,
            xgboost.XGBClassifier(n_estimators=2, booster="gblinear").fit(NUMBERS, DATA.y),
            "init must be made of trees, got 'gblinear'",
        ),
    }

    @pytest.mark.parametrize(("X", "y", "init", "message"), MISFITS.values(), ids=MISFITS.keys())
    def test_a_model_that_does_not_go_with_the_rows_is_refused(self, X, y, init, message):
        clf = trees(init=init)
        with pytest.raises(ValueError, match=message):
            clf.fit(X, y, sensitive_features=DATA.sensitive)
        assert not hasattr(clf, "front_")

    def test_members_need_trees_to_start_from(self):
        with pytest.raises(ValueError, match="XGBoost model goes with model='boosting'"):
            fitted(CATEGORIES, init=MODEL, model="mlp")
