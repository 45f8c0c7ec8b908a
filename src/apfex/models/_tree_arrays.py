"""Trees as plain arrays, read from XGBoost's JSON and checked before use."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

_PROBES = 8
_CLOSE = 1e-3
_NO_PARENT = (-1, 2**31 - 1)
"""How XGBoost writes that the root has no parent."""
_PER_NODE = (
    "right_children",
    "parents",
    "split_indices",
    "split_type",
    "split_conditions",
    "default_left",
    "loss_changes",
    "sum_hessian",
)


@final
@dataclass(frozen=True, eq=False)
class TreeArrays:
    """One tree as arrays.

    Attributes
    ----------
    left, right : int arrays of shape [nodes]
        Children; -1 at leaves.
    feature : int array of shape [nodes]
    value : float32 array of shape [nodes]
        A row goes left if its input is below; at leaves, what is added to the margin.
    default_left : bool array of shape [nodes]
        Where a missing value goes.
    categories : mapping from node to int array
        For nodes that split on a category: rows with these codes go right.
    output : int
        The margin that leaves are added to.

    Examples
    --------
    >>> leaf = np.array([-1])
    >>> TreeArrays(leaf, leaf, np.array([0]), np.float32([2]), np.array([False]), {}, 0).leaves(
    ...     np.zeros((3, 1))
    ... )
    array([2., 2., 2.], dtype=float32)
    """

    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray
    value: np.ndarray
    default_left: np.ndarray
    categories: Mapping[int, np.ndarray]
    output: int

    def leaves(self, x: np.ndarray) -> np.ndarray:
        """Return what the tree adds for rows [n, d]."""
        node, rows = np.zeros(len(x), dtype=np.int64), np.arange(len(x))
        while (inner := self.left[node] >= 0).any():
            found = x[rows, self.feature[node]]
            to_left = found < self.value[node]
            for place in set(node[inner].tolist()) & self.categories.keys():
                here = node == place
                to_left[here] = ~np.isin(found[here], self.categories[place])
            to_left = np.where(np.isnan(found), self.default_left[node], to_left)
            node = np.where(inner, np.where(to_left, self.left[node], self.right[node]), node)
        return self.value[node]


@final
@dataclass(frozen=True, eq=False)
class EnsembleArrays:
    """An ensemble as arrays: trees, and the margins that they are added to.

    Attributes
    ----------
    trees : sequence of TreeArrays
    base : float array of shape [outputs]
    n_features : int

    Examples
    --------
    >>> EnsembleArrays([], np.array([0.5]), 2).margins(np.zeros((1, 2)))
    array([[0.5]])
    """

    trees: Sequence[TreeArrays]
    base: np.ndarray
    n_features: int

    def margins(self, x: np.ndarray) -> np.ndarray:
        """Return margins [n, outputs] of rows [n, d]."""
        total = np.tile(self.base.astype(np.float64), (len(x), 1))
        for tree in self.trees:
            total[:, tree.output] += tree.leaves(x)
        return total


def check_trees(data: bytes | bytearray) -> None:
    """Refuse a booster with damaged trees: XGBoost would follow them without a check."""
    try:
        _Learner.of(json.loads(data)).check()
    except (KeyError, TypeError, ValueError, IndexError, RecursionError, OverflowError) as error:
        raise ValueError(f"data must be a booster in XGBoost's JSON, got {error!r}.") from error


def read_ensemble(data: bytes | bytearray, margins: Any) -> EnsembleArrays:
    """Read the arrays of a booster, and compare their margins with its own.

    Parameters
    ----------
    data : bytes
        The booster in XGBoost's JSON.
    margins : callable
        From rows [n, d] to the booster's own margins [n, outputs]; the base follows from them.
    """
    learner = _Learner.of(json.loads(data))
    learner.check()
    if learner.has_vectors:
        raise ValueError(
            "trees must have one number per leaf, got vectors (multi_strategy='multi_output_tree')."
        )
    rows = _probes(learner.feature_types, learner.n_features)
    found = EnsembleArrays(learner.trees(), np.zeros(learner.n_outputs), learner.n_features)
    differences = margins(rows).reshape(len(rows), -1) - found.margins(rows)
    base = np.median(differences, axis=0)
    if np.abs(differences - base).max() > _CLOSE * (1 + np.abs(differences).max()):
        raise ValueError("trees must add up to the margins of XGBoost itself, got others.")
    return EnsembleArrays(found.trees, base, found.n_features)


def _probes(feature_types: Sequence[str], d: int) -> np.ndarray:
    """Make a few rows with numbers, codes and missing values."""
    rows = np.random.default_rng(0).normal(size=(_PROBES, d)).astype(np.float32)
    codes = [place for place, kind in enumerate(feature_types) if kind == "c"]
    rows[:, codes] = np.arange(_PROBES)[:, None] % 3
    rows[0] = np.nan
    rows[1, ::2] = np.nan
    return rows


@dataclass(frozen=True, eq=False)
class _Learner:
    """The parts of XGBoost's JSON that matter."""

    model: Mapping[str, Any]
    drop: Sequence[float] | None
    parameters: Mapping[str, str]
    feature_types: Sequence[str]

    @staticmethod
    def of(content: Mapping[str, Any]) -> _Learner:
        learner = content["learner"]
        booster = learner["gradient_booster"]
        _demand(booster["name"] in ("gbtree", "dart"), "kind of booster")
        model = (booster["gbtree"] if booster["name"] == "dart" else booster)["model"]
        return _Learner(
            model,
            booster.get("weight_drop"),
            learner["learner_model_param"],
            learner.get("feature_types", ()),
        )

    @property
    def n_features(self) -> int:
        return int(self.parameters["num_feature"])

    @property
    def n_outputs(self) -> int:
        return max(1, int(self.parameters["num_class"]), int(self.parameters["num_target"]))

    @property
    def has_vectors(self) -> bool:
        return any(_width(tree) > 1 for tree in self.model["trees"])

    def trees(self) -> list[TreeArrays]:
        drop = self.drop or [1.0] * len(self.model["trees"])
        parts = zip(self.model["trees"], self.model["tree_info"], drop, strict=True)
        return [_tree(tree, output, float(scale)) for tree, output, scale in parts]

    def check(self) -> None:
        n_trees, rounds = len(self.model["trees"]), _ints(self.model["iteration_indptr"])
        _demand(int(self.model["gbtree_model_param"]["num_trees"]) == n_trees, "trees")
        _demand(rounds[0] == 0 and rounds[-1] == n_trees and (np.diff(rounds) >= 0).all(), "rounds")
        outputs = _ints(self.model["tree_info"])
        _demand(len(outputs) == n_trees and _within(outputs, self.n_outputs), "outputs")
        _demand(self.drop is None or len(self.drop) == n_trees, "weights of trees")
        names = _ints([tree["id"] for tree in self.model["trees"]])
        _demand((np.sort(names) == np.arange(n_trees)).all(), "names of trees")
        for tree in self.model["trees"]:
            _check_tree(tree, self.n_features)
        _check_categories(self.model.get("cats", {}))


def _tree(stored: Mapping[str, Any], output: int, scale: float) -> TreeArrays:
    left, right = _ints(stored["left_children"]), _ints(stored["right_children"])
    value = np.array(stored["split_conditions"], dtype=np.float32)
    value = np.where(left < 0, value * np.float32(scale), value)
    codes = _ints(stored["categories"])
    parts = (stored[f"categories_{name}"] for name in ("nodes", "segments", "sizes"))
    categories = {
        node: codes[start : start + size] for node, start, size in zip(*parts, strict=True)
    }
    default_left = _ints(stored["default_left"]).astype(bool)
    feature = _ints(stored["split_indices"])
    return TreeArrays(left, right, feature, value, default_left, categories, output)


def _check_tree(stored: Mapping[str, Any], n_features: int) -> None:
    """Check that nodes have one parent and the root none: then every path ends in a leaf."""
    left, right = _ints(stored["left_children"]), _ints(stored["right_children"])
    n, is_leaf, width = len(left), left == -1, _width(stored)
    _demand(int(stored["tree_param"]["num_nodes"]) == n > 0, "nodes")
    for name in _PER_NODE:
        _demand(len(stored[name]) == n, name)
    _demand(len(stored["base_weights"]) == n * width, "base_weights")
    children = np.concatenate([left[~is_leaf], right[~is_leaf]])
    _demand(_within(children - 1, n - 1), "children")
    _demand(len(np.unique(children)) == len(children), "children")
    parents, inner = _ints(stored["parents"]), np.flatnonzero(~is_leaf)
    _demand(parents[0] in _NO_PARENT and _within(parents[1:], n), "parents")
    _demand((parents[children] == np.concatenate([inner, inner])).all(), "parents")
    _demand(_within(_ints(stored["split_indices"])[~is_leaf], n_features), "features")
    if width > 1:
        _demand(_within(right[is_leaf], len(stored["leaf_weights"]) // width), "leaves")
    else:
        _demand((right[is_leaf] == -1).all(), "children")
    nodes, starts, sizes = (
        _ints(stored[f"categories_{name}"]) for name in ("nodes", "segments", "sizes")
    )
    _demand(len(nodes) == len(starts) == len(sizes) and _within(nodes, n), "categories")
    _demand(_within(starts, len(stored["categories"]) + 1) and (sizes >= 0).all(), "categories")
    _demand((starts + sizes <= len(stored["categories"])).all(), "categories")
    _demand(_within(_ints(stored["categories"]), 2**24), "categories")
    kinds = _ints(stored["split_type"])
    _demand(set(np.flatnonzero(kinds).tolist()) <= set(nodes.tolist()), "categories")


def _check_categories(stored: Mapping[str, Any]) -> None:
    """Check the names of categories, which some tables have."""
    for one in stored.get("enc", ()):
        ends = _ints(one.get("offsets", ()))
        _demand((np.diff(ends, prepend=0) >= 0).all(), "names")
        _demand(not len(ends) or ends[-1] <= len(one["values"]), "names")
    segments, order = _ints(stored.get("feature_segments", ())), _ints(stored.get("sorted_idx", ()))
    _demand((np.diff(segments, prepend=0) >= 0).all(), "names")
    _demand(not len(segments) or segments[-1] == len(order), "names")
    _demand(_within(order, max(1, len(order))), "names")


def _width(tree: Mapping[str, Any]) -> int:
    width = int(tree["tree_param"]["size_leaf_vector"])
    _demand(width >= 0, "size_leaf_vector")
    return max(1, width)


def _ints(values: Any) -> np.ndarray:
    found = np.asarray(values)
    if found.size and (found.ndim != 1 or found.dtype.kind not in "iu"):
        raise ValueError("whole numbers are missing")
    return found.astype(np.int64).reshape(-1)


def _within(values: np.ndarray, end: int) -> bool:
    return bool(((values >= 0) & (values < end)).all())


def _demand(holds: Any, what: str) -> None:
    if not holds:
        raise ValueError(f"{what} out of range")
