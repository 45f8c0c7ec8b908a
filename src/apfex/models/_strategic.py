"""Strategies steer trees as they steer networks: the scores are what is trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

import torch
from torch import Tensor

from apfex.constraints import Constraint
from apfex.history import History
from apfex.optimizer import APFEx
from apfex.strategies import Strategy

Losses = Callable[[Tensor], Sequence[Tensor]]
"""From scores [n] or [n, c] to the losses, the task's first."""
Constraints = Callable[[Tensor], Sequence[Constraint]]
"""From scores to the constraints of a step."""


@final
class Strategic:
    """Asks strategies where the scores of members are to move.

    Parameters
    ----------
    losses : callable
        From the scores of one member to its losses, scalars; the task's first.
    strategies : sequence of b strategies
        One for each member.
    constraints : sequence of b callables, optional
        From the scores of a member to its constraints, as "the dp gap is at most 0.03".
    window : int
        Rounds over which losses are averaged before a strategy looks at them.
    seed : int

    Attributes
    ----------
    histories : list of History
        What happened to each member.

    Notes
    -----
    Each round the objectives' gradients are taken at the scores and divided by their scales; the
    strategy weighs them, and active constraints bend the direction: :class:`~apfex.APFEx` with the
    scores as parameters. The result is given in units of the task's loss, so that all weight on
    the task is ordinary boosting. Start from a trunk: where all scores are alike the fairness
    gradients vanish, and a min-norm strategy goes nowhere.

    Examples
    --------
    >>> from apfex.objectives import CrossEntropy, FairnessLoss
    >>> from apfex.strategies import ConeProjection
    >>> y, g = torch.arange(40) % 2, torch.arange(40) // 2 % 2
    >>> task, dp = CrossEntropy(), FairnessLoss("dp")
    >>> steer = Strategic(lambda s: [task(s, y), dp(s, y, g)], [ConeProjection()])
    >>> steer(torch.randn(1, 40)).shape
    torch.Size([1, 40])
    """

    def __init__(
        self,
        losses: Losses,
        strategies: Sequence[Strategy],
        constraints: Sequence[Constraints] | None = None,
        *,
        window: int = 5,
        seed: int = 0,
    ) -> None:
        if constraints is not None and len(constraints) != len(strategies):
            raise ValueError(
                f"constraints must be one for each of the {len(strategies)} strategies, got "
                f"{len(constraints)}."
            )
        self._losses, self._constraints = losses, constraints or [None] * len(strategies)
        self._members = [
            _Member(strategy, window, seed + member) for member, strategy in enumerate(strategies)
        ]

    @property
    def histories(self) -> list[History | None]:
        """One for each member; None before the first round."""
        return [member.optimizer.history for member in self._members]

    def __call__(self, scores: Tensor) -> Tensor:
        """Slopes, shaped as the scores [b, n] or [b, n, c]."""
        if len(scores) != len(self._members):
            raise ValueError(
                f"scores must be of {len(self._members)} members, one for each strategy, got "
                f"{len(scores)}."
            )
        parts = zip(self._members, scores, self._constraints, strict=True)
        slopes = [member.slope(own, self._losses, bounds) for member, own, bounds in parts]
        return torch.stack(slopes)


class _Member:
    """An optimizer whose parameters are the scores of one member."""

    def __init__(self, strategy: Strategy, window: int, seed: int) -> None:
        self._scores = torch.nn.Parameter(torch.zeros(0))
        inner = torch.optim.SGD([self._scores], lr=1.0)
        self.optimizer = APFEx(inner, strategy, window=window, seed=seed)

    def slope(self, scores: Tensor, losses: Losses, constraints: Constraints | None) -> Tensor:
        self._scores.data = scores.detach().clone()
        found = list(losses(self._scores))
        bounds = None if constraints is None else constraints(self._scores)
        self.optimizer.backward(found, constraints=bounds)
        slope = self._scores.grad
        self.optimizer.step()  # counts the round; the scores are those of the trees
        scales = self.optimizer.scales
        if slope is None or scales is None:
            return torch.zeros_like(scores)
        return slope * float(scales.expand(len(found))[0])
