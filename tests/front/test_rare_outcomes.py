"""One positive in a hundred: a front that is not trivial, whatever says that positives matter."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from tests.estimator.tables import DATA, quick, shared

from apfex import APFExClassifier
from apfex.front import Front, Scoring, UnmetBoundWarning

N = 20_000


def make_rare():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, N)
    X = pd.DataFrame(rng.normal(size=(N, 4)), columns=["a", "b", "c", "d"])
    logit = -6.3 + 1.5 * X["a"] + X["b"] + 0.5 * group
    y = (rng.random(N) < 1 / (1 + np.exp(-logit))).astype(int)
    return X.assign(c=X["c"] + group), y, group


X, Y, GROUP = make_rare()
ASKED = {
    "balanced accuracy": {"scoring": "balanced_accuracy"},
    "costs": {"cost_matrix": [[0, 1], [100, 0]]},
    "rate": {"selection_rate": 0.05},
    "class weights": {"class_weight": "balanced", "scoring": "f1"},
}


def test_the_table_is_rare():
    assert 0.008 < Y.mean() < 0.015


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
def test_the_front_is_not_trivial(asked):
    clf = APFExClassifier(
        model="boosting", n_estimators=25, n_members=4, max_gap=1.0, random_state=0, **asked
    )
    clf.fit(X, Y, sensitive_features=GROUP)
    decided = clf.predict(X)
    assert not any(point.trivial for point in clf.front_[:1])
    assert 0.005 < decided.mean() < 0.5
    assert decided[Y == 1].mean() > 0.3  # a plain model finds next to none of them
    assert decided[Y == 1].mean() > 1.5 * decided[Y == 0].mean()


@pytest.mark.parametrize("model", ["linear", "mlp", "boosting"])
@pytest.mark.parametrize("asked", ["balanced accuracy", "class weights"])
def test_members_are_not_trivial_either(asked, model):
    clf = APFExClassifier(
        model=model, search="inprocess", n_members=4, n_estimators=25, max_gap=1.0, random_state=0
    )
    clf.set_params(epochs=8, **ASKED[asked]).fit(X, Y, sensitive_features=GROUP)
    decided = clf.at(0).predict(X)
    assert 0.005 < decided.mean() < 0.5
    assert decided[Y == 1].mean() > 0.3
    assert clf.predict_proba(X)[:, 1].mean() == pytest.approx(Y.mean(), abs=0.005)


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (
            {},
            r"another scoring: 'balanced_accuracy', class_weight, a cost_matrix or a selection_ra",
        ),
        ({"search": "inprocess"}, r"a selection_rate \(with search=postprocess\)\.$"),
        ({"scoring": "balanced_accuracy"}, r"label\. Use a selection_rate, other inputs, or more"),
        (
            {"scoring": "balanced_accuracy", "search": "inprocess"},
            r"label\. Use search='postprocess', which also takes a cost_matrix or a selection_rate",
        ),
    ],
    ids=str,
)
def test_the_advice_is_none_that_was_followed_or_is_refused(given, advice):
    clf = APFExClassifier(
        model="linear", n_members=4, epochs=2, max_gap=1.0, random_state=0, **given
    )
    clf.fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive)
    front = Front(
        [replace(point, trivial=True) for point in clf.front_],
        clf.front_.by,
        constant_error=clf.front_.constant_error,
        constant_label=0,
    )
    with pytest.warns(UnmetBoundWarning, match=advice):
        front.first_choice({"dp": 0.0})


class TestClassWeight:
    def test_it_is_what_an_error_on_a_label_costs(self):
        shares = torch.tensor([0.9, 0.1])
        costs = Scoring("cost", np.array([[0.0, 1.0], [5.0, 0.0]])).costs_of(shares)
        weighted = Scoring(class_weight=np.array([1.0, 5.0])).costs_of(shares)
        torch.testing.assert_close(weighted, costs)
        balanced = Scoring("balanced_error").costs_of(shares)
        weighted = Scoring(class_weight=1 / (2 * shares.numpy())).costs_of(shares)
        torch.testing.assert_close(weighted, balanced)

    def test_decisions_follow_and_probabilities_stay(self):
        plain, weighted = shared(), quick(class_weight={1: 20.0})
        weighted.fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive)
        assert weighted.predict(DATA.X).mean() > plain.predict(DATA.X).mean() + 0.1
        np.testing.assert_allclose(weighted.predict_proba(DATA.X), plain.predict_proba(DATA.X))
        assert weighted.front_.by == "error"

    BAD = {  # noqa: RUF012
        "a word": (
            {"class_weight": "even"},
            "must be None, 'balanced', or .* got 'even'",
        ),
        "nothing": ({"class_weight": {}}, "must map labels to numbers above 0, got {}"),
        "negative": ({"class_weight": {1: -1}}, "must map labels to numbers above 0, got {1: -1}"),
        "label": ({"class_weight": {"yes": 2}}, r"must name labels of \[0, 1\], got \['yes'\]"),
        "costs": (
            {"class_weight": "balanced", "cost_matrix": [[0, 1], [2, 0]]},
            "must be None with cost_matrix, got 'balanced'",
        ),
        "balanced": (
            {"class_weight": {1: 2}, "scoring": "balanced_accuracy"},
            "must be None with scoring='balanced_accuracy', got {1: 2}",
        ),
    }

    @pytest.mark.parametrize(("given", "message"), BAD.values(), ids=BAD.keys())
    def test_bad_ones_are_refused(self, given, message):
        with pytest.raises(ValueError, match=f"class_weight {message}"):
            quick(**given).fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive)
