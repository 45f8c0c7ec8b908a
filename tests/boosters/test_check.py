"""No forged tree reaches XGBoost: it would follow numbers out of its memory."""

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
import xgboost
from tests.boosters.test_arrays import OBJECTIVES, X, grow

from apfex.models import Trees

RNG = np.random.default_rng(0)
CODES = np.c_[RNG.normal(size=200), RNG.integers(0, 5, 200), RNG.integers(0, 3, 200)]
CODES = CODES.astype(np.float32)
DATA = xgboost.DMatrix(
    CODES,
    (CODES[:, 0] + (CODES[:, 1] == 3) - (CODES[:, 2] == 1) > 0).astype(int),
    feature_types=["q", "c", "c"],
    enable_categorical=True,
)
PLAIN = Trees(xgboost.train({"objective": "binary:logistic", "max_depth": 4}, DATA, 4)).to_json()
VECTORS = grow(
    {**OBJECTIVES["several"], "multi_strategy": "multi_output_tree", "tree_method": "hist"},
    types="qqq",
    table=np.nan_to_num(X),
).to_json()


def booster_of(content: Any) -> Any:
    return content["learner"]["gradient_booster"]["model"]


def with_categories(content: Any) -> Any:
    """The first tree that splits on categories twice."""
    trees = booster_of(content)["trees"]
    return next(tree for tree in trees if len(tree["categories_nodes"]) > 1)


def forged(change: Any, data: bytes = PLAIN) -> bytes:
    content = json.loads(data)
    change(content)
    return json.dumps(content).encode()


def swap(part: list) -> None:
    part[0], part[1] = part[1], part[0]


def swap_children(content: Any) -> None:
    tree = booster_of(content)["trees"][0]
    for left, right in [(tree["left_children"], tree["right_children"])]:
        left[0], right[0] = right[0], left[0]


def parameter(name: str, value: str) -> Any:
    return lambda c: c["learner"]["learner_model_param"].update({name: value})


FORGERIES = {
    "a leaf wider than the outputs": lambda c: booster_of(c)["trees"][0].update(
        tree_param={**booster_of(c)["trees"][0]["tree_param"], "size_leaf_vector": "2"},
        base_weights=[0.0] * 2 * len(booster_of(c)["trees"][0]["parents"]),
    ),
    "categories out of order": lambda c: [
        swap(with_categories(c)[f"categories_{name}"]) for name in ("nodes", "segments", "sizes")
    ],
    "nodes of categories out of order": lambda c: swap(with_categories(c)["categories_nodes"]),
    "a set of no categories": lambda c: with_categories(c).update(
        categories_sizes=[0] * len(with_categories(c)["categories_sizes"])
    ),
    "categories that take gigabytes": lambda c: booster_of(c).update(
        trees=[
            {**tree, "categories": [2**24 - 1] * len(tree["categories"]), "id": place}
            for place, tree in enumerate(booster_of(c)["trees"] * 30)
        ],
        gbtree_model_param={"num_parallel_tree": "1", "num_trees": str(30 * 4)},
        iteration_indptr=[*range(30 * 4 + 1)],
        tree_info=[0] * 30 * 4,
    ),
    "a right child that is not next to the left": swap_children,
    "a base for each of five outputs": parameter("base_score", "[0.1,0.2,0.3,0.4,0.5]"),
    "a base that is no number": parameter("base_score", "[NaN]"),
    "a number that Python alone reads": parameter("num_class", " 0"),
    "a number with an underscore": parameter("num_target", "0_1"),
    "a billion features": parameter("num_feature", "1000000000"),
    "other features than the trees": parameter("num_feature", "1"),
    "a flag beyond two": lambda c: booster_of(c)["trees"][0]["default_left"].__setitem__(0, 2),
    "a leaf beyond all numbers": lambda c: booster_of(c)["trees"][0][
        "split_conditions"
    ].__setitem__(-1, 1e39),
    "names for other columns": lambda c: c["learner"].update(feature_names=["a"]),
    "a name with an escape": lambda c: c["learner"].update(feature_names=["a", "b", 'c"\\']),
    "another objective": lambda c: c["learner"]["objective"].update(name="rank:ndcg"),
    "trees that are no list": lambda c: booster_of(c).update(trees={}),
    "order of no categories": lambda c: booster_of(c)["cats"].update(sorted_idx=[10**6]),
    "no parallel trees": lambda c: booster_of(c)["gbtree_model_param"].update(
        num_parallel_tree="0"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_tree_is_refused(name):
    with pytest.raises(ValueError, match=r"data must be a booster in XGBoost's JSON, got \w+"):
        Trees.from_json(forged(FORGERIES[name]))


def test_vectors_must_be_as_wide_as_outputs_and_all_there():
    def narrow(content):
        for tree in booster_of(content)["trees"]:
            tree["tree_param"]["size_leaf_vector"] = "2"
            tree["base_weights"] = tree["base_weights"][: 2 * len(tree["parents"])]

    def short(content):
        booster_of(content)["trees"][0]["leaf_weights"].pop()

    for change in (narrow, short):
        with pytest.raises(ValueError, match="data must be a booster"):
            Trees.from_json(forged(change, VECTORS))
    assert Trees.from_json(VECTORS).to_json() == VECTORS


@pytest.mark.parametrize(
    ("found", "put"),
    [
        (b'"left_children":', rb'"left_childre\u006e":'),
        (b'"left_children":', b'"left_children":[1000000,-1,-1],"left_children":'),
        (b'"left_children":', rb'"left_children\u0000":[],"left_children":'),
        (b'"tree_info":', rb'"tree_inf\u006f":[7],"tree_info":'),
    ],
    ids=["escaped", "twice", "with a zero", "both"],
)
def test_what_xgboost_reads_otherwise_than_python_never_reaches_it(monkeypatch, found, put):
    """It keeps escapes, and takes another of two members of one name than Python."""
    seen = []
    load = xgboost.Booster.load_model
    monkeypatch.setattr(
        xgboost.Booster, "load_model", lambda self, data: seen.append(data) or load(self, data)
    )
    data = PLAIN.replace(b" ", b"").replace(found, put, 1)
    trees = None
    with suppress(ValueError):
        trees = Trees.from_json(data)
    assert bool(seen) == (trees is not None)
    if trees is not None:  # read as Python reads it, and so written for XGBoost
        assert b"\\u" not in seen[0]
        rows = torch.from_numpy(CODES)
        assert trees(rows).equal(Trees.from_json(PLAIN)(rows))
