"""The seam: what a strategy sees, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, final, runtime_checkable

import torch
from torch import Tensor

from apfex.history import History


@final
@dataclass(frozen=True, eq=False)
class StepView:
    """All that a strategy is told. It never sees the model or its parameters.

    Attributes
    ----------
    losses : Tensor of shape [..., m]
        Losses over their scales, detached.
    history : History
        Earlier losses, weights and choices; read-only.
    step : int
        With ``seeds`` it fixes every random draw.
    seeds : int64 Tensor of shape [...]
    compute_gramian : callable
        Returns the Gramian of the scaled gradients; called at most once, and only if asked for.

    Examples
    --------
    >>> view = StepView.of(torch.eye(2), torch.ones(2))
    >>> view.gramian
    tensor([[1., 0.],
            [0., 1.]])
    """

    losses: Tensor
    history: History
    step: int
    seeds: Tensor
    compute_gramian: Callable[[], Tensor]

    @staticmethod
    def of(
        gramian: Tensor,
        losses: Tensor,
        history: History | None = None,
        step: int = 0,
        seeds: Tensor | None = None,
    ) -> StepView:
        """A view with a known Gramian [..., m, m]; without a history it is the first step."""
        members = losses.shape[:-1]
        if history is None:
            history = History(losses.shape[-1], window=1, members=members, device=losses.device)
        seeds = torch.zeros(members, dtype=torch.int64) if seeds is None else seeds
        return StepView(losses, history, step, seeds, lambda: gramian)

    @cached_property
    def gramian(self) -> Tensor:
        """Inner products of the scaled gradients, shape [..., m, m]."""
        return self.compute_gramian()

    @property
    def has_gramian(self) -> bool:
        """Whether anybody has asked for the Gramian."""
        return "gramian" in self.__dict__

    @cached_property
    def norms(self) -> Tensor:
        """Lengths of the scaled gradients, shape [..., m]."""
        return self.gramian.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt()


@final
@dataclass(frozen=True, eq=False)
class Decision:
    """What a strategy answers.

    Attributes
    ----------
    weights : Tensor of shape [..., m]
        Non-negative; the direction is the weighted sum of the scaled gradients.
    blend : Tensor of shape [...] or None
        Share of the new direction, the rest is the last one; None: all of it.
    choice : int64 Tensor of shape [...] or None
        Which of several strategies decided.

    Examples
    --------
    >>> Decision(torch.tensor([0.5, 0.5])).blend is None
    True
    """

    weights: Tensor
    blend: Tensor | None = None
    choice: Tensor | None = None


@runtime_checkable
class Strategy(Protocol):
    """Gramian and history in, weights out."""

    def decide(self, view: StepView) -> Decision:
        """Weigh the objectives of one step."""
        ...


def equal_weights(view: StepView) -> Tensor:
    """The same weight for every objective."""
    return torch.full_like(view.losses, 1.0 / view.losses.shape[-1])
