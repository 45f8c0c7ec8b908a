"""Populations of models that are trained as one tensor program; multilayer perceptrons."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol, Self, final

import torch
from torch import Tensor, nn

from apfex.memory import free_memory, in_bytes, is_too_much
from apfex.models._checkpoint import check_like

_Layer = tuple[Tensor, Tensor]
"""Weight [out, in] and bias [out]."""


class Population(Protocol):
    """b models of one shape that are evaluated and trained together."""

    n_members: int
    n_outputs: int

    def scores(self, x: Tensor) -> Tensor:
        """Return the scores of all members for rows [n, d]: [b, n], or [b, n, c]."""
        ...

    def parameters(self) -> list[nn.Parameter]:
        """Return what is trained, each of shape [b, ...]."""
        ...

    def values(self) -> list[Tensor]:
        """Return everything that training may change, each of shape [b, ...]; not copied."""
        ...

    def member(self, index: int) -> nn.Module:
        """Return a member as a module that shares nothing with the population."""
        ...

    def of_members(self, members: Tensor) -> Self:
        """Return some of the members as a population with values of its own."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return all that training may change, for a checkpoint."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken, in place."""
        ...

    def train(self, mode: bool = True) -> None:
        """Switch dropout and the like on or off."""
        ...


@final
class StackedMLP:
    """b multilayer perceptrons that are evaluated as one tensor program.

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
        Member i starts the same in a population of any size.

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
        _check_room(widths, hidden, n_members)
        starts = [_start(widths, seed * 1_000_003 + member) for member in range(n_members)]
        layers = list(zip(*starts, strict=True))
        self.n_members, self.n_outputs = n_members, n_outputs
        self._weights = [nn.Parameter(torch.stack([w for w, _ in layer])) for layer in layers]
        self._biases = [nn.Parameter(torch.stack([b for _, b in layer])) for layer in layers]

    def scores(self, x: Tensor) -> Tensor:
        """Return the scores of all members: [b, n], or [b, n, c] for several classes."""
        # Members share the input of the first layer, so for all of them it is one product. Rows are
        # the last axis, [b, width, n]: then no layer has to copy what the one before has made.
        first = torch.addmm(self._biases[0].reshape(-1, 1), self._weights[0].flatten(0, 1), x.T)
        outputs = first.unflatten(0, (self.n_members, -1))
        for weight, bias in zip(self._weights[1:], self._biases[1:], strict=True):
            outputs = torch.baddbmm(bias.unsqueeze(2), weight, outputs.relu())
        return outputs.squeeze(1) if outputs.shape[1] == 1 else outputs.mT

    def parameters(self) -> list[nn.Parameter]:
        """Return what is trained, each of shape [b, ...]."""
        return [*self._weights, *self._biases]

    def values(self) -> list[Tensor]:
        """Return everything that training may change: the parameters."""
        return [parameter.detach() for parameter in self.parameters()]

    def member(self, index: int) -> nn.Module:
        """Return a member as an ``nn.Sequential`` of linear layers and ReLUs."""
        layers: list[nn.Module] = []
        for weight, bias in zip(self._weights, self._biases, strict=True):
            linear = nn.Linear(weight.shape[2], weight.shape[1], device="meta")
            linear.weight = nn.Parameter(weight[index].detach().clone())
            linear.bias = nn.Parameter(bias[index].detach().clone())
            layers += [nn.ReLU(), linear] if layers else [linear]
        return nn.Sequential(*layers)

    def of_members(self, members: Tensor) -> StackedMLP:
        """Return some of the members as a population with values of its own."""
        taken = copy.copy(self)
        taken.n_members = len(members)
        taken._weights = [nn.Parameter(weight.detach()[members]) for weight in self._weights]
        taken._biases = [nn.Parameter(bias.detach()[members]) for bias in self._biases]
        return taken

    def state_dict(self) -> dict[str, Any]:
        """Return the parameters, for a checkpoint."""
        return {"values": self.values()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over parameters, in place."""
        take_over(self.values(), state["values"])

    def train(self, mode: bool = True) -> None:
        """Do nothing: there is no dropout to switch."""

    def to(self, device: torch.device) -> StackedMLP:
        """Move all members to a device."""
        for parameter in self.parameters():
            parameter.data = parameter.data.to(device)
        return self


_BYTES = 5 * 4
"""Of a parameter in training: itself, its gradient, two running means, and a copy."""


def _check_room(widths: Sequence[int], hidden: Sequence[int], n_members: int) -> None:
    """Refuse networks that cannot be held, before the first of them is drawn."""
    each = sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(widths))
    needed = _BYTES * n_members * each
    if is_too_much(needed):
        raise ValueError(
            f"hidden must be such that all networks fit into memory, got {tuple(hidden)}: "
            f"{n_members:,} networks of {each:,} numbers take {in_bytes(needed)} in training, and "
            f"{in_bytes(free_memory())} are free; use narrower layers, or fewer networks."
        )


def take_over(own: Sequence[Tensor], given: Sequence[Tensor]) -> None:
    """Give tensors the values of others of the same shapes, in place; others are refused."""
    check_like(given, own, "values")
    for tensor, value in zip(own, given, strict=True):
        tensor.copy_(value)


def _start(widths: Sequence[int], seed: int) -> list[_Layer]:
    """Draw the usual start of linear layers from a generator of its own."""
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for fan_in, fan_out in pairwise(widths):
        reach = max(fan_in, 1) ** -0.5
        weight, bias = (  # of float32, as inputs are, whatever torch is set to
            (2 * torch.rand(shape, generator=generator, dtype=torch.float32) - 1) * reach
            for shape in ((fan_out, fan_in), (fan_out,))
        )
        layers.append((weight, bias))
    return layers
