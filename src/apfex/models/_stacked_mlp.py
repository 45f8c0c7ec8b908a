"""Multilayer perceptrons in a stack."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import final

import torch
from torch import Tensor, nn

_Layer = tuple[Tensor, Tensor]
"""Weight [out, in] and bias [out]."""


@final
class StackedMLP:
    """b multilayer perceptrons whose first layers are one matrix product.

    Parameters
    ----------
    n_features : int
        d.
    n_outputs : int
        1 for two classes, else c.
    hidden : sequence of int
        Widths of the hidden layers; empty for a linear model.
    n_members : int
        b.
    seed : int
        Member i of seed s starts the same whatever the size of the population.

    Examples
    --------
    >>> population = StackedMLP(3, 1, (4,), n_members=2, seed=0)
    >>> population.scores(torch.zeros(5, 3)).shape
    torch.Size([2, 5])
    >>> population.member(1)(torch.zeros(5, 3)).shape
    torch.Size([5, 1])
    """

    def __init__(
        self, n_features: int, n_outputs: int, hidden: Sequence[int], n_members: int, seed: int
    ) -> None:
        widths = (n_features, *hidden, n_outputs)
        self._stack([_start(widths, seed * 1_000_003 + member) for member in range(n_members)])

    @classmethod
    def around(cls, module: nn.Module, n_members: int, n_outputs: int) -> StackedMLP:
        """A population whose members all start as a fitted module.

        Parameters
        ----------
        module : nn.Sequential
            Linear layers, each with a bias, and a ReLU between two of them. It is not changed.
        n_members : int
        n_outputs : int
            1 for two classes, else c.

        Examples
        --------
        >>> fitted = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
        >>> StackedMLP.around(fitted, n_members=2, n_outputs=1).scores(torch.zeros(5, 3)).shape
        torch.Size([2, 5])
        """
        population = cls.__new__(cls)
        population._stack([_layers_of(module, n_outputs)] * n_members)
        return population

    def scores(self, x: Tensor) -> Tensor:
        """Scores of all members: [b, n], or [b, n, c] for several classes."""
        # Members share the input of the first layer, so for all of them it is one product. Rows are
        # the last axis, [b, width, n]: then no layer has to copy what the one before has made.
        first = torch.addmm(self._biases[0].reshape(-1, 1), self._weights[0].flatten(0, 1), x.T)
        outputs = first.unflatten(0, (self.n_members, -1))
        for weight, bias in zip(self._weights[1:], self._biases[1:], strict=True):
            outputs = torch.baddbmm(bias.unsqueeze(2), weight, outputs.relu())
        return outputs.squeeze(1) if outputs.shape[1] == 1 else outputs.mT

    def parameters(self) -> list[nn.Parameter]:
        """What is trained, each of shape [b, ...]."""
        return [*self._weights, *self._biases]

    def values(self) -> list[Tensor]:
        """All that may change in training: the parameters."""
        return [parameter.detach() for parameter in self.parameters()]

    def member(self, index: int) -> nn.Module:
        """A member as ``nn.Sequential`` of linear layers and ReLUs."""
        layers: list[nn.Module] = []
        for weight, bias in zip(self._weights, self._biases, strict=True):
            linear = nn.Linear(weight.shape[2], weight.shape[1], device="meta")
            linear.weight = nn.Parameter(weight[index].detach().clone())
            linear.bias = nn.Parameter(bias[index].detach().clone())
            layers += [nn.ReLU(), linear] if layers else [linear]
        return nn.Sequential(*layers)

    def of_members(self, members: Tensor) -> StackedMLP:
        """Some of the members, as a population whose values are its own."""
        taken = copy.copy(self)
        taken.n_members = len(members)
        taken._weights = [nn.Parameter(weight.detach()[members]) for weight in self._weights]
        taken._biases = [nn.Parameter(bias.detach()[members]) for bias in self._biases]
        return taken

    def train(self, mode: bool = True) -> None:
        """Nothing to switch: there is no dropout."""

    def to(self, device: torch.device) -> StackedMLP:
        """Move all members to a device."""
        for parameter in self.parameters():
            parameter.data = parameter.data.to(device)
        return self

    def _stack(self, starts: Sequence[Sequence[_Layer]]) -> None:
        self.n_members = len(starts)
        layers = list(zip(*starts, strict=True))
        self._weights = [nn.Parameter(torch.stack([w for w, _ in layer])) for layer in layers]
        self._biases = [nn.Parameter(torch.stack([b for _, b in layer])) for layer in layers]


def _start(widths: Sequence[int], seed: int) -> list[_Layer]:
    """The usual start of linear layers, from a generator of its own."""
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for fan_in, fan_out in pairwise(widths):
        reach = max(fan_in, 1) ** -0.5
        weight = (2 * torch.rand(fan_out, fan_in, generator=generator) - 1) * reach
        layers.append((weight, (2 * torch.rand(fan_out, generator=generator) - 1) * reach))
    return layers


def _layers_of(module: nn.Module, n_outputs: int) -> list[_Layer]:
    """Weights and biases of a sequence of linear layers with ReLUs between them."""
    if not isinstance(module, nn.Sequential):
        raise TypeError(
            f"module must be an nn.Sequential, got {type(module).__name__}; use "
            "StackedModules.around for others."
        )
    layers = []
    for place, layer in enumerate(module):
        wanted = nn.ReLU if place % 2 else nn.Linear
        if type(layer) is not wanted:
            raise ValueError(
                f"module must have a {wanted.__name__} at place {place}, got "
                f"{type(layer).__name__}; use StackedModules.around for other layers."
            )
        if isinstance(layer, nn.Linear):
            if layer.bias is None:
                raise ValueError(f"module must have a bias at place {place}, got none.")
            layers.append((layer.weight.detach(), layer.bias.detach()))
    if len(module) % 2 == 0:
        last = type(module[-1]).__name__ if len(module) else "no layers"
        raise ValueError(f"module must end with a Linear, got {last}.")
    if len(layers[-1][1]) != n_outputs:
        raise ValueError(f"module must have {n_outputs} outputs, got {len(layers[-1][1])}.")
    return layers
