"""Fitted classifiers of every kind, to be stored, loaded and exported."""

import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import torch
import xgboost
from tests.estimator.tables import DATA, FRESH, QUICK
from torch import nn

from apfex.estimator import APFExClassifier, load

N = 240
"""Rows: enough for every kind, and quick."""
X, SENSITIVE, NEW = DATA.X.head(N), DATA.sensitive.head(N), FRESH.X.head(150)
Y = DATA.y[:N]
GAPS = np.where(np.random.default_rng(0).random(X.shape) < 0.1, True, False)
NUMBERS, NEW_NUMBERS = X.select_dtypes("number"), NEW.select_dtypes("number")
FINE = DATA.y[:N] + (X["merit_1"] > 1.2).to_numpy()
THREE = np.where(X["merit_1"] > 1.2, "high", np.where(Y == 1, "middle", "low"))
TREES = {
    "model": "boosting",
    "n_estimators": 4,
    "max_depth": 3,
    "learning_rate": 0.3,
    "validation_fraction": 1 / 3,
}


MEMBERS = {"search": "inprocess"}


class Net(nn.Module):
    """A user's own class, with a buffer that is not in its state and one that changes."""

    mean: torch.Tensor

    def __init__(self, n_features: int, n_outputs: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.full((n_features,), 0.25), persistent=False)
        self.body = nn.Sequential(
            nn.Linear(n_features, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, n_outputs)
        )

    def forward(self, x):
        return self.body(x - self.mean)


def plain_network() -> nn.Module:
    torch.manual_seed(0)
    d = NUMBERS.shape[1]
    same = nn.Tanh()  # twice the same object
    return nn.Sequential(
        nn.Linear(d, 6), nn.BatchNorm1d(6), same, nn.Dropout(0.2), nn.Linear(6, 4, bias=False),
        nn.LayerNorm(4), nn.GELU(), nn.ELU(), nn.SiLU(), nn.LeakyReLU(0.1), nn.Identity(), same,
        nn.Linear(4, 1),
    )  # fmt: skip


def with_categories(table: pd.DataFrame) -> pd.DataFrame:
    towns = pd.CategoricalDtype(["Ashford", "Bexley", "Corby", "Dover"])
    return pd.DataFrame(table[["merit_1", "town", "noise_1"]]).astype({"town": towns})


def production_trees(table: Any, y: Any = Y) -> xgboost.XGBClassifier:
    made = xgboost.XGBClassifier(n_estimators=6, max_depth=3, enable_categorical=True, n_jobs=1)
    return made.fit(table, y)


def _case(settings: dict, table: Any = X, new: Any = NEW, y: Any = Y, **fit: Any) -> tuple:
    fit = fit or {"sensitive_features": SENSITIVE}
    return settings, table, new, y, {k: v for k, v in fit.items() if v is not None}


WHOLE = pd.concat([X, SENSITIVE], axis=1)
NEW_WHOLE = pd.concat([NEW, FRESH.sensitive.head(150)], axis=1)
BOTH = {"criteria": ("dp", "equalized_odds"), "grouping": "attributes"}
CASES = {
    "rules": _case({"criteria": ("dp", "tpr")}),
    "rules with gaps in the table": _case({}, X.mask(GAPS), NEW.mask(GAPS[:150])),
    "bins": _case({"bins": "quantile", "validation": "split", "model": "linear"}),
    "members": _case({"search": "inprocess", "hidden": (8, 4), "epochs": 8}),
    "linear members": _case({"search": "inprocess", "model": "linear"}),
    "trees": _case({**TREES, **BOTH}),
    "trees with gaps in the table": _case(TREES, X.mask(GAPS), NEW.mask(GAPS[:150])),
    "tree members": _case({**TREES, "search": "inprocess"}),
    "both": _case({**TREES, "model": ("mlp", "boosting"), "learning_rate": None}),
    "several classes": _case({}, y=THREE),
    "several classes by members": _case({"search": "inprocess"}, y=THREE),
    "several classes by trees": _case(TREES, y=THREE),
    "several classes by tree members": _case({**TREES, "search": "inprocess"}, y=THREE),
    "group thresholds": _case({"group_thresholds": True}),
    "group thresholds of trees": _case({**TREES, "group_thresholds": True}, y=THREE),
    "a factory": _case({"model": Net}),
    "a plain network": _case(
        {**MEMBERS, "init": plain_network(), "epochs": 2}, NUMBERS, NEW_NUMBERS
    ),
    "own trees": _case(
        {**TREES, **MEMBERS, "init": production_trees(with_categories(X))},
        with_categories(X),
        with_categories(NEW),
    ),
    "own booster of several classes": _case(
        {**TREES, **MEMBERS, "init": production_trees(NUMBERS.to_numpy(), FINE).get_booster()},
        NUMBERS.to_numpy(),
        NEW_NUMBERS.to_numpy(),
        FINE,
    ),
    "named columns": _case(
        {"sensitive": ["sex", "origin"]}, WHOLE, NEW_WHOLE, sensitive_features=None
    ),
    "named columns as inputs": _case(
        {"sensitive": "sex", "include_sensitive": True, "bins": None}, WHOLE, NEW_WHOLE,
        sensitive_features=None,
    ),
    "polars": _case({}, pl.from_pandas(X), pl.from_pandas(NEW)),
    "array": _case({}, NUMBERS.to_numpy(), NEW_NUMBERS.to_numpy()),
    "array of anything": _case({}, X.to_numpy(), NEW.to_numpy()),
    "weights": _case(
        {"criteria": ("tpr",)},
        sensitive_features=SENSITIVE,
        sample_weight=np.linspace(0.5, 2, N),
    ),
    "balanced": _case({"scoring": "balanced_accuracy", "favorable_label": 0}),
}  # fmt: skip
"""Settings, a table, new rows, labels and what else fit is given."""


@cache
def fitted_case(name: str) -> tuple[APFExClassifier, Any, dict]:
    """A fitted classifier, new rows, and what else predict is given."""
    settings, table, new, y, fit = CASES[name]
    clf = APFExClassifier(**{"max_gap": 1.0, **QUICK, "epochs": 3, "n_members": 3, **settings})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No model")
        clf.fit(table, y, **fit)
    groups = {"sensitive_features": FRESH.sensitive.head(150)} if clf.group_thresholds else {}
    return clf, new, groups


def fit(clf: Any) -> APFExClassifier:
    """On numbers alone; whether what comes out is any good is not asked here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No model")
        return clf.fit(NUMBERS, Y, sensitive_features=SENSITIVE)


UNSTORED = {"a factory", "a plain network", "own trees", "own booster of several classes"}
"""Cases with an argument that cannot be stored."""


def load_case(name: str, folder: Any) -> APFExClassifier:
    model = Net if name == "a factory" else None
    with warnings.catch_warnings(record=True, action="always") as caught:
        again = load(folder, model=model)
    told = [str(one.message) for one in caught]
    assert bool(told) == (name in UNSTORED - {"a factory"}), told
    return again


def assert_same(clf: APFExClassifier, again: APFExClassifier, new: Any, groups: dict) -> None:
    """Every point says the same of new rows, bit by bit."""
    assert len(again.front_) == len(clf.front_)
    for place in range(len(clf.front_)):
        ours, theirs = clf.at(place), again.at(place)
        for method in ("decision_function", "predict_proba", "predict"):
            expected = getattr(ours, method)(new, **groups)
            found = getattr(theirs, method)(new, **groups)
            assert found.dtype == expected.dtype
            assert (found == expected).all()
