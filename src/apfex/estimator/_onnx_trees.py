"""Boosted trees as a node of ONNX."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from apfex.estimator._onnx_graph import Graph
from apfex.models import TreeArrays, Trees

_BELOW, _AMONG = 1, 6
"""ONNX's numbers for: true if the value is below the split; if it is one of the members."""
_SUM, _AS_THEY_ARE = 1, 0


def add_trees(graph: Graph, trees: Trees, x: str) -> str:
    """Margins float32 [n, outputs] of inputs float32 [n, d]."""
    arrays = trees.to_arrays()
    table = _Table()
    for tree in arrays.trees:
        table.add(tree)
    members = {"membership_values": graph.array(table.members, np.float32, "members")}
    margins = graph.add(
        "TreeEnsemble",
        x,
        domain="ai.onnx.ml",
        aggregate_function=_SUM,
        post_transform=_AS_THEY_ARE,
        n_targets=len(arrays.base),
        tree_roots=table.roots,
        nodes_featureids=table.features,
        nodes_splits=graph.array(table.splits, np.float32, "splits"),
        nodes_modes=graph.array(table.modes, np.uint8, "modes"),
        nodes_truenodeids=table.if_true,
        nodes_trueleafs=table.true_is_leaf,
        nodes_falsenodeids=table.if_false,
        nodes_falseleafs=table.false_is_leaf,
        nodes_missing_value_tracks_true=table.missing_is_true,
        leaf_targetids=table.outputs,
        leaf_weights=graph.array(table.weights, np.float32, "weights"),
        **(members if table.members else {}),
    )
    return graph.add("Add", margins, graph.constant(arrays.base, np.float32))


@final
@dataclass
class _Table:
    """Inner nodes and leaves of all trees, as ONNX wants them: apart from each other."""

    roots: list[int] = field(default_factory=list)
    features: list[int] = field(default_factory=list)
    splits: list[float] = field(default_factory=list)
    modes: list[int] = field(default_factory=list)
    if_true: list[int] = field(default_factory=list)
    if_false: list[int] = field(default_factory=list)
    true_is_leaf: list[int] = field(default_factory=list)
    false_is_leaf: list[int] = field(default_factory=list)
    missing_is_true: list[int] = field(default_factory=list)
    members: list[float] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    def add(self, tree: TreeArrays) -> None:
        """Add a tree; a leaf alone hangs on a node that asks nothing."""
        inner = [node for node in _reachable(tree) if tree.left[node] >= 0]
        places = {node: len(self.features) + place for place, node in enumerate(inner)}
        self.roots.append(len(self.features))
        if not inner:
            leaf = self._leaf(tree, 0)
            self._node(0, 0.0, _BELOW, (leaf, 1), (leaf, 1), True)
        for node in inner:
            left, right = (
                (places[child], 0) if child in places else (self._leaf(tree, child), 1)
                for child in (int(tree.left[node]), int(tree.right[node]))
            )
            feature, to_left = int(tree.feature[node]), bool(tree.default_left[node])
            if node not in tree.categories:
                self._node(feature, float(tree.value[node]), _BELOW, left, right, to_left)
                continue
            self._node(feature, 0.0, _AMONG, right, left, not to_left)
            self.members += [*map(float, tree.categories[node]), np.nan]

    def _node(
        self,
        feature: int,
        split: float,
        mode: int,
        if_true: tuple[int, int],
        if_false: tuple[int, int],
        missing_is_true: bool,
    ) -> None:
        self.features.append(feature)
        self.splits.append(split)
        self.modes.append(mode)
        self.if_true.append(if_true[0])
        self.true_is_leaf.append(if_true[1])
        self.if_false.append(if_false[0])
        self.false_is_leaf.append(if_false[1])
        self.missing_is_true.append(int(missing_is_true))

    def _leaf(self, tree: TreeArrays, node: int) -> int:
        self.outputs.append(tree.output)
        self.weights.append(float(tree.value[node]))
        return len(self.outputs) - 1


def _reachable(tree: TreeArrays) -> list[int]:
    """Nodes from the root down; pruned ones may lie about in the arrays."""
    found = [0]
    for node in found:
        if tree.left[node] >= 0:
            found += [int(tree.left[node]), int(tree.right[node])]
    return found
