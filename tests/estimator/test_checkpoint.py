"""A fit that was stopped goes on from its checkpoint, to the same model to the last bit."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from xgboost import XGBClassifier

from apfex import APFExClassifier, make_biased
from apfex.persistence import CheckpointError
from apfex.persistence import _checkpoint as checkpoints

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::apfex.front.{name}")
    for name in ("NearConstantWarning", "UnmetBoundWarning")
]
SMALL: dict[str, Any] = {
    "random_state": 0,
    "n_jobs": 1,
    "n_members": 3,
    "epochs": 4,
    "n_estimators": 8,
}
SMALL |= {"max_gap": 1.0}
NETWORKS: dict[str, Any] = {"model": "mlp", "search": "inprocess", "hidden": (8,), "epochs": 15}
NETWORKS |= {"batch_size": 32, "strategy": ("pss", "switch")}


class Noisy(torch.nn.Module):
    """Dropout draws, and batch norm has a memory."""

    def __init__(self, n_features: int, n_outputs: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(n_features, 4),
            torch.nn.BatchNorm1d(4),
            torch.nn.Dropout(0.3),
            torch.nn.Linear(4, n_outputs),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


KINDS: dict[str, dict[str, Any]] = {
    "boosting": {"model": "boosting"},
    "networks": NETWORKS,
    "linear": {"model": "linear", "criteria": ("dp", "tpr")},
    "mlp": {"model": "mlp", "validation": "split", "hidden": (8,)},
    "auto": {"group_thresholds": True},
    "two kinds": {"model": ("mlp", "boosting"), "grouping": "attributes"},
    "patience": NETWORKS | {"epochs": 30, "patience": 2, "criteria": ("dp", "tpr")},
    "own networks": NETWORKS | {"model": Noisy, "patience": 3},
    "trees": {"model": "boosting", "search": "inprocess"},
    "trees with patience": {"model": "boosting", "search": "inprocess", "patience": 2},
    "own classifier": {"model": LogisticRegression()},
}
QUICK = ("boosting", "networks", "trees")


@pytest.fixture(scope="module")
def people():
    return make_biased(n=160, random_state=0)


@pytest.fixture(autouse=True)
def every_epoch(monkeypatch):
    monkeypatch.setattr(checkpoints, "_SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "_TIMES", 0.0)


def fit(people, settings, checkpoint=None, **changed):
    clf = APFExClassifier(**(SMALL | settings | changed))
    X, sensitive = people.X, people.sensitive
    return clf.fit(X, people.y, sensitive_features=sensitive, checkpoint=checkpoint)


def contents(clf, folder):
    """All that is stored, but for archives of skops, which have the time in them."""
    clf.save(folder)
    found = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    if any(name.endswith(".skops") for name in found):
        del found["manifest.json"]
    return {name: data for name, data in found.items() if not name.endswith(".skops")}


def stop_after(writes, monkeypatch):
    """Let a fit be interrupted when so many states have been written."""
    write, left = checkpoints.FolderCheckpoint.write, [writes]

    def counted(self, name, state):
        write(self, name, state)
        left[0] -= name != checkpoints.SEED
        if left[0] <= 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoints.FolderCheckpoint, "write", counted)


@pytest.mark.parametrize(
    "kind",
    [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS],
)
def test_a_fit_that_is_stopped_comes_out_the_same(people, kind, tmp_path, monkeypatch):
    settings, stops = KINDS[kind], 0
    whole = contents(fit(people, settings), tmp_path / "whole")
    for writes in (1, 9, 4, 6, 4):  # also between the looks of a search
        with monkeypatch.context() as patched, warnings.catch_warnings():
            stop_after(writes, patched)
            warnings.simplefilter("ignore")
            try:
                fit(people, settings, tmp_path / "checkpoint")
            except KeyboardInterrupt:
                stops += 1
    assert stops
    resumed = fit(people, settings, tmp_path / "checkpoint")
    assert contents(resumed, tmp_path / "resumed") == whole
    again = fit(people, settings, tmp_path / "checkpoint")  # all of it is there
    assert contents(again, tmp_path / "again") == whole


@pytest.fixture(scope="module")
def kept(people, tmp_path_factory):
    """The checkpoint of a fit that is finished."""
    place = tmp_path_factory.mktemp("kept") / "checkpoint"
    fit(people, NETWORKS, place)
    return place


def test_without_a_checkpoint_nothing_is_written(people, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fit(people, NETWORKS)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_says_what_is_kept_and_how_to_go_on(people, tmp_path, monkeypatch):
    stop_after(1, monkeypatch)
    said = r"Stopped: what is finished is kept in '.*people', and the same fit with the same check"
    with pytest.warns(UserWarning, match=said), pytest.raises(KeyboardInterrupt):
        fit(people, NETWORKS, tmp_path / "people")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"epochs": 20}, "same settings to go on from, got epochs=15 instead of epochs=20; use "),
        ({"criteria": ("tpr",)}, r"got criteria=\('dp',\) instead of criteria=\('tpr',\)"),
        ({"model": torch.nn.Linear}, "got .*model='mlp' instead of model='torch.nn.modules.linear"),
        ({"random_state": 1}, r"got random_state=0 instead of random_state=1"),
    ],
)
def test_other_settings_are_refused_by_name(people, kept, changed, told):
    with pytest.raises(CheckpointError, match=told):
        fit(people, NETWORKS, kept, **changed)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda p: {"X": p.X.assign(noise_1=-p.X["noise_1"])}, "got other inputs"),
        (lambda p: {"y": 1 - p.y}, "labels"),
        (lambda p: {"sensitive_features": p.sensitive[["sex"]]}, "groups"),
        (lambda _: {"sample_weight": np.arange(1.0, 161.0)}, "weights"),
        (lambda p: {"X": p.X[:150], "y": p.y[:150], "sensitive_features": p.sensitive[:150]},
         "got number of rows 128 instead of 120"),
    ],
)  # fmt: skip
def test_other_data_are_refused_by_name(people, kept, change, told):
    rows = {"X": people.X, "y": people.y, "sensitive_features": people.sensitive} | change(people)
    clf = APFExClassifier(**(SMALL | NETWORKS))
    with pytest.raises(CheckpointError, match=f"must be of the same data .*{told}"):
        clf.fit(**rows, checkpoint=kept)
    assert not hasattr(clf, "fitted_")


def test_how_it_is_computed_may_change(people, kept):
    fit(people, NETWORKS, kept, n_jobs=2, verbose=0)


def test_without_a_seed_that_of_the_checkpoint_is_taken(people, tmp_path):
    one, two = (fit(people, NETWORKS, tmp_path, random_state=None) for _ in range(2))
    assert (one.decide_all(people.X) == two.decide_all(people.X)).all()
    drawn = np.random.RandomState(5)
    with pytest.raises(CheckpointError, match="got random_state=None instead of random_state="):
        fit(people, NETWORKS, tmp_path, random_state=drawn)


@pytest.mark.parametrize("wrong", [3, ["a"], b"folder"])
def test_a_checkpoint_is_a_path(people, wrong):
    with pytest.raises(TypeError, match="checkpoint must be the path of a folder or None, got"):
        fit(people, NETWORKS, wrong)


@pytest.mark.slow
def test_a_classifier_that_needs_pickle_is_fitted_again_and_that_is_said(people, tmp_path):
    settings = {"model": XGBClassifier(n_estimators=3)}
    with pytest.warns(UserWarning, match=r"does not keep models .* without pickle \(XGBClassifie"):
        one = fit(people, settings, tmp_path)
    with pytest.warns(UserWarning, match="makes them again"):
        two = fit(people, settings, tmp_path)
    assert (one.predict_proba(people.X) == two.predict_proba(people.X)).all()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["boosting", "mlp"])
def test_a_stream_goes_on_too(model, tmp_path, monkeypatch):
    data = make_biased(n=6_000, random_state=0)
    data.X.assign(**data.sensitive, y=data.y).to_parquet(tmp_path / "people.parquet")
    settings: dict[str, Any] = SMALL | {"model": model, "sensitive": ["sex", "origin"]}

    def go(name, **more):
        clf = APFExClassifier(**settings).fit(str(tmp_path / "people.parquet"), "y", **more)
        clf.save(tmp_path / name)
        return {path.name: path.read_bytes() for path in sorted((tmp_path / name).iterdir())}

    whole = go("whole")
    with monkeypatch.context() as patched:
        stop_after(3, patched)
        with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="Stopped"):
            go("stopped", checkpoint=tmp_path / "checkpoint")
    assert go("resumed", checkpoint=tmp_path / "checkpoint") == whole
