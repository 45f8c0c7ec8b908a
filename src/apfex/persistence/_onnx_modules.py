"""Modules as ONNX graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, final

import numpy as np
from torch import Tensor, nn

from apfex.models import BoostedModel, ColumnsModel, GroupingsModel, JointModel, JointTrees, Trees
from apfex.persistence._modules import is_known
from apfex.persistence._onnx_graph import Graph, add_trees
from apfex.rules import RuleModel

_TINY = 1e-30
_TINY_SHARE = 1e-12
_LARGE = 20.0  # from where on torch takes its softplus for the identity


@final
class ModuleExport:
    """Writes modules to a graph, all numbers in one type.

    Parameters
    ----------
    graph : Graph
    dtype : type
        float64 for modules of our own, float32 for a user's.
    """

    def __init__(self, graph: Graph, dtype: type) -> None:
        self._graph, self.dtype = graph, dtype
        self._shares: dict[int, str] = {}

    def scores(self, module: nn.Module, x: str, groups: str | None = None) -> str:
        """Scores [n, 1] or [n, c] of inputs [n, d], with the groups int64 [n] where they count."""
        if isinstance(module, RuleModel):
            return self._rule(module, x, groups)
        if isinstance(module, JointModel):
            return self._joint(module, x)
        if isinstance(module, ColumnsModel):
            ends = (self._ints([place]) for place in (module.start, module.stop, 1))
            return self.scores(module.model, self._add("Slice", x, *ends))
        if isinstance(module, JointTrees):
            return self._joint_trees(module, x)
        if isinstance(module, GroupingsModel):
            return self._groupings(module, x)
        if isinstance(module, BoostedModel):
            parts = (self.scores(part, x) for part in (module.base, module.boosted))
            return self._add("Add", *parts)
        if isinstance(module, Trees):
            inputs = self._graph.cast(x, np.float32)
            return self._graph.cast(add_trees(self._graph, module, inputs), self.dtype)
        if not is_known(module):
            raise ValueError(
                "to_onnx must be given a point of networks, linear models, rules or trees of ours, "
                f"or of torch's plain layers in an nn.Sequential, got {type(module).__name__}; "
                "export front_[point].module with torch.onnx yourself."
            )
        if isinstance(module, nn.Sequential):
            return reduce(lambda value, part: self.scores(part, value), module, x)
        return self._layer(module, x)

    def probabilities(
        self, module: nn.Module, scores: str, calibration: Sequence[float] | None
    ) -> str:
        """Probabilities of the label [n, c] in float64, by a module whose scores are known."""
        if isinstance(module, RuleModel):
            k, c = module.joint.shape
            joint = self._reshape(self._shares[id(module.joint)], [0, k, c])
            labels = self._add("ReduceSum", joint, self._ints([1]), keepdims=0)
            return self._graph.cast(labels, np.float64)
        wide = self._graph.cast(scores, np.float64)
        shares = self._add("Softmax", wide, axis=1)
        return shares if calibration is None else self._calibrate(shares, calibration)

    def binary(self, scores: str) -> str:
        """Scores [n, 2] of two classes by those of the second [n, 1]."""
        return self._add("Concat", self._add("Sub", scores, scores), scores, axis=1)

    def _calibrate(
        self, labels: str, calibration: Sequence[float], dtype: type = np.float64
    ) -> str:
        slope, *offsets = calibration
        number = partial(self._graph.constant, dtype=dtype)
        logits = self._add("Log", self._add("Max", labels, number(_TINY_SHARE)))
        mended = self._add("Add", self._add("Mul", logits, number(slope)), number([offsets]))
        return self._add("Softmax", mended, axis=1)

    def _rule(self, module: RuleModel, x: str, groups: str | None) -> str:
        k, c = module.joint.shape
        shares = self._joint(module.joint, x)
        if groups is not None:
            joint = self._reshape(shares, [0, k, c])
            shares = self._reshape(self._given(joint, groups, module.joint), [0, k * c])
        self._shares[id(module.joint)] = shares
        scores = self._add("MatMul", shares, self._array(module.rule.flatten(1).T))
        if len(module.rule) > 1:
            return self._add("Log", self._softplus(scores, module.SHARPNESS))
        half = self._add("Div", self._add("Add", scores, self._number(1)), self._number(2))
        ends = self._number(module.SMALLEST), self._number(1 - module.SMALLEST)
        share = self._add("Clip", half, *ends)
        odds = self._add("Div", share, self._add("Sub", self._number(1), share))
        return self._add("Log", odds)

    def _joint(self, module: JointModel, x: str) -> str:
        """Probabilities [n, k c]."""
        parts = []
        for weight, model in zip(module.weights, module.models, strict=True):
            shares = self._add("Softmax", self.scores(model, x), axis=1)
            parts.append(self._add("Mul", self._number(weight), shares))
        total = reduce(lambda total, part: self._add("Add", total, part), parts)
        if module.calibration is None:
            return total
        k, c = module.shape
        joint = self._reshape(total, [0, k, c])
        labels = self._add("ReduceSum", joint, self._ints([1]), keepdims=0)
        mended = self._calibrate(labels, module.calibration, self.dtype)
        ratio = self._add("Div", mended, self._add("Max", labels, self._number(_TINY_SHARE)))
        joint = self._add("Mul", joint, self._add("Unsqueeze", ratio, self._ints([1])))
        return self._reshape(joint, [0, k * c])

    def _given(self, joint: str, groups: str, module: JointModel) -> str:
        """Probabilities [n, k, c] where groups, or cells, are known; -1: as they are."""
        codes = self._add("Unsqueeze", groups, self._ints([1, 2]))
        is_known_group = self._add("GreaterOrEqual", codes, self._ints(0))
        k = module.shape[0]
        if module.cells is None:
            places = self._graph.constant(np.arange(k).reshape(1, k, 1))
            own = self._graph.cast(self._add("Equal", codes, places), self.dtype)
            kept = self._add("Mul", joint, own)
            total = self._add("ReduceSum", kept, self._ints([1, 2]), keepdims=1)
        else:
            kept, total = self._of_cells(joint, groups, module.cells.numpy(), k)
        known = self._add("Div", kept, self._add("Max", total, self._number(_TINY)))
        return self._add("Where", is_known_group, known, joint)

    def _of_cells(self, joint: str, groups: str, cells: np.ndarray, k: int) -> tuple[str, str]:
        """What is left of [n, k, c] in the groups of each row's cell, and what it is divided by."""
        members = np.zeros((len(cells), k, 1))
        np.put_along_axis(members[:, :, 0], cells, 1.0, axis=1)
        place = self._add("Max", groups, self._ints(0))
        kept = self._add("Mul", joint, self._add("Gather", self._array(members), place))
        total = self._add("ReduceSum", kept, self._ints([2]), keepdims=1)
        return kept, self._add("Mul", total, self._number(cells.shape[1]))

    def _groupings(self, module: GroupingsModel, x: str) -> str:
        """Log-probabilities of the groups of all groupings; see :class:`GroupingsModel`."""
        pairs = zip(module.models, module.sizes, strict=True)
        parts = [self._log_shares(self.scores(model, x), size) for model, size in pairs]
        found = self._add("Concat", *parts, axis=1)
        return self._add("Sub", found, self._number(math.log(len(parts))))

    def _joint_trees(self, module: JointTrees, x: str) -> str:
        k, c = module.shape
        labels = self._log_shares(self.scores(module.label, x), c)
        if module.group is None:
            return labels
        n = self._add("Gather", self._add("Shape", x), self._ints([0]))
        shape = self._add("Concat", n, self._ints([1]), axis=0)
        groups = []
        for y in range(c):
            told = self._add("Concat", x, self._add("Expand", self._number(y), shape), axis=1)
            share = self.scores(module.group, told)
            if not isinstance(module.group, GroupingsModel):  # which has them as they are
                share = self._log_shares(share, k)
            groups.append(self._add("Unsqueeze", share, self._ints([2])))
        by_label = self._add("Concat", *groups, axis=2)
        total = self._add("Add", self._add("Unsqueeze", labels, self._ints([1])), by_label)
        return self._reshape(total, [0, k * c])

    def _log_shares(self, margins: str, n: int) -> str:
        """Log-probabilities [n, c] by c margins, or by one of the second of two."""
        if n == 2:
            margins = self._add("Concat", self._add("Sub", margins, margins), margins, axis=1)
        return self._add("LogSoftmax", margins, axis=1)

    def _softplus(self, scores: str, sharpness: float) -> str:
        """log(1 + exp(s x)) / s without loss where exp is small: Kahan's log1p."""
        t, one = self._add("Mul", scores, self._number(sharpness)), self._number(1)
        e = self._add("Exp", t)
        u = self._add("Add", e, one)
        rest = self._add("Sub", u, one)
        found = self._add("Div", self._add("Mul", self._add("Log", u), e), rest)
        bend = self._add("Where", self._add("Equal", rest, self._number(0)), e, found)
        bend = self._add("Div", bend, self._number(sharpness))
        return self._add("Where", self._add("Greater", t, self._number(_LARGE)), scores, bend)

    def _layer(self, layer: Any, x: str) -> str:
        simple = _SIMPLE.get(type(layer))
        if simple is not None:
            operator, attributes = simple(layer)
            return x if operator is None else self._add(operator, x, **attributes)
        return getattr(self, f"_{type(layer).__name__.lower()}")(layer, x)

    def _linear(self, layer: nn.Linear, x: str) -> str:
        weight = self._array(layer.weight)
        if layer.bias is None:
            return self._add("Gemm", x, weight, transB=1)
        return self._add("Gemm", x, weight, self._array(layer.bias), transB=1)

    def _batchnorm1d(self, layer: nn.BatchNorm1d, x: str) -> str:
        mean, variance = layer.running_mean, layer.running_var
        if mean is None or variance is None:
            raise ValueError(
                "to_onnx must be given a BatchNorm1d with running statistics, got one without, "
                "whose outputs depend on the other rows."
            )
        scale = (variance.double() + layer.eps).rsqrt()
        scale = scale if layer.weight is None else scale * layer.weight.double()
        shift = -mean.double() * scale
        shift = shift if layer.bias is None else shift + layer.bias.double()
        return self._add("Add", self._add("Mul", x, self._array(scale)), self._array(shift))

    def _layernorm(self, layer: nn.LayerNorm, x: str) -> str:
        size = layer.normalized_shape[0]
        given = [np.ones(size) if layer.weight is None else layer.weight]
        given += [] if layer.bias is None else [layer.bias]
        arrays = (self._array(one) for one in given)
        return self._add("LayerNormalization", x, *arrays, epsilon=layer.eps)

    def _silu(self, _: nn.SiLU, x: str) -> str:
        return self._add("Mul", x, self._add("Sigmoid", x))

    def _gelu(self, layer: nn.GELU, x: str) -> str:
        if layer.approximate == "tanh":
            cube = self._add("Mul", x, self._add("Mul", x, x))
            inner = self._add("Add", x, self._add("Mul", self._number(0.044715), cube))
            bend = self._add("Tanh", self._add("Mul", inner, self._number(np.sqrt(2 / np.pi))))
        else:
            bend = self._add("Erf", self._add("Mul", x, self._number(np.sqrt(0.5))))
        share = self._add("Mul", self._add("Add", bend, self._number(1)), self._number(0.5))
        return self._add("Mul", x, share)

    def _add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self._graph.add(operator, *inputs, **attributes)

    def _number(self, value: float) -> str:
        return self._graph.constant(value, self.dtype)

    def _ints(self, values: Any) -> str:
        return self._graph.constant(values, np.int64)

    def _array(self, values: Any) -> str:
        plain = values.detach().cpu().numpy() if isinstance(values, Tensor) else values
        return self._graph.constant(plain, self.dtype)

    def _reshape(self, value: str, shape: list[int]) -> str:
        return self._add("Reshape", value, self._ints(shape))


_SIMPLE: dict[type[nn.Module], Callable[[Any], tuple[str | None, dict[str, Any]]]] = {
    nn.Dropout: lambda _: (None, {}),
    nn.ELU: lambda layer: ("Elu", {"alpha": layer.alpha}),
    nn.Identity: lambda _: (None, {}),
    nn.LeakyReLU: lambda layer: ("LeakyRelu", {"alpha": layer.negative_slope}),
    nn.ReLU: lambda _: ("Relu", {}),
    nn.Sigmoid: lambda _: ("Sigmoid", {}),
    nn.Tanh: lambda _: ("Tanh", {}),
}
"""Layers that are an operator of ONNX, or none."""
