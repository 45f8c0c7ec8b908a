"""``model``: any classifier, cross-fitted as the model of the label."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from tests.estimator.tables import DATA, FRESH
from tests.estimator.user_models import (
    NEW,
    NUMBERS,
    UNFITTED,
    around,
    fitted,
    fresh,
    mixed,
    pipeline,
    three,
)

from apfex.metrics import accuracy, dp_gap


def raw(model):
    """A pipeline that hands on the table as it is."""
    return pipeline().set_params(columntransformer="passthrough", logisticregression=model)


class Seen(ClassifierMixin, BaseEstimator):
    """Remembers what it was given; the first column tells the label."""

    log: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.log.append((X, y, sample_weight))
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        first = np.nan_to_num(np.asarray(X)[:, 0].astype(float))
        odds = np.exp(np.outer(first, np.arange(len(self.classes_))))
        return odds / odds.sum(1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(1)]


MOST_UNLIKE = {"lightgbm", "xgboost", "pipeline"}
"""The others are tried in the slow tier."""


@pytest.fixture
def log():
    Seen.log.clear()
    return Seen.log


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(model, id=name, marks=[pytest.mark.slow] * (name not in MOST_UNLIKE))
        for name, model in UNFITTED.items()
    ],
)
def test_a_mixed_table_with_missing_values_just_works(model):
    clf = fitted(model=model)
    plain, fair = (clf.at(place).predict(NEW) for place in (0, -1))
    gaps = [dp_gap(FRESH.y, each, sensitive_features=FRESH.sensitive) for each in (plain, fair)]
    assert accuracy(FRESH.y, plain) > 0.65
    assert gaps[1] < gaps[0]
    assert not hasattr(model, "classes_")  # it is not changed
    assert clf.mixture_ == {type(model).__name__: 1.0}


@pytest.mark.parametrize("name", ["random forest", "lightgbm", "pipeline"])
def test_three_classes_in_words(name):
    clf = fitted(model=UNFITTED[name], y=three(DATA))
    assert clf.predict_proba(NEW).shape == (600, 3)
    assert (clf.at(0).predict(NEW) == three(FRESH)).mean() > 0.6


def test_the_same_seed_gives_the_same_front():
    model = RandomForestClassifier(5)  # without a seed of its own
    first, again, other = (fitted(model=model, random_state=seed) for seed in (0, 0, 1))
    assert (first.predict_proba(NEW) == again.predict_proba(NEW)).all()
    assert (first.predict_proba(NEW) != other.predict_proba(NEW)).any()


def test_each_row_is_predicted_by_a_clone_that_has_not_seen_it(log):
    X = DATA.X[NUMBERS].assign(row=np.arange(600.0))
    fitted(
        X, model=pipeline().set_params(columntransformer="passthrough", logisticregression=Seen())
    )
    assert len(log) == 3
    seen = [set(table["row"]) for table, *_ in log]
    assert all(sum(row in one for one in seen) == 2 for row in range(600))


def test_a_bare_classifier_gets_numbers_and_a_pipeline_the_table(log):
    fitted(model=Seen())
    assert np.isfinite(log[0][0]).all()
    log.clear()
    fitted(model=raw(Seen()))
    assert list(log[0][0].columns) == list(DATA.X.columns)
    assert log[0][0].isna().to_numpy().any()


def test_labels_are_those_of_y(log):
    fitted(model=Seen(), y=three(DATA))
    assert set(log[0][1]) == {"high", "fair", "low"}


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_weights_reach_the_model(log, in_pipeline):
    model = raw(Seen()) if in_pipeline else Seen()
    fitted(DATA.X[NUMBERS], model=model, sample_weight=np.where(DATA.y == 1, 3.0, 1.0))
    _, y, weight = log[0]
    assert weight[y == 1] == pytest.approx(3 * weight[y == 0][0])


def test_a_model_that_takes_no_weights_is_told_of():
    with pytest.warns(UserWarning, match="sample_weight is not taken by fit of KNeighbors"):
        fitted(model=KNeighborsClassifier(), sample_weight=np.linspace(1, 2, 600))


def test_categories_of_pandas_and_text_reach_trees_that_take_them():
    model = xgboost.XGBClassifier(n_estimators=8, enable_categorical=True, n_jobs=1)
    words = np.where(DATA.y == 1, "yes", "no")
    clf = fitted(model=model, y=words)
    assert (clf.at(0).predict(NEW) == np.where(FRESH.y == 1, "yes", "no")).mean() > 0.65
    unknown = NEW.assign(town="nowhere")
    assert len(clf.predict(unknown)) == 600


@pytest.mark.parametrize("name", ["histogram boosting", "lightgbm", "xgboost"])
def test_text_becomes_categories_in_frames_of_every_kind(name):
    X, new = mixed(DATA), pl.from_pandas(NEW)
    of_pandas = fitted(X, model=fresh(UNFITTED[name]))
    of_polars = fitted(pl.from_pandas(X), model=fresh(UNFITTED[name]))
    expected = of_pandas.predict_proba(NEW)
    assert (of_polars.predict_proba(new) == expected).all()
    assert (of_pandas.predict_proba(new) == expected).all()


def test_text_becomes_categories_whatever_columns_are_called():
    model, places = UNFITTED["histogram boosting"], range(NEW.shape[1])
    named, counted = mixed(DATA), mixed(DATA).set_axis(places, axis=1)
    clf = fitted(counted, model=fresh(model))
    expected = fitted(named, model=fresh(model)).predict_proba(NEW)
    assert (clf.predict_proba(NEW.set_axis(places, axis=1)) == expected).all()


def test_thresholds_by_group_clone_pickle_and_search():
    clf = fitted(model=LogisticRegression(), group_thresholds=True)
    given = {"sensitive_features": FRESH.sensitive}
    again = pickle.loads(pickle.dumps(clf))
    assert (again.decide_all(NEW, **given) == clf.decide_all(NEW, **given)).all()
    assert fresh(clf).model.get_params() == LogisticRegression().get_params()
    models = {"model": [LogisticRegression(), Seen()]}
    search = GridSearchCV(around(sensitive=["sex"]), models, cv=2, refit=False)
    whole = pd.concat([DATA.X[NUMBERS], DATA.sensitive[["sex"]]], axis=1)
    assert isinstance(search.fit(whole, DATA.y).best_params_["model"], LogisticRegression)


class Failing(Seen):
    def fit(self, X, y, sample_weight=None):
        raise RuntimeError(f"no idea\nwhy {X}, {y} and {sample_weight}")


class Odd(Seen):
    def predict_proba(self, X):
        return super().predict_proba(X)[:, :1]


BAD = {
    "no probabilities": (
        {"model": LinearSVC()},
        r"model must be a classifier with predict_proba, got LinearSVC, which has none; give "
        r"CalibratedClassifierCV\(LinearSVC\(\)\)",
    ),
    "regressor": ({"model": RandomForestRegressor()}, "model must be a classifier, got the regr"),
    "class": ({"model": LogisticRegression}, r"got the class LogisticRegression; give Logis.*\(\)"),
    "members": (
        {"model": LogisticRegression(), "search": "inprocess"},
        "search must be 'postprocess' or 'auto' with a classifier as model",
    ),
    "both": (
        {"model": LogisticRegression(), "init": LogisticRegression().fit([[0], [1]], [0, 1])},
        "model must be left at its default where init is given, got LogisticRegression",
    ),
    "monotone": (
        {"model": LogisticRegression(), "monotone_constraints": {"merit_1": 1}},
        "monotone_constraints must be None unless model is 'auto' or 'boosting'",
    ),
    "failing": ({"model": Failing()}, r"model must be such .* got Failing, .*\(no idea\); put"),
    "wrong shape": ({"model": Odd()}, r"model must return probabilities of shape \[n, 2\]"),
    "number": ({"model": 3}, "model must be .* a classifier of scikit-learn's form, or a fac"),
}


@pytest.mark.parametrize(("settings", "message"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_fitted_is_refused(settings, message):
    clf = around(**settings)
    with pytest.raises(ValueError, match=message):
        clf.fit(mixed(DATA), DATA.y, sensitive_features=DATA.sensitive)
    assert not hasattr(clf, "front_")
