"""How a member weighs its gradients: a solver without memory, or a strategy with a history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, final

import pandas as pd
import torch
from torch import Tensor

from apfex.history import History, StepRecord
from apfex.strategies import AdaptiveSwitch, Choice, StepView, Strategy, direction_length
from apfex_reproduction.baselines._course import Course
from apfex_reproduction.baselines._losses import Term

Solver = Callable[[Tensor], Tensor]
"""Gramian [m, m] of the scaled gradients in, weights [m] out."""
ScaleKind = Literal["mean", "largest", "range", "none"]
"""Mean loss at the start with dropout on (MAMO), the largest of a batch there with dropout off, the
value of an uninformed model and the largest possible gap, or nothing."""


@final
@dataclass(frozen=True, eq=False)
class Plan:
    """What a member minimises: the cross-entropy and its terms, and how they are weighed.

    With ``own_passes`` each loss gets a forward pass, and so a dropout, of its own. ``solver`` or
    ``strategy`` weighs the losses; neither: there is only one.
    """

    terms: tuple[Term, ...] = ()
    solver: Solver | None = None
    own_passes: bool = False
    strategy: Strategy | None = None
    scales: ScaleKind = "mean"
    steps: Literal["adam", "sgd"] = "adam"

    @property
    def n_losses(self) -> int:
        """The cross-entropy and the terms."""
        return 1 + len(self.terms)

    @property
    def compared(self) -> bool:
        """Whether there are losses to weigh, so that their scales matter."""
        return self.solver is not None or self.strategy is not None


@final
class Strategic:
    """Members of one strategy and one number of losses m, which decide together.

    Parameters
    ----------
    strategy : Strategy
    members : sequence of int
    n_losses : int
    window : int
        Steps over which the strategy sees means.
    seed : int
        Of its draws.
    """

    def __init__(
        self, strategy: Strategy, members: Sequence[int], n_losses: int, window: int, seed: int
    ) -> None:
        switching = isinstance(strategy, AdaptiveSwitch)
        names = [one.name for one in Choice] if switching else [type(strategy).__name__]
        self.strategy, self.members = strategy, list(members)
        self._course = Course(n_losses, window, len(members), names)
        self._seeds = torch.full((len(members),), seed % 2**31)
        self._last: Tensor | None = None

    @property
    def history(self) -> History:
        """What the strategy remembers."""
        return self._course.history

    def direction(self, losses: Tensor, gradients: Tensor) -> Tensor:
        """Weighted gradients [b, p] of scaled losses [b, m] and gradients [b, m, p]."""
        products = (gradients @ gradients.mT).double()
        values = losses.double()
        view = StepView(values, self.history, self.history.step, self._seeds, lambda: products)
        decision = self.strategy.decide(view)
        weights = decision.weights.to(gradients)
        direction = (weights.unsqueeze(1) @ gradients).squeeze(1)
        length = direction_length(products, decision.weights)
        if decision.blend is not None:
            direction = self._blended(direction, decision.blend.to(gradients))
            length = direction.double().norm(dim=1)
        choice = decision.choice
        self._course.record(
            StepRecord(
                losses=values,
                weights=decision.weights,
                choice=torch.zeros(len(values), dtype=torch.int64) if choice is None else choice,
                direction_norm=length,
                norms=view.norms,
            ),
            products,
        )
        return direction

    def windows(self) -> list[pd.DataFrame]:
        """The course of each member, a row per window."""
        return self._course.frames()

    def _blended(self, new: Tensor, share: Tensor) -> Tensor:
        """Mix with the last direction (PSS); the first one has none before it."""
        share = share.unsqueeze(1)
        mixed = new if self._last is None else share * new + (1 - share) * self._last
        self._last = mixed
        return mixed


@final
class Solved:
    """A member whose solver has no memory, and the course of its training.

    Parameters
    ----------
    solver : callable
    member, n_losses, window : int
        As for :class:`Strategic`.
    """

    def __init__(self, solver: Solver, member: int, n_losses: int, window: int) -> None:
        self.members = [member]
        self._solver = solver
        self._course = Course(n_losses, window, 1, ["min-norm"])

    def direction(self, losses: Tensor, gradients: Tensor) -> Tensor:
        """Weighted gradients [p] of scaled losses [m] and gradients [m, p]."""
        products = gradients @ gradients.T
        weights = self._solver(products)
        direction = weights @ gradients
        step = StepRecord(
            losses=losses.unsqueeze(0),
            weights=weights.unsqueeze(0),
            choice=torch.zeros(1, dtype=torch.int64),
            direction_norm=direction.double().norm().reshape(1),
        )
        self._course.record(step, products.double().unsqueeze(0))
        return direction

    def windows(self) -> list[pd.DataFrame]:
        """The course of the member, a row per window."""
        return self._course.frames()


def strategic_groups(plans: Sequence[Plan], window: int, seed: int) -> list[Strategic]:
    """The members that have a strategy, together where it is the same one."""
    found: dict[tuple, list[int]] = {}
    for member, plan in enumerate(plans):
        if plan.strategy is not None:
            found.setdefault((plan.strategy, plan.n_losses), []).append(member)
    return [
        Strategic(strategy, members, m, window, seed) for (strategy, m), members in found.items()
    ]
