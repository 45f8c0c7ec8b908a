"""ONNX graphs, a call per node; an ensemble of trees is one node."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, final

import numpy as np

from apfex.boosters import TreeArrays
from apfex.extras import need_extra
from apfex.models import Trees

OPSET, ML_OPSET, IR = 17, 5, 10
"""What onnxruntime reads from 1.20 on; trees need the latter two."""
_BELOW, _AMONG = 1, 6
"""ONNX's numbers for: true if the value is below the split; if it is one of the members."""
_SUM, _AS_THEY_ARE = 1, 0


def import_onnx() -> ModuleType:
    """The module, or an error that says how to get it."""
    return need_extra("onnx", "onnx", "ONNX export")


@final
class Graph:
    """Nodes, constants and inputs of a graph; values are known by their names."""

    def __init__(self, reserved: tuple[str, ...]) -> None:
        self._onnx = import_onnx()
        self._taken = set(reserved)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []

    def input(self, name: str, dtype: type, width: int | None) -> str:
        """Rows of an input, of shape [n, width] or [n]; its name, which may have had to differ."""
        free = name or "column"
        while free in self._taken:
            free += "_"
        self._taken.add(free)
        shape = ["n"] if width is None else ["n", width]
        self._inputs.append(self._value(free, dtype, shape))
        return free

    def constant(self, values: Any, dtype: type | None = None) -> str:
        """An array; text where it holds objects."""
        array, name = np.asarray(values, dtype=dtype), self._new()
        if array.dtype.kind in "OU":
            texts = [str(text).encode() for text in array.ravel()]
            kind = self._onnx.TensorProto.STRING
            made = self._onnx.helper.make_tensor(name, kind, array.shape, texts)
        else:
            made = self._onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
        self._constants.append(made)
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """A node with one output, whose name it is."""
        name = self._new()
        made = self._onnx.helper.make_node(operator, inputs, [name], domain=domain, **attributes)
        self._nodes.append(made)
        return name

    def cast(self, value: str, dtype: type) -> str:
        """The value as another type."""
        return self.add("Cast", value, to=self._kind(dtype))

    def array(self, values: Any, dtype: type, name: str) -> Any:
        """An array as an attribute of a node."""
        return self._onnx.numpy_helper.from_array(np.asarray(values, dtype=dtype), name)

    def model(
        self, outputs: dict[str, tuple[str, type, list[Any]]], about: dict[str, str]
    ) -> bytes:
        """The whole, checked: outputs by name, as value, type and shape."""
        helper = self._onnx.helper
        for name, (value, _, _) in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value], [name]))
        shown = [self._value(name, dtype, shape) for name, (_, dtype, shape) in outputs.items()]
        graph = helper.make_graph(
            self._nodes, "apfex", self._inputs, shown, initializer=self._constants
        )
        domains = [("", OPSET), ("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(
            graph,
            producer_name="apfex",
            ir_version=IR,
            opset_imports=[helper.make_opsetid(*domain) for domain in domains],
        )
        helper.set_model_props(model, about)
        self._onnx.checker.check_model(model)
        return model.SerializeToString(deterministic=True)

    def _new(self) -> str:
        name = f"apfex.{len(self._nodes) + len(self._constants)}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _kind(self, dtype: type) -> int:
        if dtype is str:
            return self._onnx.TensorProto.STRING
        return self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def _value(self, name: str, dtype: type, shape: list[Any]) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, self._kind(dtype), shape)


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
