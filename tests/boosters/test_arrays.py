"""Trees as arrays: they say what XGBoost says, and come back from JSON exactly."""

import json

import numpy as np
import pytest
import torch
import xgboost

from apfex.models import Trees

RNG = np.random.default_rng(0)
X = np.c_[RNG.normal(size=(300, 2)), RNG.integers(0, 6, 300)].astype(np.float32)
X[RNG.random(X.shape) < 0.1] = np.nan
Y = (np.nan_to_num(X[:, 2]) % 2 == 1) ^ (np.nan_to_num(X[:, 0]) > 0)
NEW = X[::-1].copy()
OBJECTIVES = {
    "two classes": {"objective": "binary:logistic"},
    "several": {"objective": "multi:softprob", "num_class": 3},
    "several numbers": {"objective": "reg:squarederror", "num_target": 2, "base_score": 0.25},
    "raw": {"objective": "binary:logitraw", "base_score": 0.2},
    "dart": {"objective": "binary:logistic", "booster": "dart", "rate_drop": 0.5},
    "pruned": {"objective": "binary:logistic", "gamma": 2.0, "max_depth": 6},
}


def grow(given, rounds=4, types=("q", "q", "c"), table=X):
    label = Y.astype(int) + (given.get("num_class") == 3) * (np.nan_to_num(table[:, 1]) > 1)
    label = np.c_[label, 1 - label] if given.get("num_target") == 2 else label
    data = xgboost.DMatrix(table, label, feature_types=list(types), enable_categorical=True)
    return Trees(xgboost.train({"max_depth": 3, "nthread": 1, **given}, data, rounds))


@pytest.mark.parametrize("given", OBJECTIVES.values(), ids=OBJECTIVES.keys())
def test_arrays_say_what_xgboost_says(given):
    trees = grow(given)
    margins = trees.to_arrays().margins(NEW)
    np.testing.assert_allclose(margins, trees(torch.from_numpy(NEW)).numpy(), atol=1e-5)


@pytest.mark.parametrize("given", OBJECTIVES.values(), ids=OBJECTIVES.keys())
def test_json_gives_back_every_bit(given):
    trees = grow(given)
    again = Trees.from_json(trees.to_json())
    assert again(torch.from_numpy(NEW)).equal(trees(torch.from_numpy(NEW)))
    assert again.to_json() == trees.to_json()


def test_leaves_that_are_vectors_are_stored_but_no_arrays():
    table = np.nan_to_num(X)
    given = {**OBJECTIVES["several"], "multi_strategy": "multi_output_tree", "tree_method": "hist"}
    trees = grow(given, types=("q", "q", "q"), table=table)
    again = Trees.from_json(trees.to_json())
    assert again(torch.from_numpy(table)).equal(trees(torch.from_numpy(table)))
    with pytest.raises(ValueError, match="one number per leaf, got vectors"):
        trees.to_arrays()
    content = json.loads(trees.to_json())
    first = content["learner"]["gradient_booster"]["model"]["trees"][0]
    first["right_children"][-1] = 10**6
    with pytest.raises(ValueError, match="leaves out of range"):
        Trees.from_json(json.dumps(content).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_what_is_no_booster_is_refused(data):
    with pytest.raises(ValueError, match="data must be a booster in XGBoost's JSON, got"):
        Trees.from_json(data)


def test_a_slice_of_the_rounds_is_whole():
    trees = Trees(grow(OBJECTIVES["several"], rounds=6).booster[:3])
    assert len(trees.to_arrays().trees) == 9
    again = Trees.from_json(trees.to_json())
    assert again(torch.from_numpy(NEW)).equal(trees(torch.from_numpy(NEW)))
