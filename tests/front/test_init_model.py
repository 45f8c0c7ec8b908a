"""``init``: the front around a network in production."""

import copy

import numpy as np
import pytest
import torch
from tests.estimator.tables import DATA, FRESH, quick
from torch import nn

from apfex.front import _inprocess

NUMBERS = DATA.X.select_dtypes("number")
FRESH_NUMBERS = FRESH.X.select_dtypes("number")


@pytest.fixture(scope="module")
def production():
    torch.manual_seed(0)
    d = NUMBERS.shape[1]
    network = nn.Sequential(nn.Linear(d, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    x = torch.tensor(NUMBERS.to_numpy(np.float32))
    y = torch.tensor(DATA.y, dtype=torch.float32)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(network(x).squeeze(1), y).backward()
        optimizer.step()
    return network.eval()


def fit(network, X=NUMBERS, **changes):
    clf = quick(init=network, search="inprocess", **changes)
    return clf.fit(X, DATA.y, sensitive_features=DATA.sensitive)


def test_the_model_in_production_is_the_first_candidate(production):
    clf = fit(production, learning_rate=1e-12, epochs=1)
    points = [point for point in clf.front_ if point.epoch == 0]
    assert len(points) == 1
    with torch.no_grad():
        expected = production(torch.tensor(FRESH_NUMBERS.to_numpy(np.float32))).squeeze(1)
    found = clf.at(list(clf.front_).index(points[0])).decision_function(FRESH_NUMBERS)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_it_is_not_changed_and_gaps_get_smaller(production):
    before = copy.deepcopy(production.state_dict())
    clf = fit(production, epochs=30, n_members=8, learning_rate=1e-2)
    for name, value in production.state_dict().items():
        torch.testing.assert_close(value, before[name])
    start = [point for point in clf.front_ if point.epoch == 0]
    gaps = [point.gaps["dp"].gap for point in clf.front_ if not point.trivial]
    assert start
    assert min(gaps) < start[0].gaps["dp"].gap


def test_inputs_are_those_of_the_network(production):
    with pytest.raises(ValueError, match="X must be finite where init is given"):
        fit(production, NUMBERS.mask(NUMBERS.quantile(0.9) < NUMBERS))
    with pytest.raises(ValueError, match="X must hold numbers, as init takes them"):
        fit(production, NUMBERS.assign(word="a"))


class Pair(nn.Module):
    """Logits, and something else beside them."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(NUMBERS.shape[1], 1)

    def forward(self, x):
        return self.linear(x), x


D = NUMBERS.shape[1]
MISFITS = {
    "width": (
        nn.Sequential(nn.BatchNorm1d(D + 1), nn.Linear(D + 1, 1)),
        rf"init must take the {D} columns of X as float32, got .* give fit the columns that",
    ),
    "dtype": (nn.Linear(D, 1).double(), rf"init must take the {D} columns of X as float32, got "),
    "two outputs": (
        nn.Linear(D, 2),
        r"init must return a tensor of logits of shape \[n, 1\] for 2 classes, got shape \[8, 2\] "
        "for 8 rows; wrap it in a module that returns one logit .of two, the second minus",
    ),
    "tuple": (
        Pair(),
        r"init must return a tensor of logits .*, got a tuple; wrap it in .* the logits alone",
    ),
}


@pytest.mark.parametrize(("network", "message"), MISFITS.values(), ids=MISFITS.keys())
def test_a_network_that_does_not_go_with_the_rows_is_refused(network, message, monkeypatch):
    def train(*_):
        raise AssertionError("trained")

    monkeypatch.setattr(_inprocess, "train_population", train)
    before, clf = copy.deepcopy(network.state_dict()), quick(init=network, search="inprocess")
    with pytest.raises(ValueError, match=message):
        clf.fit(NUMBERS, DATA.y, sensitive_features=DATA.sensitive)
    assert network.training
    assert not hasattr(clf, "front_")
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])


def test_logits_of_several_classes_are_one_for_each():
    y = np.where(NUMBERS.iloc[:, 0] > NUMBERS.iloc[:, 0].median(), 2, DATA.y)
    with pytest.raises(ValueError, match=r"\[n, 3\] for 3 classes, .* a logit for each class"):
        quick(init=nn.Linear(D, 1), search="inprocess").fit(
            NUMBERS, y, sensitive_features=DATA.sensitive
        )
