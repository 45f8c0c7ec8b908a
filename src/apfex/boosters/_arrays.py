"""Trees as plain arrays, read from XGBoost's JSON and checked before use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from apfex.boosters._check import gbtree_of, ints, outputs_of, read_booster, width_of

_PROBES = 8
_CLOSE = 1e-3


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
            found = x[rows, np.where(inner, self.feature[node], 0)]  # leaves split by nothing
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


def read_ensemble(data: bytes | bytearray, margins: Any) -> EnsembleArrays:
    """Read the arrays of a booster, and compare their margins with its own.

    Parameters
    ----------
    data : bytes
        The booster in XGBoost's JSON.
    margins : callable
        From rows [n, d] to the booster's own margins [n, outputs]; the base follows from them.
    """
    learner = _Learner.of(read_booster(data)["learner"])
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
    n_features: int
    n_outputs: int
    feature_types: Sequence[str]

    @staticmethod
    def of(learner: Mapping[str, Any]) -> _Learner:
        return _Learner(
            gbtree_of(learner),
            learner["gradient_booster"].get("weight_drop"),
            int(learner["learner_model_param"]["num_feature"]),
            outputs_of(learner),
            learner.get("feature_types", ()),
        )

    @property
    def has_vectors(self) -> bool:
        return any(width_of(tree) > 1 for tree in self.model["trees"])

    def trees(self) -> list[TreeArrays]:
        drop = self.drop or [1.0] * len(self.model["trees"])
        parts = zip(self.model["trees"], self.model["tree_info"], drop, strict=True)
        return [_tree(tree, output, float(scale)) for tree, output, scale in parts]


def _tree(stored: Mapping[str, Any], output: int, scale: float) -> TreeArrays:
    left, right = ints(stored["left_children"]), ints(stored["right_children"])
    value = np.array(stored["split_conditions"], dtype=np.float32)
    value = np.where(left < 0, value * np.float32(scale), value)
    codes = ints(stored["categories"])
    parts = (stored[f"categories_{name}"] for name in ("nodes", "segments", "sizes"))
    categories = {
        node: codes[start : start + size] for node, start, size in zip(*parts, strict=True)
    }
    default_left = ints(stored["default_left"]).astype(bool)
    feature = ints(stored["split_indices"])
    return TreeArrays(left, right, feature, value, default_left, categories, output)
