"""Few rows are answered without XGBoost, bit for bit as by XGBoost."""

import json
import pickle

import numpy as np
import pytest
import torch
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.boosters._check import read_booster
from apfex.boosters._few_rows import few_rows_of
from apfex.models import Trees

TYPES = ["q", "q", "c", "c"]
TINY = float(np.float32(1e-42))


def table(n=400):
    """Numbers, some of them denormal or missing, and codes, most of them not one-hot."""
    rng = np.random.default_rng(0)
    x = np.c_[rng.normal(size=(n, 2)), rng.integers(0, 3, n), rng.integers(0, 40, n)]
    x[: n // 4, 1] *= TINY
    x[rng.random(x.shape) < 0.1] = np.nan
    return x.astype(np.float32)


X = table()
ODD = [0.0, -0.0, np.nan, np.inf, -np.inf, TINY, -TINY, -1.0, -0.5, 0.5, 1.3, 2.7, 3e38]
ODD += [1.0, 2.0, 39.0, 40.0, 63.0, 64.0, 1e6, 2.0**24 - 1, 2.0**24, 2.0**31]
"""Codes among them: known ones, others, and what is none."""
Y = ((np.nan_to_num(X[:, 3]) % 3 == 1) ^ (np.nan_to_num(X[:, 0]) > 0)).astype(int)
Y[np.nan_to_num(X[:, 1]) > TINY] ^= 1
KINDS = {
    "two classes": {"objective": "binary:logistic"},
    "raw": {"objective": "binary:logitraw", "base_score": 0.2},
    "several": {"objective": "multi:softprob", "num_class": 3},
    "on top": {"objective": "reg:squarederror", "base_score": 0.0},
    "several on top": {"objective": "reg:squarederror", "num_target": 2},
    "forests": {"objective": "multi:softprob", "num_class": 3, "num_parallel_tree": 2},
    "deep": {"objective": "binary:logistic", "max_depth": 9, "min_child_weight": 0},
    "numbers alone": {"objective": "binary:logistic", "features": 2},
}


def booster_of(given_settings, rounds=12):
    settings: dict = {"max_depth": 3, "max_cat_to_onehot": 2, "nthread": 1, **given_settings}
    d = settings.pop("features", 4)
    label = Y + (settings.get("num_class") == 3) * (np.nan_to_num(X[:, 0]) > 1)
    label = np.c_[label, 1 - label] if settings.get("num_target") == 2 else label
    data = xgboost.DMatrix(X[:, :d], label, feature_types=TYPES[:d], enable_categorical=True)
    return xgboost.train(settings, data, rounds)


BOOSTERS = {name: booster_of(settings) for name, settings in KINDS.items()}
LOADED = {name: Trees.from_json(Trees(booster).to_json()) for name, booster in BOOSTERS.items()}


def bits(margins):
    return np.ascontiguousarray(margins, np.float32).view(np.int32)


def of_xgboost(name, x):
    return BOOSTERS[name].inplace_predict(x, predict_type="margin").reshape(len(x), -1)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=60)
@given(data=st.data())
def test_awkward_rows_get_the_bits_of_xgboost(name, data):
    few = LOADED[name].few_rows
    assert few is not None
    ties = few.threshold[~np.isnan(few.threshold)]
    near = np.concatenate([ties, *(np.nextafter(ties, np.float32(e)) for e in (-np.inf, np.inf))])
    odd = [0.0, -0.0, np.nan, np.inf, -np.inf, TINY, -TINY, -1.0, -0.5, 0.5, 2.7, 39.0, 40.0, 63.0]
    odd += [
        64.0,
        1e6,
        2.0**24 - 1,
        2.0**24,
        2.0**31,
        3e38,
        *np.random.default_rng(1).normal(size=9),
    ]
    values = np.concatenate([near, np.array(ODD)]).astype(np.float32)
    d = few.n_features
    cells = st.lists(st.integers(0, len(values) - 1), min_size=d, max_size=4 * d)
    drawn = data.draw(cells)
    x = values[drawn[: len(drawn) // d * d]].reshape(-1, d)
    np.testing.assert_array_equal(bits(few.margins(x)), bits(of_xgboost(name, x)))


@pytest.mark.parametrize("name", KINDS)
def test_rows_of_the_table_get_the_bits_of_xgboost(name):
    few = LOADED[name].few_rows
    assert few is not None
    x = np.ascontiguousarray(X[:, : few.n_features])
    found = few.margins(x)
    np.testing.assert_array_equal(bits(found), bits(of_xgboost(name, x)))
    assert found.std() > 0


@pytest.mark.parametrize("name", KINDS)
def test_xgboost_is_asked_for_many_rows_only(name, monkeypatch):
    trees = LOADED[name]
    assert trees.few_rows is not None
    x = torch.from_numpy(X[:, : trees.few_rows.n_features])
    whole = trees(x.repeat(50, 1))[: len(x)]
    monkeypatch.setattr(xgboost.Booster, "inplace_predict", None)
    for rows in (0, 1, 5):
        assert trees(x[:rows]).equal(whole[:rows])
        assert pickle.loads(pickle.dumps(trees))(x[:rows]).equal(whole[:rows])
    with pytest.raises(TypeError):
        trees(x.repeat(50, 1))


def test_rows_of_another_width_are_refused_by_xgboost():
    with pytest.raises(ValueError, match="shape mismatch"):
        LOADED["two classes"](torch.zeros(1, 3))


@pytest.mark.parametrize(
    "settings",
    [
        {"objective": "binary:logistic", "booster": "dart", "rate_drop": 0.5},
        {"objective": "multi:softprob", "num_class": 3, "multi_strategy": "multi_output_tree"},
    ],
    ids=["dart", "vectors"],
)
def test_other_ensembles_are_left_to_xgboost(settings):
    trees = Trees(booster_of({**settings, "features": 2}))
    again = Trees.from_json(trees.to_json())
    assert again.few_rows is None
    x = torch.from_numpy(X[:3, :2])
    assert again(x).equal(trees(x))


def test_another_order_of_sums_is_noticed():
    trees = LOADED["two classes"]
    content = read_booster(trees.to_json())
    assert few_rows_of(content, trees._margins) is not None
    assert few_rows_of(content, lambda x: np.nextafter(trees._margins(x), np.float32(9))) is None


def edited(name, change):
    content = json.loads(LOADED[name].to_json())
    change(content["learner"])
    return few_rows_of(read_booster(json.dumps(content).encode()), LOADED[name]._margins)


def test_a_number_that_would_be_rounded_twice_is_left_to_xgboost():
    """Just above the middle of two float32: by way of float64 it would be on the middle."""
    middle = 1 + 2.0**-24

    def change(learner):
        learner["gradient_booster"]["model"]["trees"][0]["split_conditions"][0] = middle

    assert edited("on top", lambda _: None) is not None
    assert edited("on top", change) is None


@pytest.mark.parametrize("base", ["[0E0]", "[1E0]", "[7E0]", "[-1E0]"])
def test_a_base_that_is_no_probability_is_left_to_xgboost(base):
    def change(learner):
        learner["learner_model_param"]["base_score"] = base

    assert edited("two classes", change) is None


def test_what_would_take_much_memory_or_time_is_left_to_xgboost():
    def wide(learner):
        learner["learner_model_param"]["num_feature"] = str(2**20)
        learner["feature_types"], learner["feature_names"] = [], []

    def large_code(learner):
        tree = next(
            tree for tree in learner["gradient_booster"]["model"]["trees"] if tree["categories"]
        )
        tree["categories"][0] = 2**22

    assert edited("two classes", wide) is None
    assert edited("two classes", large_code) is None
