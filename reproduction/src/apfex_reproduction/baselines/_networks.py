"""The paper's network, b of them in a stack, with dropout and gradients of several losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

_START = 0.02
"""Standard deviation of the first weights; biases start at zero."""
_AT_ONCE = 2**19
"""Numbers of a layer's gradients that are held at once: more of them leave the cache."""


@final
@dataclass(frozen=True, eq=False)
class Inputs:
    """Rows [n, c], a one appended to each, and which of the inputs they have, if not all."""

    x: Tensor
    columns: Tensor | None = None
    """Places [c] of the inputs (and the one); a row has zero in all others."""

    @staticmethod
    def of(x: Tensor) -> Inputs:
        """Rows [n, d] with all their inputs."""
        return Inputs(torch.cat([x, torch.ones_like(x[:, :1])], 1))

    def take(self, rows: Tensor) -> Inputs:
        """Some of the rows; of a wide table, only the inputs that one of them has."""
        x = self.x[rows]
        if x.shape[1] < _WIDE:
            return Inputs(x)
        columns = torch.nonzero((x != 0).any(0)).squeeze(1)
        return Inputs(x[:, columns], columns)

    def split(self, size: int) -> list[Inputs]:
        """The same in portions."""
        return [Inputs(part, self.columns) for part in self.x.split(size)]


_WIDE = 128
"""Inputs from which on a batch is worth looking at for levels that no row has."""


@final
@dataclass(frozen=True, eq=False)
class Passed:
    """What a forward pass leaves behind: scores [q, b, n], and inputs of the layers.

    ``hidden`` has [q, b, width + 1, n] for each hidden layer, with ones at the end: what the next
    layer sees, zero where a unit is off or dropped.
    """

    scores: Tensor
    inputs: Inputs
    hidden: Sequence[Tensor]
    scale: float
    """What dropout multiplies the units by that it keeps."""


@final
class Networks:
    """b perceptrons that all start alike: same weights, same dropout, other losses.

    Parameters
    ----------
    n_features : int
    hidden : sequence of int
    dropout : float
    n_members : int
        b.
    seed : int

    Notes
    -----
    The backward pass is written out: the gradients of all losses and members are then a handful of
    products, and no graph is built. A test compares it with autograd.
    """

    def __init__(
        self, n_features: int, hidden: Sequence[int], dropout: float, n_members: int, seed: int
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        widths = (n_features, *hidden, 1)
        starts = [_START * torch.randn(o, i, generator=generator) for i, o in pairwise(widths)]
        blocks = [torch.cat([start, torch.zeros(len(start), 1)], 1) for start in starts]
        flat = torch.cat([block.flatten() for block in blocks])
        self.values = flat.repeat(n_members, 1)
        """All parameters [b, p]: layer by layer, each unit's weights and then its bias."""
        self._shapes = [tuple(block.shape) for block in blocks]
        self._layers = self._views(self.values)
        self.n_members, self._dropout = n_members, dropout

    @property
    def weights(self) -> list[Tensor]:
        """Of each layer, [b, out, in]."""
        return [layer[..., :-1] for layer in self._layers]

    @property
    def biases(self) -> list[Tensor]:
        """Of each layer, [b, out, 1]."""
        return [layer[..., -1:] for layer in self._layers]

    def forward(self, inputs: Inputs, masks: Sequence[Tensor] | None = None) -> Passed:
        """Scores of all members for n rows; with masks, q passes whose dropout differs."""
        layer, columns = self._layers[0], inputs.columns
        layer = layer if columns is None else layer.index_select(2, columns)
        values = (layer.flatten(0, 1) @ inputs.x.T).unflatten(0, (self.n_members, -1)).unsqueeze(0)
        hidden = []
        for place, layer in enumerate(self._layers[1:]):
            mask = None if masks is None else masks[place].unsqueeze(1)
            hidden.append(_switched(values, mask))
            values = layer @ hidden[-1]
        scale = 1.0 if masks is None else 1 / (1 - self._dropout)
        return Passed(values.squeeze(2), inputs, hidden, scale)

    def pull_back(self, passed: Passed, cotangents: Tensor) -> Tensor:
        """Gradients [b, m, p] of m losses by the parameters, from those by the scores [b, m, n].

        Either all losses are of the scores of one pass, or each of those of its own.
        """
        b, m, n = cotangents.shape
        own = passed.scores.shape[0] > 1
        if own:
            cotangents = cotangents.transpose(0, 1).reshape(m * b, 1, n)
        hidden = [layer.flatten(0, 1) for layer in passed.hidden]
        members = torch.arange(b).repeat(m) if own else torch.arange(b)
        gradients = cotangents.new_zeros(*cotangents.shape[:2], self.values.shape[1])
        widest = max(out for out, _ in self._shapes)
        size = max(1, _AT_ONCE // (cotangents.shape[1] * widest * n))
        for start in range(0, len(cotangents), size):
            some = slice(start, start + size)
            self._pull(
                gradients[some],
                cotangents[some],
                [layer[some] for layer in hidden],
                [layer[..., :-1].mT[members[some]] * passed.scale for layer in self._layers[1:]],
                passed.inputs,
            )
        return gradients.view(m, b, -1).transpose(0, 1) if own else gradients

    def _pull(
        self,
        gradients: Tensor,
        cotangents: Tensor,
        hidden: Sequence[Tensor],
        turned: Sequence[Tensor],
        inputs: Inputs,
    ) -> None:
        """Fill gradients [v, k, p] of v passes with k losses each."""
        v, k, n = cotangents.shape
        views = self._views(gradients.view(v * k, -1))
        delta = cotangents.unsqueeze(2)  # [v, k, out, n]
        for layer in range(len(hidden) - 1, -1, -1):
            seen = delta.flatten(1, 2) @ hidden[layer].mT
            views[layer + 1].copy_(seen.view_as(views[layer + 1]))
            delta = turned[layer].unsqueeze(1) @ delta
            on = hidden[layer][:, None, :-1]
            delta = torch.ops.aten.threshold_backward(delta, on.expand_as(delta), 0)
        seen = (delta.reshape(-1, n) @ inputs.x).view(v * k, self._shapes[0][0], -1)
        if inputs.columns is None:
            views[0].copy_(seen)
        else:
            views[0].index_copy_(2, inputs.columns, seen)

    def snapshot(self, member: int) -> list[np.ndarray]:
        """The weights and biases of a member now: views of one copy."""
        flat = self.values[member].numpy().copy()
        ends = np.cumsum([o * i for o, i in self._shapes])[:-1]
        parts = zip(np.split(flat, ends), self._shapes, strict=True)
        layers = [part.reshape(shape) for part, shape in parts]
        return [layer[:, :-1] for layer in layers] + [layer[:, -1:] for layer in layers]

    def _views(self, flat: Tensor) -> list[Tensor]:
        """Rows [r, p] as layers [r, out, in + 1]; nothing is copied."""
        parts = flat.split([o * i for o, i in self._shapes], 1)
        return [part.unflatten(1, shape) for part, shape in zip(parts, self._shapes, strict=True)]


def draw_masks(
    widths: Sequence[int], dropout: float, n: int, passes: int, generator: torch.Generator
) -> list[Tensor]:
    """What each unit of n rows is multiplied by, [q, width, n] for each hidden layer.

    Passes are drawn one after another, so that the first ones do not depend on their number.
    """
    keep = 1 - dropout
    drawn = [
        [torch.rand(width, n, generator=generator) < keep for width in widths]
        for _ in range(passes)
    ]
    return [torch.stack(layer) / keep for layer in zip(*drawn, strict=True)]


def _switched(values: Tensor, mask: Tensor | None) -> Tensor:
    """What the next layer sees of units [.., b, width, n]: ones appended to what is on."""
    passes = values.shape[0] if mask is None else max(values.shape[0], mask.shape[0])
    _, b, width, n = values.shape
    seen = values.new_empty(passes, b, width + 1, n)
    seen[:, :, width] = 1.0
    if mask is None:
        torch.clamp(values, min=0, out=seen[:, :, :width])
    else:
        torch.mul(values.clamp_(min=0), mask, out=seen[:, :, :width])
    return seen


def scores_of(snapshots: Sequence[Sequence[np.ndarray]], x: Tensor) -> Tensor:
    """Scores [s, n] of snapshots, in float64, where the order of rows leaves no trace."""
    half = len(snapshots[0]) // 2
    parts = [torch.from_numpy(np.stack(part)).double() for part in zip(*snapshots, strict=True)]
    size = max(64, _AT_ONCE // (2 * parts[0].shape[0] * parts[0].shape[1]))
    found = []
    for portion in x.double().split(size):
        values = portion.T
        for weight, bias in zip(parts[:half], parts[half:], strict=True):
            values = (weight @ values).add_(bias)
            values = values.clamp_(min=0) if weight is not parts[half - 1] else values
        found.append(values.squeeze(1))
    return torch.cat(found, 1)


def as_module(snapshot: Sequence[np.ndarray], dropout: float) -> nn.Sequential:
    """A network of its own, in evaluation mode."""
    half = len(snapshot) // 2
    layers: list[nn.Module] = []
    for weight, bias in zip(snapshot[:half], snapshot[half:], strict=True):
        linear = nn.Linear(weight.shape[1], weight.shape[0], device="meta")
        linear.weight = nn.Parameter(torch.from_numpy(weight.copy()))
        linear.bias = nn.Parameter(torch.from_numpy(bias[:, 0].copy()))
        layers += [nn.ReLU(), nn.Dropout(dropout), linear] if layers else [linear]
    return nn.Sequential(*layers).eval()
