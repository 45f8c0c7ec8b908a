"""Populations: b models of one shape, trained as one tensor program."""

from __future__ import annotations

from typing import Protocol, Self

from torch import Tensor, nn


class Population(Protocol):
    """b models that are evaluated and trained together."""

    n_members: int

    def scores(self, x: Tensor) -> Tensor:
        """Scores of all members for rows [n, d]: [b, n], or [b, n, c] for several classes."""
        ...

    def parameters(self) -> list[nn.Parameter]:
        """What is trained, each of shape [b, ...]."""
        ...

    def values(self) -> list[Tensor]:
        """All that may change in training, each of shape [b, ...]; not copied."""
        ...

    def member(self, index: int) -> nn.Module:
        """A member as a module of its own, which shares nothing with the population."""
        ...

    def of_members(self, members: Tensor) -> Self:
        """Some of the members, as a population whose values are its own."""
        ...

    def train(self, mode: bool = True) -> None:
        """Switch dropout and the like on or off."""
        ...
