"""``init``: the front around any fitted model, which is not fitted again."""

import copy

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
import xgboost
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from tests.estimator.tables import DATA, FRESH
from tests.estimator.user_models import (
    NEW,
    NUMBERS,
    PAST,
    UNFITTED,
    around,
    fitted,
    fresh,
    mixed,
    own_point,
    pipeline,
    three,
)
from torch import nn

X, FRESH_X, PAST_X = (data.X[NUMBERS] for data in (DATA, FRESH, PAST))
FOREST = RandomForestClassifier(10, random_state=0).fit(PAST_X, PAST.y)
LOGISTIC = LogisticRegression().fit(PAST_X, PAST.y)
IN_PRODUCTION = {
    "random forest": FOREST,
    "logistic regression": LOGISTIC,
    "histogram boosting": fresh(UNFITTED["histogram boosting"]).fit(PAST_X, PAST.y),
    "lightgbm": fresh(lightgbm.LGBMClassifier(n_estimators=10, verbose=-1)).fit(PAST_X, PAST.y),
    "xgboost": xgboost.XGBClassifier(n_estimators=10, n_jobs=1).fit(PAST_X, PAST.y),
    "ties": KNeighborsClassifier(4).fit(PAST_X, PAST.y),
    "another threshold": FixedThresholdClassifier(FrozenEstimator(LOGISTIC))
    .set_params(threshold=0.35, response_method="predict_proba")
    .fit(PAST_X, PAST.y),
    "other scale": RandomForestClassifier(
        10, class_weight={0: 1, 1: 20}, max_depth=3, random_state=0
    ).fit(PAST_X, PAST.y),
}


LIKE_OTHERS = {"histogram boosting", "logistic regression", "xgboost"}
"""They reach no code of their own, and are tried in the slow tier."""


@pytest.mark.parametrize(
    "init",
    [
        pytest.param(model, id=name, marks=[pytest.mark.slow] * (name in LIKE_OTHERS))
        for name, model in IN_PRODUCTION.items()
    ],
)
def test_a_point_decides_as_the_model_and_others_are_fairer(init):
    before = init.predict_proba(PAST_X), repr(vars(init))
    clf = fitted(X, init=init)
    assert (init.predict_proba(PAST_X) == before[0]).all()
    assert repr(vars(init)) == before[1]
    assert clf.mixture_ == {type(init).__name__: 1.0}
    own = own_point(clf)
    assert (own.predict(FRESH_X) == init.predict(FRESH_X)).all()
    assert ((own.decision_function(FRESH_X) > 0) == (init.predict(FRESH_X) == 1)).all()
    decided = clf.decide_all(FRESH_X)
    assert (decided[own.point_] == init.predict(FRESH_X)).all()
    itself = clf.front_[own.point_]
    fairest = min(point.gaps["dp"].gap for point in clf.front_)
    assert fairest < itself.gaps["dp"].gap or itself.near_constant


def test_nothing_is_fitted_again(monkeypatch):
    def fit(*_, **__):
        raise AssertionError("fitted")

    monkeypatch.setattr(LogisticRegression, "fit", fit)
    assert len(fitted(X, init=LOGISTIC).front_) > 1


@pytest.mark.parametrize("form", [lambda model: model, lambda model: model.predict_proba])
def test_a_model_that_is_fitted_again_later_changes_no_front(form):
    model = LogisticRegression().fit(PAST_X, PAST.y)
    clf = fitted(X, init=form(model))
    expected = clf.predict_proba(FRESH_X)
    model.fit(PAST_X, 1 - PAST.y)
    assert (clf.predict_proba(FRESH_X) == expected).all()


def test_a_pipeline_gets_the_table_as_it_is():
    init = pipeline().fit(mixed(PAST), PAST.y)
    clf = fitted(init=init)
    assert (own_point(clf).predict(NEW) == init.predict(NEW)).all()


def test_columns_are_found_by_name():
    whole = pd.concat([DATA.sensitive, X], axis=1)
    clf = around(init=LOGISTIC, sensitive=["sex", "origin"]).fit(whole, DATA.y)
    turned = FRESH_X[FRESH_X.columns[::-1]]
    assert (own_point(clf).predict(turned) == LOGISTIC.predict(FRESH_X)).all()


def test_three_classes_in_words():
    init = fresh(FOREST).fit(PAST_X, three(PAST))
    clf = fitted(X, y=three(DATA), init=init)
    assert (own_point(clf).predict(FRESH_X) == init.predict(FRESH_X)).all()
    assert clf.predict_proba(FRESH_X).sum(1) == pytest.approx(1.0)


def test_thresholds_by_the_group_itself():
    clf = fitted(X, init=LOGISTIC, group_thresholds=True)
    given = {"sensitive_features": FRESH.sensitive}
    assert (own_point(clf).predict(FRESH_X, **given) == LOGISTIC.predict(FRESH_X)).all()
    assert clf.front_[-1].gaps["dp"].gap < 0.1 < own_point(clf).front_[0].gaps["dp"].gap
    fair = clf.at(-1).predict(FRESH_X, **given)
    assert (clf.decide_all(FRESH_X, **given)[-1] == fair).all()


def test_probabilities_are_calibrated_on_the_rows_given():
    clf = fitted(X, init=IN_PRODUCTION["other scale"])
    said = IN_PRODUCTION["other scale"].predict_proba(FRESH_X)[:, 1]
    mended = clf.predict_proba(FRESH_X)[:, 1]
    assert abs(mended.mean() - FRESH.y.mean()) < 0.06 < abs(said.mean() - FRESH.y.mean())
    assert clf.front_[0].error < own_point(clf).front_[own_point(clf).point_].error - 0.05


def test_costs_and_rates_move_the_plain_point():
    rate = fitted(X, init=LOGISTIC, selection_rate=0.2)
    assert rate.decide_all(X).mean(1) == pytest.approx(0.2, abs=0.005)
    # measured on rows that the rules were not fitted to, so by chance a little off
    assert all(abs(point.share_favored - 0.2) < 0.06 for point in rate.front_)
    balanced = fitted(X, init=LOGISTIC, scoring="balanced_accuracy")
    assert all(point.epoch > 0 for point in balanced.front_)


def test_weights_and_no_groups():
    weight = np.where(DATA.y == 1, 3.0, 1.0)
    assert own_point(fitted(X, init=LOGISTIC, sample_weight=weight)).front_[0].n_rows == 600
    with pytest.warns(UserWarning, match="single plain model"):
        clf = around(init=LOGISTIC).fit(X, DATA.y)
    assert len(clf.front_) == 1
    assert (clf.predict(FRESH_X) == LOGISTIC.predict(FRESH_X)).all()


def second(table):
    return LOGISTIC.predict_proba(table)[:, 1]


def scores_of_three(table):
    return table.to_numpy()


FUNCTIONS = {
    "second class": second,
    "column": lambda table: second(table)[:, None],
    "both classes": LOGISTIC.predict_proba,
    "log-odds": LOGISTIC.decision_function,
    "frame": lambda table: pd.DataFrame(LOGISTIC.predict_proba(table)),
}


@pytest.fixture(scope="module")
def of_logistic():
    return fitted(X, init=LOGISTIC)


@pytest.mark.parametrize("init", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_a_function_of_the_table(init, of_logistic):
    clf = fitted(X, init=init)
    assert (own_point(clf).predict(FRESH_X) == LOGISTIC.predict(FRESH_X)).all()
    expected = of_logistic.predict_proba(FRESH_X)
    np.testing.assert_allclose(clf.predict_proba(FRESH_X), expected, atol=1e-9)


def test_scores_of_three_classes():
    clf = fitted(X, y=np.arange(600) % 3, init=scores_of_three)
    assert (own_point(clf).predict(FRESH_X) == FRESH_X.to_numpy().argmax(1)).all()


def test_log_odds_of_a_rare_label_may_all_be_negative():
    score = np.clip(np.asarray(X["merit_1"]), -3, 3)
    rare = (score > np.quantile(score, 0.97)).astype(int)
    clf = fitted(X, y=rare, init=lambda table: table["merit_1"].clip(-3, 3) - 4)
    assert clf.predict_proba(X)[:, 1].mean() == pytest.approx(rare.mean(), abs=0.01)


def test_a_network_and_a_booster_are_not_trained_either():
    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    before = copy.deepcopy(network.state_dict())
    clf = fitted(X, init=network)
    assert network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    x = torch.tensor(FRESH_X.to_numpy(np.float32))
    with torch.no_grad():
        expected = copy.deepcopy(network).eval()(x).squeeze(1) > 0
    assert (own_point(clf).predict(FRESH_X) == expected.numpy()).all()
    booster = IN_PRODUCTION["xgboost"].get_booster()
    found = own_point(fitted(X, init=booster)).predict(FRESH_X)
    assert (found == IN_PRODUCTION["xgboost"].predict(FRESH_X)).all()


def test_polars_and_arrays():
    init = fresh(LOGISTIC).fit(PAST_X.to_numpy(), PAST.y)
    clf = fitted(X.to_numpy(), init=init)
    assert (own_point(clf).predict(FRESH_X.to_numpy()) == LOGISTIC.predict(FRESH_X)).all()
    frames = [pl.from_pandas(table) for table in (X, FRESH_X)]
    own = own_point(fitted(frames[0], init=LOGISTIC))
    assert (own.predict(frames[1]) == LOGISTIC.predict(FRESH_X)).all()


def test_a_clone_and_a_search_keep_the_fitted_model():
    clf = around(init=LOGISTIC, sensitive=["sex"])
    assert fresh(clf).init is LOGISTIC
    whole = pd.concat([X, DATA.sensitive[["sex"]]], axis=1)
    search = GridSearchCV(clf, {"n_members": [3]}, cv=2).fit(whole, DATA.y)
    assert search.best_estimator_.init is LOGISTIC
    frozen = [FrozenEstimator(LOGISTIC), FrozenEstimator(FOREST)]
    search = GridSearchCV(clf, {"init": frozen}, cv=2, refit=False).fit(whole, DATA.y)
    assert search.best_params_["init"] in frozen


def test_the_model_stays_on_a_short_front():
    clf = fitted(X, init=IN_PRODUCTION["other scale"], n_points=2)
    assert len(clf.front_) == 2
    assert own_point(clf).front_ is clf.front_


class Fixed:
    """A model without a class of scikit-learn's."""

    def __init__(self, values):
        self.values = values

    def predict_proba(self, table):
        return np.array([self.values] * len(table))


def holes(table):
    return np.where(np.arange(len(table)) < 3, np.nan, 0.5)


BAD = {
    "no probabilities": (
        LinearSVC().fit(PAST_X, PAST.y),
        "init must be a classifier with predict_proba, got LinearSVC, .* its decision_function",
    ),
    "unfitted": (LogisticRegression(), "init must be fitted, got LogisticRegression that is not; "),
    "unfitted pipeline": (pipeline(), "init must be fitted, got Pipeline that is not"),
    "class": (LogisticRegression, "init must be a fitted classifier, got the class Log"),
    "regressor": (
        RandomForestRegressor(2).fit(PAST_X, PAST.y),
        "init must be a classifier, got the regressor RandomForestRegressor",
    ),
    "text": ("model.skops", "init must be a fitted classifier with predict_proba, .* got str"),
    "labels": (
        fresh(FOREST).fit(PAST_X, np.where(PAST.y == 1, "yes", "no")),
        r"init must know the classes \[0, 1\] of y, got \['no', 'yes'\]",
    ),
    "classes": (
        fresh(FOREST).fit(PAST_X, three(PAST)),
        r"init must know the classes \[0, 1\] of y, got \['fair', 'high', 'low'\]",
    ),
    "columns": (
        fresh(FOREST).fit(PAST_X[["merit_1"]], PAST.y),
        r"init must take X as it is, got RandomForestClassifier, which fails on it \(.*; give a t",
    ),
    "failing": (lambda table: table["age"], "init must take X as it is, got <lambda>, .*'age'"),
    "shape": (
        lambda table: np.zeros((len(table), 3)),
        r"init must return an array of shape \[n, 2\], .* got shape \[600, 3\] from <lambda>",
    ),
    "words": (lambda table: ["yes"] * len(table), "init must return numbers, got list"),
    "NaN": (holes, "init must return finite numbers, got NaN or infinity from holes for 3 of 600"),
    "no log-odds": (
        lambda table: np.linspace(300, 850, len(table)),
        "init must return probabilities from 0 to 1, or log-odds .* got scores from 300 to 850",
    ),
    "percentages": (
        lambda table: 100 * second(table),
        "init must return .* from <lambda>, of which most are sure of a class beyond doubt; divide "
        "percentages by 100",
    ),
    "percentages of each class": (
        lambda table: 100 * LOGISTIC.predict_proba(table),
        "init must return .* of which most are sure of a class beyond doubt",
    ),
    "a scale of ten": (
        lambda table: 10 * second(table),
        "init must return .* which all speak for one class, though labels do not",
    ),
    "sums": (Fixed([0.5, 0.9]), "init must return probabilities that sum to one, got values"),
    "too many": (Fixed([0.5, 0.2, 0.3]), r"init must return probabilities of shape \[n, 2\]"),
}


@pytest.mark.parametrize(("init", "message"), BAD.values(), ids=BAD.keys())
def test_a_model_that_does_not_go_with_the_rows_is_refused(init, message):
    clf = around(init=init)
    with pytest.raises(ValueError, match=message):
        clf.fit(X, DATA.y, sensitive_features=DATA.sensitive)
    assert not hasattr(clf, "front_")


def test_members_start_from_networks_and_trees_alone():
    with pytest.raises(ValueError, match=r"init must be a fitted torch.* with search='postproc"):
        fitted(X, init=LOGISTIC, search="inprocess")
    with pytest.raises(ValueError, match=r"init must be a fitted XGBoost .* got LogisticRegress"):
        fitted(X, init=LOGISTIC, search="inprocess", model="boosting")
