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


@final
@dataclass(frozen=True, eq=False)
class Passed:
    """What a forward pass leaves behind: scores [q, b, n], inputs and slopes of the layers."""

    scores: Tensor
    inputs: Sequence[Tensor]
    """[n, d] of the first layer, [q, b, width, n] of the others."""
    slopes: Sequence[Tensor]
    """[q, b, width, n] of each hidden layer: 0 where it is off, else what dropout scales by."""


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
        starts += [torch.zeros(width, 1) for width in widths[1:]]
        flat = torch.cat([start.flatten() for start in starts])
        self.values = flat.repeat(n_members, 1)
        """All parameters [b, p]: the weights of all layers, then their biases."""
        self._shapes = [tuple(start.shape) for start in starts]
        parameters = self._views(self.values)
        self.weights, self.biases = parameters[: len(widths) - 1], parameters[len(widths) - 1 :]
        self.n_members, self._dropout = n_members, dropout

    def draw_masks(self, n: int, passes: int, generator: torch.Generator) -> list[Tensor]:
        """What each unit of n rows is multiplied by, [q, 1, width, n] for each hidden layer.

        Passes are drawn one after another, so that the first ones do not depend on their number.
        """
        widths = [bias.shape[1] for bias in self.biases[:-1]]
        keep = 1 - self._dropout
        drawn = [
            [torch.rand(width, n, generator=generator) < keep for width in widths]
            for _ in range(passes)
        ]
        return [torch.stack(layer).unsqueeze(1) / keep for layer in zip(*drawn, strict=True)]

    def forward(self, x: Tensor, masks: Sequence[Tensor] | None = None) -> Passed:
        """Scores of all members for rows [n, d]; with masks, q passes whose dropout differs."""
        first = self.weights[0].flatten(0, 1) @ x.T
        values = first.unflatten(0, (self.n_members, -1)).add_(self.biases[0]).unsqueeze(0)
        inputs, slopes = [x], []
        for layer in range(1, len(self.weights)):
            slope = (values > 0).to(x.dtype)
            slopes.append(slope if masks is None else slope * masks[layer - 1])
            inputs.append(values * slopes[-1])
            values = self.weights[layer] @ inputs[-1] + self.biases[layer]
        return Passed(values.squeeze(2), inputs, slopes)

    def pull_back(
        self, passed: Passed, cotangents: Tensor, members: Tensor, passes: Tensor
    ) -> Tensor:
        """Gradients [r, p] of r losses by the parameters, from those by the scores [r, n].

        Loss i is one of the scores of member ``members[i]`` in pass ``passes[i]``.
        """
        gradients = cotangents.new_empty(len(cotangents), self.values.shape[1])
        views = self._views(gradients)
        delta = cotangents.unsqueeze(1)  # [r, width, n]
        for layer in range(len(self.weights) - 1, -1, -1):
            views[len(self.weights) + layer].copy_(delta.sum(-1, keepdim=True))
            if layer == 0:
                views[0].copy_((delta.flatten(0, 1) @ passed.inputs[0]).view_as(views[0]))
                break
            torch.bmm(delta, passed.inputs[layer][passes, members].mT, out=views[layer])
            delta = self.weights[layer].mT[members] @ delta
            delta *= passed.slopes[layer - 1][passes, members]
        return gradients

    def snapshot(self, member: int) -> list[np.ndarray]:
        """Copies of the weights and biases of a member."""
        return [view[0].numpy().copy() for view in self._views(self.values[member : member + 1])]

    def _views(self, flat: Tensor) -> list[Tensor]:
        """Rows [r, p] as weights [r, out, in] and biases [r, out, 1]; nothing is copied."""
        parts = flat.split([o * i for o, i in self._shapes], 1)
        return [part.unflatten(1, shape) for part, shape in zip(parts, self._shapes, strict=True)]


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
