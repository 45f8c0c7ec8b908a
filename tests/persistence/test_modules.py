"""Modules of a user's own class, and torch's layers, on a disk."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from tests.estimator.tables import quick
from tests.persistence.saved import (
    NUMBERS,
    SENSITIVE,
    Net,
    X,
    Y,
    assert_same,
    fit,
    fitted_case,
    load_case,
)
from torch import nn

from apfex.estimator import load
from apfex.persistence import _modules


def test_a_factory_must_be_given_again(tmp_path):
    clf, new, _ = fitted_case("a factory")
    folder = clf.save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"model must be given .* tests.persistence.saved.Net"):
        load(folder)
    again = load(folder, model=Net)
    assert again.model is Net
    fresh: Any = clone(again)
    assert fresh.fit(X, Y, sensitive_features=SENSITIVE).predict(new).shape == (len(new),)
    d = again.fitted_.encoder.transform(new).shape[1]
    with pytest.warns(UserWarning, match=r"model \(tests.persistence.saved.Net\)"):
        like_it = load(folder, model=Net(d, 1))
    assert_same(clf, like_it, new, {})


class Other(Net):
    """The same parameters, another function."""

    def forward(self, x):
        return super().forward(-x)


def fails(*_):
    raise KeyError("no idea")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Other, "what the stored tests.persistence.saved.Net did, got one with the same par"),
        (nn.Linear, r"like the stored .*, got one whose 'bias' has shape \[1\] where None is stor"),
        (lambda d, c: Net(d + 1, c), r"'body.0.weight' has shape \[5, \d+\] where \[5, \d+\] is s"),
        (lambda *_: 3, r"model must make an nn.Module of \(\d+, 1\), got one that fails"),
        (fails, r"model must make an nn.Module of \(\d+, 1\), got one that fails \('no idea'\)"),
    ],
    ids=["other function", "other class", "other shape", "no module", "failing"],
)
def test_another_factory_is_refused(tmp_path, model, message):
    folder = fitted_case("a factory")[0].save(tmp_path / "model")
    with pytest.raises(ValueError, match=message):
        load(folder, model=model)
    with pytest.raises(TypeError, match=r"model must be a factory .*, got str"):
        load(folder, model="mlp")


class Embedded(nn.Module):
    """One that takes only what fit has seen, and says so."""

    def __init__(self, d, c):
        super().__init__()
        self.linear = nn.Linear(d, c)

    def forward(self, x):
        if (x[:, -1] == 1).any() and x.shape[0] == 4:
            raise IndexError("no such town")
        return self.linear(x)


def test_a_module_that_cannot_be_asked_is_stored_all_the_same(tmp_path):
    clf = fit(quick(model=Embedded, epochs=2, n_members=2))
    again = load(clf.save(tmp_path / "model"), model=Embedded)
    assert_same(clf, again, NUMBERS, {})


def test_a_factory_of_torchs_own_layers_need_not_be_given(tmp_path):
    clf = fit(quick(model=nn.Linear, epochs=2, n_members=2))
    folder = clf.save(tmp_path / "model")
    with pytest.warns(UserWarning, match=r"Not stored .* model \(torch.*Linear\)"):
        assert_same(clf, load(folder), NUMBERS, {})
    assert load(folder, model=nn.Linear).model is nn.Linear


def test_what_was_not_stored_is_told_and_asked_for_at_fit(tmp_path):
    clf, new, _ = fitted_case("a plain network")
    fresh: Any = clone(clf)
    clf = fresh.set_params(random_state=np.random.RandomState(0), max_gap=1.0)
    fit(clf)
    with pytest.warns(
        UserWarning,
        match=r"Not stored with the classifier: init \(torch.*Sequential\), random_state "
        r"\(numpy.random.*RandomState\). It predicts, .* set_params\(init=..., random_state=...\)",
    ):
        again = load(clf.save(tmp_path / "model"))
    assert_same(clf, again, new, {})
    assert "not stored: torch" in repr(again.init)
    with pytest.raises(ValueError, match=r"init must be given again, .* set_params\(init=...\)"):
        again.fit(NUMBERS, Y, sensitive_features=SENSITIVE)
    assert_same(clf, again, new, {})
    second = again.save(tmp_path / "again")
    with pytest.warns(UserWarning, match="random_state"):
        assert_same(clf, load(second), new, {})


def test_layers_that_are_not_what_they_seem_are_a_users_own():
    plain = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    assert _modules.is_known(plain)
    changed: Any = nn.Linear(2, 1)
    changed.forward = lambda x: x
    hooked, extended = nn.Linear(2, 1), nn.Linear(2, 1)
    hooked.register_forward_hook(lambda *_: None)
    extended.extra = nn.Linear(1, 1)
    scaled = nn.utils.parametrizations.weight_norm(nn.Linear(2, 1))
    for odd in (changed, hooked, extended, scaled, Net(2, 1), nn.Conv1d(1, 1, 1)):
        assert not _modules.is_known(odd)
        assert not _modules.is_known(nn.Sequential(nn.ReLU(), odd))


def test_modules_on_a_disk_keep_their_types(tmp_path):
    """Ours count in float64, a user's own in what they were made of."""
    for name, dtype in (("rules", torch.float64), ("a plain network", torch.float32)):
        again = load_case(name, fitted_case(name)[0].save(tmp_path / name))
        floats = {p.dtype for point in again.front_ for p in point.module.parameters()}
        assert floats == {dtype}
