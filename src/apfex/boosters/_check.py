"""XGBoost's JSON as others may have written it: checked whole before XGBoost follows it blindly.

XGBoost reads numbers of nodes, features and categories as places in memory. It also reads JSON in
a way of its own: it keeps escapes, and of two members of one name takes another than Python. So it
is never given a file, but what was checked here, written again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from apfex.strict_json import read_strict_json

_OBJECTIVES = (
    "binary:logistic",
    "binary:logitraw",
    "multi:softprob",
    "multi:softmax",
    "reg:squarederror",
)
"""Of classifiers, and of what is boosted on top of them."""
_MOST_FEATURES, _MOST_OUTPUTS = 2**20, 2**16
_NO_PARENT = (-1, 2**31 - 1)
"""How XGBoost writes that the root has no parent."""
_FLAGS = ("split_type", "default_left")
_WHOLE = ("left_children", "right_children", "parents", "split_indices", *_FLAGS)
_NUMBERS = ("split_conditions", "loss_changes", "sum_hessian")
_SPARE_BITS, _BITS_PER_BYTE = 2**26, 64
"""A set of categories has a bit for each code up to the largest: a node of few bytes may ask for
much memory."""
_LARGEST = float(np.finfo(np.float32).max)
_DIGITS = re.compile(r"[0-9]{1,9}", re.ASCII)


def read_booster(data: bytes | bytearray) -> dict[str, Any]:
    """The content of a booster's JSON, or a ValueError where it would lead XGBoost astray."""
    try:
        content = read_strict_json(bytes(data))
        _check_texts(content)
        _check_learner(content["learner"], len(data))
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
        raise ValueError(
            f"data must be a booster in XGBoost's JSON, got {_told(error)}."
        ) from error
    return content


def _told(error: Exception) -> str:
    """What is wrong with a booster, in words."""
    if isinstance(error, KeyError):
        return f"one without {error.args[0]!r}"
    if isinstance(error, ValueError):
        return f"one that is wrong: {error}"
    return f"one with a part of another kind ({type(error).__name__}: {error})"


def written_again(content: Mapping[str, Any]) -> bytearray:
    """JSON that says to XGBoost what it says to Python: no escapes, and each name once."""
    return bytearray(json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode())


def gbtree_of(learner: Mapping[str, Any]) -> Mapping[str, Any]:
    """The trees of a learner, whether they are dropped out or not."""
    booster = learner["gradient_booster"]
    return (booster["gbtree"] if booster["name"] == "dart" else booster)["model"]


def width_of(tree: Mapping[str, Any]) -> int:
    """Numbers in a leaf."""
    return max(1, _digits(tree["tree_param"]["size_leaf_vector"], 0, "size_leaf_vector"))


def outputs_of(learner: Mapping[str, Any]) -> int:
    """Margins of a row."""
    given = learner["learner_model_param"]
    return max(1, *(_digits(given[name], 0, name) for name in ("num_class", "num_target")))


def ints(values: Any) -> np.ndarray:
    """Whole numbers from a list of such; anything else is refused."""
    found = np.asarray(values)
    if not isinstance(values, list) or (
        found.size and (found.ndim != 1 or found.dtype.kind not in "iu")
    ):
        raise ValueError("whole numbers are missing")
    return found.astype(np.int64).reshape(-1)


def _check_texts(value: Any) -> None:
    """Refuse text that one reader of JSON may take for another than the next."""
    for text in _texts(value):
        if not text.isprintable() or '"' in text or "\\" in text:
            raise ValueError(f"{text[:40]!r} is no plain text")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list) and value and not isinstance(value[0], int | float):
        for part in value:
            yield from _texts(part)


def _check_learner(learner: dict[str, Any], n_bytes: int) -> None:
    given = learner["learner_model_param"]
    n_features = _digits(given["num_feature"], 1, "num_feature", _MOST_FEATURES)
    n_outputs = outputs_of(learner)
    _demand(n_outputs <= _MOST_OUTPUTS, "outputs")
    _check_base(given["base_score"], n_outputs)
    objective = learner["objective"]
    _demand(objective["name"] in _OBJECTIVES, "objective")
    n_classes = objective.get("softmax_multiclass_param", {}).get("num_class", given["num_class"])
    _demand(n_classes == given["num_class"], "num_class")
    for name in ("feature_names", "feature_types"):
        words = learner.get(name, [])
        _demand(isinstance(words, list) and all(isinstance(one, str) for one in words), name)
        _demand(len(words) in (0, n_features), name)
    _check_dropout(learner["gradient_booster"])
    model = gbtree_of(learner)
    _check_rounds(model, n_outputs)
    bits = sum(_check_tree(tree, n_features, n_outputs) for tree in model["trees"])
    for tree in model["trees"] if learner.get("feature_types") else ():
        _check_kinds(tree, learner["feature_types"])
    _demand(bits <= _SPARE_BITS * 8 + _BITS_PER_BYTE * n_bytes, "categories")
    widths = {width_of(tree) for tree in model["trees"]}
    _demand(len(widths) <= 1, "size_leaf_vector")
    _check_names(model.get("cats", {}), n_features)


def _check_base(stored: Any, n_outputs: int) -> None:
    base = read_strict_json(stored)
    scores = base if isinstance(base, list) else [base]
    _check_numbers(scores, "base_score")
    _demand(len(scores) in (1, n_outputs), "base_score")


def _check_dropout(booster: Mapping[str, Any]) -> None:
    _demand(booster["name"] in ("gbtree", "dart"), "kind of booster")
    if booster["name"] == "dart":
        _demand(booster["gbtree"]["name"] == "gbtree", "kind of booster")
        _check_numbers(booster["weight_drop"], "weights of trees")
        n_trees = len(booster["gbtree"]["model"]["trees"])
        _demand(len(booster["weight_drop"]) == n_trees, "weights of trees")


def _check_rounds(model: Mapping[str, Any], n_outputs: int) -> None:
    given, trees = model["gbtree_model_param"], model["trees"]
    n_trees, rounds = len(trees), ints(model["iteration_indptr"])
    _demand(isinstance(trees, list), "trees")
    _demand(_digits(given["num_trees"], 0, "trees") == n_trees, "trees")
    _digits(given["num_parallel_tree"], 1, "num_parallel_tree", 2**16)
    _demand(rounds[0] == 0 and rounds[-1] == n_trees and (np.diff(rounds) >= 0).all(), "rounds")
    outputs = ints(model["tree_info"])
    _demand(len(outputs) == n_trees and _within(outputs, n_outputs), "outputs")
    names = ints([tree["id"] for tree in trees])
    _demand((np.sort(names) == np.arange(n_trees)).all(), "names of trees")


def _check_tree(stored: Mapping[str, Any], n_features: int, n_outputs: int) -> int:
    """Check that nodes have one parent and the root none: then every path ends in a leaf.

    Returns how many bits its sets of categories take.
    """
    left, right = ints(stored["left_children"]), ints(stored["right_children"])
    n, is_leaf = len(left), left == -1
    _check_lengths(stored, n)
    inner = np.flatnonzero(~is_leaf)
    children = np.concatenate([left[inner], right[inner]])
    _demand(_within(children - 1, n - 1), "children")
    _demand(len(np.unique(children)) == len(children), "children")
    # a numeric node is followed by its left child's place alone: the right one must be the next
    _demand((right[inner] == left[inner] + 1).all(), "children")
    parents = ints(stored["parents"])
    _demand(parents[0] in _NO_PARENT and _within(parents[1:], n), "parents")
    _demand((parents[children] == np.concatenate([inner, inner])).all(), "parents")
    features = ints(stored["split_indices"])
    _demand(_within(features[inner], n_features) and _within(features, 2**31), "features")
    _check_leaves(stored, right[is_leaf], n_outputs)
    return _check_splits(stored, is_leaf)


def _check_kinds(stored: Mapping[str, Any], types: Sequence[str]) -> None:
    """Check that sets of categories split categories, and nothing else does."""
    inner = ints(stored["left_children"]) >= 0
    by_category = np.array([kind == "c" for kind in types])[ints(stored["split_indices"])[inner]]
    _demand((by_category == ints(stored["split_type"])[inner]).all(), "categories")


def _check_lengths(stored: Mapping[str, Any], n: int) -> None:
    given, width = stored["tree_param"], width_of(stored)
    _demand(_digits(given["num_nodes"], 1, "nodes") == n, "nodes")
    _digits(given["num_deleted"], 0, "nodes", n)
    _digits(given["num_feature"], 0, "features", _MOST_FEATURES)
    for name in (*_WHOLE, *_NUMBERS):
        _demand(len(stored[name]) == n, name)
    for name in _FLAGS:
        _demand(_within(ints(stored[name]), 2), name)
    for name in _NUMBERS:
        _check_numbers(stored[name], name)
    _check_numbers(stored["base_weights"], "base_weights")
    _demand(len(stored["base_weights"]) == n * width, "base_weights")


def _check_leaves(stored: Mapping[str, Any], places: np.ndarray, n_outputs: int) -> None:
    """Places of vectors where leaves have some, and nothing otherwise."""
    width = width_of(stored)
    if width == 1:
        _demand((places == -1).all(), "children")
        _demand(not stored.get("leaf_weights"), "leaves")
        return
    _demand(width == n_outputs, "size_leaf_vector")
    _check_numbers(stored["leaf_weights"], "leaves")
    _demand(len(stored["leaf_weights"]) == width * len(places), "leaves")
    _demand(_within(places, len(places)), "leaves")


def _check_splits(stored: Mapping[str, Any], is_leaf: np.ndarray) -> int:
    """Sets of categories lie one after the other, for just the nodes that ask for them."""
    nodes, starts, sizes = (
        ints(stored[f"categories_{name}"]) for name in ("nodes", "segments", "sizes")
    )
    codes = ints(stored["categories"])
    _demand(len(nodes) == len(starts) == len(sizes), "categories")
    _demand(np.array_equal(nodes, np.flatnonzero(ints(stored["split_type"]))), "categories")
    _demand(not is_leaf[nodes].any() and (sizes >= 1).all(), "categories")
    _demand(np.array_equal(starts, np.cumsum(sizes) - sizes), "categories")
    _demand(sizes.sum() == len(codes) and _within(codes, 2**24), "categories")
    return int(np.maximum.reduceat(codes, starts).sum()) if len(nodes) else 0


def _check_names(stored: Mapping[str, Any], n_features: int) -> None:
    """Check the names of categories, which some tables have, and their order in each feature."""
    columns = stored.get("enc", [])
    ends, order = ints(stored.get("feature_segments", [])), ints(stored.get("sorted_idx", []))
    if not columns:
        _demand(not order.size and not ends.any(), "names of categories")
        return
    sizes = np.array([_n_names(column) for column in columns])
    _demand(len(columns) == n_features, "names of categories")
    _demand(np.array_equal(ends, np.append(0, np.cumsum(sizes))), "names of categories")
    _demand(len(order) == ends[-1], "names of categories")
    for start, size in zip(ends, sizes, strict=False):
        own = np.sort(order[start : start + size])
        _demand(np.array_equal(own, np.arange(size)), "names of categories")


def _n_names(column: Mapping[str, Any]) -> int:
    """How many names a feature has: text, by where each ends, or numbers."""
    if "type" in column:
        _demand(type(column["type"]) is int and 0 <= column["type"] < 64, "names of categories")
        _check_numbers(column["values"], "names of categories")
        return len(column["values"])
    ends, values = ints(column["offsets"]), ints(column["values"])
    _demand(_within(values + 128, 256), "names of categories")
    if not len(ends):
        _demand(not len(values), "names of categories")
        return 0
    _demand(ends[0] == 0 and (np.diff(ends) >= 0).all(), "names of categories")
    _demand(ends[-1] <= len(values), "names of categories")
    return len(ends) - 1


def _check_numbers(values: Any, what: str) -> None:
    found = np.asarray(values)
    if not isinstance(values, list) or (
        found.size and (found.ndim != 1 or found.dtype.kind not in "iuf")
    ):
        raise ValueError(f"{what} must be numbers")
    _demand(not found.size or np.abs(found.astype(np.float64)).max() <= _LARGEST, what)


def _digits(text: Any, least: int, what: str, most: int = 2**31 - 1) -> int:
    """A whole number as XGBoost writes one; Python alone would also take spaces or signs."""
    _demand(isinstance(text, str) and _DIGITS.fullmatch(text), what)
    _demand(least <= int(text) <= most, what)
    return int(text)


def _within(values: np.ndarray, end: int) -> bool:
    return bool(((values >= 0) & (values < end)).all())


def _demand(holds: Any, what: str) -> None:
    if not holds:
        raise ValueError(f"{what} out of range")
