"""A small way to write ONNX graphs: a call per node, names are its own business."""

from __future__ import annotations

from types import ModuleType
from typing import Any, final

import numpy as np

OPSET, ML_OPSET, IR = 17, 5, 10
"""What onnxruntime reads from 1.20 on; trees need the latter two."""


def import_onnx() -> ModuleType:
    """The module, or an error that says how to get it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError('ONNX export needs onnx: pip install "apfex[onnx]".') from error
    return onnx


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
