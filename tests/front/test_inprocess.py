"""Members that strategies drive, as a user gets them."""

import warnings

import numpy as np
import pytest
import torch

from apfex import APFExClassifier, make_biased
from apfex.front import NearConstantWarning, _candidates
from apfex.strategies import Decision, FixedWeights
from apfex.strategies._named import STRATEGIES

DATA = make_biased(500, random_state=0)


def fitted(y=DATA.y, **settings):
    clf = APFExClassifier(
        ("dp", "tpr"),
        search="inprocess",
        **{"n_members": 6, "epochs": 10, "max_gap": 1.0, "random_state": 0, **settings},
    )
    return clf.fit(DATA.X, y, sensitive_features=DATA.sensitive)


class OnlyGaps:
    """All weight for the gaps, none for the error."""

    def decide(self, view):
        weights = torch.ones_like(view.losses)
        weights[..., 0] = 0
        return Decision(weights)


@pytest.mark.parametrize(("model", "classes"), [("linear", 3), ("boosting", 2)])
@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_finds_a_front(name, model, classes):
    y = DATA.y if classes == 2 else DATA.y + (np.arange(len(DATA.y)) % 5 == 0)
    clf = fitted(y, model=model, strategy=name, learning_rate=0.2)
    assert not clf.front_[0].trivial
    assert clf.predict(DATA.X).shape == (500,)
    assert clf.history_ is not None
    assert "aim" in set(clf.history_["strategy"])
    assert len(set(clf.history_["strategy"])) > 1


def test_members_are_dealt_to_several_strategies():
    clf = fitted(model="boosting", strategy=["pcp", "fixed"], n_points=100)
    assert clf.history_ is not None
    last = clf.history_.groupby("member")["strategy"].last().to_dict()
    dealt = {0: "aim", 1: "fixed", 2: "PCP", 3: "fixed", 4: "PCP", 5: "fixed"}
    assert last == dealt


@pytest.mark.parametrize("model", ["linear", "boosting"])
@pytest.mark.parametrize("collapsed", [True, False])
def test_a_population_that_collapses_says_so_once(monkeypatch, model, collapsed):
    """Constant by the measure, as a collapse on purpose takes long: all but the plain member."""

    def is_trivial(decisions, *_):
        return torch.tensor([collapsed and member > 0 for member in range(len(decisions))])

    monkeypatch.setattr(_candidates, "is_trivial", is_trivial)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fitted(strategy=OnlyGaps(), model=model)
    found = [str(one.message) for one in said if "have become constant" in str(one.message)]
    assert len(found) == collapsed
    if collapsed:
        assert found[0].startswith("5 of 5 members that weigh gaps have become constant")
        assert "OnlyGaps" in found[0]
        assert "search='postprocess'" in found[0]


def test_by_default_it_does_not_collapse():
    with warnings.catch_warnings():
        warnings.simplefilter("error", NearConstantWarning)
        clf = fitted(n_members=16, n_points=100, epochs=24)
    assert sum(point.trivial for point in clf.front_) <= 1
    assert len(clf.front_) >= 4


@pytest.mark.parametrize("model", ["linear", "boosting"])
def test_members_lose_no_patience_before_strategies_have_their_turn(model):
    clf = fitted(model=model, patience=1, learning_rate=0.2, strategy="pcp")
    assert clf.history_ is not None
    last = clf.history_.groupby("member")["strategy"].last().tolist()
    assert "PCP" in last
    assert "aim" not in last[1:]
    arrived = 6 if model == "linear" else 12
    assert len(clf.history_) / len(set(clf.history_["member"])) < arrived / 0.6  # some stop


def test_weights_of_the_users_own_decide():
    clf = fitted(model="boosting", strategy=FixedWeights((1, 2, 4)))
    frame = clf.history_
    assert frame is not None
    decided = frame[frame["strategy"] == "FixedWeights"]
    assert len(decided) > 0
    before = frame[(frame["strategy"] == "aim") & frame["member"].isin(list(decided["member"]))]
    both = [part.query("weight1 > 0 and weight2 > 0") for part in (before, decided)]
    ratios = [
        part.assign(ratio=part["weight2"] / part["weight1"]).groupby("member")["ratio"].first()
        for part in both
    ]
    assert len(ratios[0]) > 0
    np.testing.assert_allclose(ratios[1], 2 * ratios[0], rtol=1e-4)
    with pytest.raises(ValueError, match=r"strategy must weigh the error and 2 gaps, got FixedWei"):
        fitted(strategy=FixedWeights((1, 2)))


@pytest.mark.parametrize("search", ["postprocess", "inprocess"])
def test_a_strategy_of_the_wrong_length_is_refused_before_models_learn(monkeypatch, search):
    monkeypatch.setattr("apfex.estimator._classifier.search_front", None)
    clf = APFExClassifier(search=search, strategy=["switch", FixedWeights((1, 2))])
    with pytest.raises(ValueError, match=r"strategy must weigh the error and 0 gaps, got FixedWei"):
        clf.fit(DATA.X, DATA.y)
