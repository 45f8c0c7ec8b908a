"""Populations: b models of one shape, trained as one tensor program."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Protocol, final

import torch
from torch import Tensor, nn

Factory = Callable[[int, int], nn.Module]
"""``(n_features, n_outputs) -> module``."""


class Population(Protocol):
    """b models that are evaluated and trained together."""

    n_members: int

    def scores(self, x: Tensor) -> Tensor:
        """Scores of all members for rows [n, d]: [b, n], or [b, n, c] for several classes."""
        ...

    def parameters(self) -> list[nn.Parameter]:
        """What is trained."""
        ...

    def member(self, index: int) -> nn.Module:
        """A member as a module of its own, which shares nothing with the population."""
        ...

    def train(self, mode: bool = True) -> None:
        """Switch dropout and the like on or off."""
        ...


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
        self.n_members = n_members
        self._widths = (n_features, *hidden, n_outputs)
        starts = [self._start(seed * 1_000_003 + member) for member in range(n_members)]
        # The first layer is stored [d, b * h]: members share its input, so it is one product.
        first = torch.cat([start[0][0].T for start in starts], 1)
        self._weights = [nn.Parameter(first)]
        self._biases = [nn.Parameter(torch.cat([start[0][1] for start in starts]))]
        for layer in range(1, len(self._widths) - 1):
            self._weights.append(nn.Parameter(torch.stack([s[layer][0].T for s in starts])))
            self._biases.append(nn.Parameter(torch.stack([s[layer][1] for s in starts])))

    def scores(self, x: Tensor) -> Tensor:
        """Scores of all members: [b, n], or [b, n, c] for several classes."""
        first = torch.addmm(self._biases[0], x, self._weights[0])
        outputs = first.view(len(x), self.n_members, -1).transpose(0, 1)
        for weight, bias in zip(self._weights[1:], self._biases[1:], strict=True):
            outputs = torch.baddbmm(bias.unsqueeze(1), outputs.relu(), weight)
        return outputs.squeeze(-1) if self._widths[-1] == 1 else outputs

    def parameters(self) -> list[nn.Parameter]:
        """What is trained."""
        return [*self._weights, *self._biases]

    def member(self, index: int) -> nn.Module:
        """A member as ``nn.Sequential`` of linear layers and ReLUs."""
        layers: list[nn.Module] = []
        for depth, (weight, bias) in enumerate(self._member_layers(index)):
            layers += [nn.ReLU()] if depth else []
            linear = nn.Linear(weight.shape[1], weight.shape[0], device=weight.device)
            with torch.no_grad():
                linear.weight.copy_(weight)
                linear.bias.copy_(bias)
            layers.append(linear)
        return nn.Sequential(*layers)

    def train(self, mode: bool = True) -> None:
        """Nothing to switch: there is no dropout."""

    def to(self, device: torch.device) -> StackedMLP:
        """Move all members to a device."""
        for parameter in self.parameters():
            parameter.data = parameter.data.to(device)
        return self

    def _start(self, seed: int) -> list[tuple[Tensor, Tensor]]:
        """The usual start of linear layers, from a generator of its own."""
        generator = torch.Generator().manual_seed(seed)
        layers = []
        for fan_in, fan_out in zip(self._widths[:-1], self._widths[1:], strict=True):
            reach = max(fan_in, 1) ** -0.5
            weight = (2 * torch.rand(fan_out, fan_in, generator=generator) - 1) * reach
            layers.append((weight, (2 * torch.rand(fan_out, generator=generator) - 1) * reach))
        return layers

    def _member_layers(self, index: int) -> list[tuple[Tensor, Tensor]]:
        width = self._widths[1]
        columns = slice(index * width, (index + 1) * width)
        layers = [(self._weights[0][:, columns].T, self._biases[0][columns])]
        for weight, bias in zip(self._weights[1:], self._biases[1:], strict=True):
            layers.append((weight[index].T, bias[index]))
        return layers


@final
class StackedModules:
    """b modules of a user's own class, each kept as it is.

    They are evaluated one after another, so that layers with a state of their own (batch norm)
    work as well.

    Examples
    --------
    >>> population = StackedModules(nn.Linear, 3, 1, n_members=2, seed=0)
    >>> population.scores(torch.zeros(5, 3)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, factory: Factory, n_features: int, n_outputs: int, n_members: int, seed: int
    ) -> None:
        self.n_members = n_members
        self._members = []
        for member in range(n_members):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed * 1_000_003 + member)
                made = factory(n_features, n_outputs)
            if not isinstance(made, nn.Module):
                raise TypeError(
                    "factory must make an nn.Module of (n_features, n_outputs), got "
                    f"{type(made).__name__}."
                )
            self._members.append(made)
        self._n_outputs = n_outputs

    def scores(self, x: Tensor) -> Tensor:
        """Scores of all members: [b, n], or [b, n, c] for several classes."""
        outputs = torch.stack([member(x) for member in self._members])
        shape, wanted = outputs.shape[1:], (len(x), self._n_outputs)
        if tuple(shape) != wanted and not (self._n_outputs == 1 and shape == wanted[:1]):
            raise ValueError(
                f"factory must make modules with outputs of shape {list(wanted)}, got "
                f"{list(shape)}."
            )
        return outputs.view(self.n_members, -1) if self._n_outputs == 1 else outputs

    def parameters(self) -> list[nn.Parameter]:
        """What is trained."""
        return [parameter for member in self._members for parameter in member.parameters()]

    def member(self, index: int) -> nn.Module:
        """A copy of a member."""
        return copy.deepcopy(self._members[index])

    def train(self, mode: bool = True) -> None:
        """Switch dropout and the like on or off."""
        for member in self._members:
            member.train(mode)

    def to(self, device: torch.device) -> StackedModules:
        """Move all members to a device."""
        for member in self._members:
            member.to(device)
        return self
