"""scikit-learn's contract, and what every baseline promises."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from reproduction.tests.baselines.tables import DATA, FRESH, QUICK, SEX
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from apfex.strategies import EqualWeights
from apfex_reproduction.baselines import (
    MMAMO,
    SMAMO,
    PaperAPFEx,
    PlainNetwork,
    RejectOption,
    SearchFair,
)

ESTIMATORS = {
    "plain": lambda: PlainNetwork(**QUICK),
    "s-mamo": lambda: SMAMO("dp", **QUICK),
    "s-mamo as published": lambda: SMAMO("tpr", solver="published", **QUICK),
    "m-mamo": lambda: MMAMO(**QUICK),
    "m-mamo over pairs": lambda: MMAMO(losses="pairs", **QUICK),
    "m-mamo as published": lambda: MMAMO(solver="published", **QUICK),
    # By the paper's rule and scales so few epochs end at a constant decision.
    "apfex": lambda: PaperAPFEx(
        strategy=EqualWeights(), scales="range", selection="accurate", **QUICK
    ),
    "searchfair": lambda: SearchFair(random_state=0),
    "searchfair rbf": lambda: SearchFair(kernel="rbf", max_rows=300, random_state=0),
    "reject option": lambda: RejectOption(
        "dp", PlainNetwork(**QUICK), search="grid", random_state=0
    ),
}
VARIANTS = {"s-mamo as published", "m-mamo over pairs", "searchfair rbf"}
"""What they add to the others is checked in the slow tier."""
each = pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=[pytest.mark.slow] * (name in VARIANTS))
        for name, make in ESTIMATORS.items()
    ],
)


def at_prediction(clf, sensitive):
    return {"sensitive_features": sensitive} if isinstance(clf, RejectOption) else {}


def fit(clf, **more):
    return clf.fit(DATA.X, DATA.y, sensitive_features=SEX, **more)


@each
def test_it_predicts_alike_in_all_ways(make):
    clf = fit(make())
    given = at_prediction(clf, FRESH.sensitive["sex"])
    decided, p = clf.predict(FRESH.X, **given), clf.predict_proba(FRESH.X, **given)
    scores = clf.decision_function(FRESH.X, **given)
    assert decided.shape == scores.shape == (600,)
    assert p.shape == (600, 2)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(1), 1)
    assert (decided == clf.classes_[(scores > 0).astype(int)]).all()
    assert (decided == clf.classes_[(p[:, 1] > 0.5).astype(int)]).all()
    assert (decided == FRESH.y).mean() > 0.55


@each
def test_clones_and_pickles_predict_the_same(make):
    clf = fit(make())
    given = at_prediction(clf, SEX)
    expected = clf.predict_proba(DATA.X, **given)
    again = fit(clone(clf))
    assert (again.predict_proba(DATA.X, **given) == expected).all()
    stored = pickle.loads(pickle.dumps(clf))
    assert (stored.predict_proba(DATA.X, **given) == expected).all()


@each
def test_fit_leaves_its_arguments_and_settings_alone(make):
    clf = make()
    before = {name: repr(value) for name, value in clf.get_params().items()}
    X, y, sex = DATA.X.copy(), DATA.y.copy(), SEX.copy()
    clf.fit(X, y, sensitive_features=sex)
    pd.testing.assert_frame_equal(X, DATA.X)
    assert sex.equals(SEX)
    assert (y == DATA.y).all()
    assert {name: repr(value) for name, value in clf.get_params().items()} == before


@each
def test_labels_may_be_words(make):
    words = np.where(DATA.y == 1, "yes", "no")
    clf = make().fit(DATA.X, words, sensitive_features=SEX)
    numbers = fit(make())
    given = at_prediction(clf, SEX)
    assert clf.classes_.tolist() == ["no", "yes"]
    assert ((clf.predict(DATA.X, **given) == "yes") == numbers.predict(DATA.X, **given)).all()


@each
def test_a_row_of_weight_zero_is_no_row_and_only_ratios_matter(make):
    weight = np.random.default_rng(0).integers(0, 3, 600).astype(float)
    here = weight > 0
    y = np.where(here, DATA.y, 0)
    whole = make().fit(DATA.X, y, sensitive_features=SEX, sample_weight=8 * weight)
    part = make().fit(
        DATA.X[here], y[here], sensitive_features=SEX[here], sample_weight=weight[here]
    )
    given = at_prediction(whole, SEX)
    np.testing.assert_allclose(
        whole.predict_proba(DATA.X, **given), part.predict_proba(DATA.X, **given), rtol=1e-6
    )


@each
def test_weights_count(make):
    heavy = np.where(DATA.y == 1, 20.0, 1.0)
    plain, weighted = fit(make()), fit(make(), sample_weight=heavy)
    given = at_prediction(plain, SEX)
    rates = [clf.predict(DATA.X, **given).mean() for clf in (plain, weighted)]
    assert rates[1] > rates[0] + 0.1


@each
def test_validation_rows_are_used_for_choosing_only(make):
    held = (FRESH.X, FRESH.y, FRESH.sensitive["sex"])
    clf = fit(make(), validation=held)
    assert clf.predict(FRESH.X, **at_prediction(clf, held[2])).shape == (600,)


@pytest.mark.filterwarnings("ignore:600 of 600 rows fall into a group")
@each
def test_bad_input_is_named(make):
    held = (FRESH.X, FRESH.y, FRESH.sensitive["sex"])
    cases = [
        ({"y": None}, "y must be given"),
        ({"y": np.arange(600) % 3}, "y must hold two classes, got 3"),
        ({"y": np.zeros(600, int)}, "y must hold two classes, got 1 class"),
        ({"sensitive_features": SEX[:10]}, "one row for each of the 600 rows of X, got 10"),
        ({"sensitive_features": np.zeros(600)}, "at least two groups, got one"),
        ({"sensitive_features": SEX[::-1]}, "sensitive_features must have the index of X"),
        ({"sample_weight": -np.ones(600)}, "(?i)negative"),
        ({"validation": held[:2]}, r"tuple \(X, y, sensitive_features\), got 2 parts"),
        ({"validation": (*held[:2], ["x"] * 600)}, "groups that the training rows have, got 600"),
        ({"validation": (held[0], held[1] * 0, held[2])}, "labels of both classes"),
        ({"validation": (held[0], held[1] + 5, held[2])}, r"and no others, got \[5, 6\]"),
    ]
    for changes, message in cases:
        given = {"y": DATA.y, "sensitive_features": SEX, **changes}
        with pytest.raises(ValueError, match=message):
            make().fit(DATA.X, **given)


@each
def test_it_must_be_fitted_first(make):
    with pytest.raises(NotFittedError):
        make().predict(DATA.X)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "plain"])
def test_a_fairness_method_needs_sensitive_features(name):
    with pytest.raises(ValueError, match="sensitive_features must be given to fit for"):
        ESTIMATORS[name]().fit(DATA.X, DATA.y)


def attribute(X):
    """A two-valued attribute made of X, as scikit-learn's checks know of none; or None."""
    try:
        first = np.asarray(X)[:, 0]
        first = None if np.iscomplexobj(first) else first.astype(np.float64)
    except (TypeError, ValueError, IndexError):
        return None
    if first is None:
        return None
    return np.floor(7 * np.nan_to_num(first, posinf=0, neginf=0)).astype(np.int64) % 2


class Own:
    """Mixin of a baseline that finds its sensitive features itself."""

    def fit(self, X, y, sample_weight=None):
        groups = attribute(X)
        if groups is not None and len(groups) > 1:
            groups[:2] = [0, 1]  # both values occur, however few rows there are
        return super().fit(X, y, sensitive_features=groups, sample_weight=sample_weight)  # pyright: ignore[reportAttributeAccessIssue]


class OwnSMAMO(Own, SMAMO):  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleMethodOverride]
    pass


class OwnMMAMO(Own, MMAMO):  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleMethodOverride]
    pass


class OwnSearchFair(Own, SearchFair):  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleMethodOverride]
    pass


class OwnRejectOption(Own, RejectOption):  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleMethodOverride]
    def _probabilities(self, X, sensitive_features):  # noqa: ARG002 - found at prediction, too
        return super()._probabilities(X, attribute(X))


LONGER: dict[str, Any] = {"epochs": 60, "batch_size": 32, "random_state": 0}
WEIGHTS = "Weighted and repeated rows are split and drawn differently, so they agree up to noise."
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "clf",
    [
        PlainNetwork(**LONGER),
        OwnSMAMO(**LONGER),
        OwnMMAMO(solver="published", **LONGER),
        OwnSearchFair(random_state=0),
        OwnSearchFair(kernel="rbf", random_state=0),
        OwnRejectOption(estimator=LogisticRegression(), search="grid", random_state=0),
    ],
    ids=lambda clf: type(clf).__name__,
)
@pytest.mark.filterwarnings("ignore:Gaps .* are left out", "ignore:.*rows fall into a group")
def test_it_passes_the_checks_of_scikit_learn(clf):
    results = check_estimator(clf, expected_failed_checks=EXPECTED, on_fail=None, on_skip=None)
    odd = {
        result["check_name"]: (result["status"], result["exception"])
        for result in results
        if result["status"] not in ("passed", "xfail")
    }
    odd.pop("check_array_api_input", None)  # skipped unless SCIPY_ARRAY_API is set
    assert odd == {}
