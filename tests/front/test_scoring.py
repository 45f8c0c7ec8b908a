"""What points are ranked by, what they gain over one decision for everybody, and the choice."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score
from tests.front.test_candidates import make_validation

from apfex import APFExClassifier, make_biased
from apfex.front import Front, NearConstantWarning, Scoring, UnmetBoundWarning, scorer_of

DATA = make_biased(n=1500, random_state=0)


def rare(n: int = 6000, seed: int = 0):
    """One positive in a hundred, hard to tell."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    sex = rng.choice(["F", "M"], n)
    y = (rng.random(n) < 1 / (1 + np.exp(6 - 1.7 * X[:, 0] + 0.7 * (sex == "F")))).astype(int)
    return X, y, sex


def fit(X: Any = DATA.X, y: Any = DATA.y, sensitive: Any = DATA.sensitive, **given):
    arguments = {"model": "linear", "max_gap": 1.0, "random_state": 0, **given}
    return APFExClassifier(**arguments).fit(X, y, sensitive_features=sensitive)


@pytest.fixture(scope="module")
def plain():
    return fit()


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_are_mean_costs_and_scores(c, weighted):
    rows = make_validation(c=c, weighted=weighted)
    decided = np.random.default_rng(0).integers(0, c, (4, len(rows.y)))
    costs = np.arange(c * c, dtype=float).reshape(c, c)
    found = Scoring("cost", costs).losses(torch.from_numpy(decided), rows)
    expected = [np.average(costs[rows.y, one], weights=rows.sample_weight) for one in decided]
    np.testing.assert_allclose(found, expected)
    scorer = scorer_of("f1_macro", c, 1)
    found = Scoring("1 - f1_macro", scorer=scorer).losses(torch.from_numpy(decided), rows)
    expected = [
        1 - f1_score(rows.y, one, average="macro", sample_weight=rows.sample_weight)
        for one in decided
    ]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("name", ["error", "balanced_error"])
def test_no_constant_is_better_than_what_is_called_the_best(name):
    rows = make_validation(n=301)
    scoring = Scoring(name)
    constants = torch.arange(2).unsqueeze(1).expand(2, 301)
    losses = scoring.losses(constants, rows)
    assert scoring.without_inputs(rows.constant_losses(scoring), 1) == (
        losses.min(),
        losses.argmin(),
    )
    draws = torch.rand(4000, 301, generator=torch.Generator().manual_seed(0)) < 0.3
    at_random = scoring.losses(draws.long(), rows).mean()
    fixed, label = Scoring(name, selection_rate=0.3).without_inputs(
        rows.constant_losses(scoring), 1
    )
    assert label is None
    assert fixed == pytest.approx(float(at_random), abs=0.005)


def test_points_show_what_they_gain_over_one_decision_for_everybody():
    front = fit(n_points=40).front_
    constant = min(np.mean(DATA.y), 1 - np.mean(DATA.y))
    assert front.constant_error == pytest.approx(constant)
    best = front[0].error
    for point in front:
        share = (constant - point.error) / (constant - best)
        assert point.gain == pytest.approx(constant - point.error)
        assert point.gain_share == pytest.approx(share)
        assert point.near_constant == (share < 0.5 or point.trivial)
    assert "0." in repr(front).splitlines()[0]


def test_costs_lead_the_search(plain):
    """Where a missed positive costs ten times as much, fewer are missed, at a lower cost."""
    costs = np.array([[0.0, 1.0], [10.0, 0.0]])
    led = fit(cost_matrix=costs).at(0)
    mean = [costs[DATA.y, clf.predict(DATA.X)].mean() for clf in (plain.at(0), led)]
    assert mean[1] < 0.8 * mean[0]
    assert led.front_.by == "cost"
    assert led.front_[0].loss == pytest.approx(mean[1], rel=0.2)


def test_scorers_take_labels_in_any_words():
    """Of two labels the favorable one is what precision and recall are of."""
    words = np.array(["N", "Y"])[DATA.y]
    for favorable in ("N", "Y"):
        clf = fit(y=words, scoring="f1", favorable_label=favorable, validation="split")
        assert clf.front_.by == "1 - f1"
        assert clf.front_[0].loss < 0.5


def test_the_constant_that_costs_least_is_named():
    costs = fit(cost_matrix=[[0, 9], [1, 0]]).front_
    assert costs.constant_label == 0
    assert costs.constant_error == pytest.approx(DATA.y.mean())
    assert "choosing at random" in repr(fit(selection_rate=0.2, validation="split").front_)


@pytest.mark.parametrize("favorable", [0, 1])
@pytest.mark.parametrize("n", [1500, 8000])
def test_every_point_selects_the_share_that_is_asked_for(favorable, n):
    data, fresh = make_biased(n=n, random_state=0), make_biased(n=4000, random_state=1)
    clf = fit(data.X, data.y, data.sensitive, selection_rate=0.2, favorable_label=favorable)
    chosen = (clf.decide_all(fresh.X) == favorable).mean(1)
    assert len(clf.front_) > 1
    np.testing.assert_allclose(chosen, 0.2, atol=0.035)
    if n < 5000:  # set by all rows, or else by the validation rows
        own = (clf.decide_all(data.X) == favorable).mean(1)
    else:
        own = [point.share_favored for point in clf.front_]
    np.testing.assert_allclose(own, 0.2, atol=0.002)
    gaps = [point.gaps["dp"].gap for point in clf.front_]
    assert min(gaps) < 0.6 * max(gaps)


def test_a_rare_label_has_a_front_under_another_scoring():
    X, y, sex = rare()
    with pytest.warns(UnmetBoundWarning, match="one decision for everybody.*another scoring"):
        alone = fit(X, y, sex, max_gap=0.05)
    assert all(point.trivial for point in alone.front_)
    for given in ({"scoring": "balanced_accuracy"}, {"cost_matrix": [[0, 1], [80, 0]]}):
        front = fit(X, y, sex, **given).front_
        assert not front[0].near_constant
        assert front[0].gain > 0.1 * front.constant_error


def test_the_error_may_be_limited():
    clf = fit(n_points=40, max_gap=0.02)
    best, chosen = clf.front_[0].error, clf.front_[clf.point_]
    assert chosen.error > best + 0.01  # else there is nothing to limit
    limit = (chosen.error - best) / 2
    with pytest.raises(ValueError, match=r"max_gap must admit .* max_error_increase"):
        clf.select(0.02, max_error_increase=limit)
    within = clf.select(1.0, max_error_increase=limit)
    assert clf.front_[within.point_].error <= best + limit
    with pytest.warns(UnmetBoundWarning, match="comes closest"):
        limited = fit(n_points=40, max_gap=0.02, max_error_increase=limit)
    assert limited.front_[limited.point_].error <= best + limit
    near = clf.front_.nearest({"dp": 0.02}, None, limit)
    gaps = [p.gaps["dp"].gap for p in clf.front_ if p.error <= best + limit and not p.trivial]
    assert clf.front_[near].gaps["dp"].gap == min(gaps)


def test_a_point_that_is_nearly_constant_is_not_handed_out_in_silence(plain):
    """A front of a good model with a gap, and a fair one that closes a third of the way."""
    found, constant = plain.front_[0], plain.front_.constant_error
    fair = replace(found.gaps["dp"], gap=0.01)
    weak = replace(found, gaps={"dp": fair}, loss=constant - found.gain / 3)
    front = Front([found, weak], constant_error=constant)
    assert [point.near_constant for point in front] == [False, True]
    bounds = {"dp": 0.02}
    for choose in (front.first_choice, front.find):
        with pytest.warns(NearConstantWarning, match="Only models that are nearly constant.* 33%"):
            assert choose(bounds) == 1
    assert front.nearest({"dp": 0.0}) == 0  # rather than the weak one, which comes closer
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert front.first_choice({"dp": 1.0}) == 0


WRONG = {
    "a name": ({"scoring": "nonsense"}, "scoring must be"),
    "a scorer of probabilities": ({"scoring": "roc_auc"}, "scoring must name a scorer that uses"),
    "a scorer of two classes": ({"scoring": "neg_log_loss"}, "scoring must name a scorer"),
    "costs and scoring": (
        {"scoring": "f1", "cost_matrix": [[0, 1], [1, 0]]},
        "cost_matrix must be None with scoring='f1'",
    ),
    "a ragged matrix": ({"cost_matrix": [[0, 1], [1]]}, "cost_matrix must be a matrix of numbers"),
    "three classes": ({"cost_matrix": np.eye(3)}, r"cost_matrix must be 2 x 2.*got \(3, 3\)"),
    "costs below 0": ({"cost_matrix": [[0, -1], [1, 0]]}, "numbers from 0 on"),
    "costs that are all alike": ({"cost_matrix": [[1, 1], [1, 0]]}, "tell decisions apart"),
    "a rate above 1": ({"selection_rate": 1.2}, "selection_rate must be None or between"),
    "costs for members": (
        {"cost_matrix": [[0, 1], [1, 0]], "search": "inprocess"},
        "cost_matrix must be None for members",
    ),
    "an increase below 0": ({"max_error_increase": -0.1}, "max_error_increase must be"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_scored_by_is_refused(what):
    given, message = WRONG[what]
    with pytest.raises(ValueError, match=message):
        fit(**given)
