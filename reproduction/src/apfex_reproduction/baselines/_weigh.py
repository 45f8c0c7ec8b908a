"""How a member weighs its gradients: a solver without memory, or a strategy with a history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, final

import pandas as pd
import torch
from torch import Tensor

from apfex.history import History, StepRecord
from apfex.strategies import AdaptiveSwitch, Choice, Decision, StepView, Strategy
from apfex_reproduction.baselines._course import Course
from apfex_reproduction.baselines._losses import Term

Solver = Callable[[Tensor], Tensor]
"""Gramians [b, m, m] of the scaled gradients in, weights [b, m] out."""
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


class Weigher(Protocol):
    """Weighs the losses of b members, step by step, and keeps the course of their training."""

    def decide(self, losses: Tensor, products: Tensor) -> Decision:
        """Weights of scaled losses [b, m], from inner products [b, m, m] of their gradients."""
        ...

    def record(self, lengths: Tensor) -> None:
        """End the step that was decided; ``lengths`` [b] of what the members moved along."""
        ...

    def windows(self) -> list[pd.DataFrame]:
        """The course of each member, a row per window."""
        ...


@final
class Strategic:
    """Members of one strategy and one number of losses m, which decide together.

    Parameters
    ----------
    strategy : Strategy
    seeds : sequence of int
        Of the draws of each member.
    n_losses : int
    window : int
        Steps over which the strategy sees means.
    """

    def __init__(
        self, strategy: Strategy, seeds: Sequence[int], n_losses: int, window: int
    ) -> None:
        switching = isinstance(strategy, AdaptiveSwitch)
        names = [one.name for one in Choice] if switching else [type(strategy).__name__]
        self.strategy = strategy
        self._course = Course(n_losses, window, len(seeds), names)
        self._seeds = torch.tensor([seed % 2**31 for seed in seeds])
        self._decided: tuple[StepView, Decision]

    @property
    def history(self) -> History:
        """What the strategy remembers."""
        return self._course.history

    def decide(self, losses: Tensor, products: Tensor) -> Decision:
        """Ask the strategy."""
        products, values = products.double(), losses.double()
        view = StepView(values, self.history, self.history.step, self._seeds, lambda: products)
        self._decided = view, self.strategy.decide(view)
        return self._decided[1]

    def record(self, lengths: Tensor) -> None:
        """End the step."""
        view, decision = self._decided
        choice = decision.choice
        step = StepRecord(
            losses=view.losses,
            weights=decision.weights,
            choice=torch.zeros(len(lengths), dtype=torch.int64) if choice is None else choice,
            direction_norm=lengths,
            norms=view.norms,
        )
        self._course.record(step, view.gramian)

    def windows(self) -> list[pd.DataFrame]:
        """The course of each member."""
        return self._course.frames()


@final
class Solved:
    """Members of one solver, which has no memory, and one number of losses.

    Parameters
    ----------
    solver : callable
    n_members, n_losses, window : int
        As for :class:`Strategic`.
    """

    def __init__(self, solver: Solver, n_members: int, n_losses: int, window: int) -> None:
        self._solver = solver
        self._course = Course(n_losses, window, n_members, ["min-norm"])
        self._decided: tuple[Tensor, Tensor, Tensor]

    def decide(self, losses: Tensor, products: Tensor) -> Decision:
        """Ask the solver."""
        weights = self._solver(products)
        self._decided = losses, weights, products
        return Decision(weights)

    def record(self, lengths: Tensor) -> None:
        """End the step."""
        losses, weights, products = self._decided
        choice = torch.zeros(len(lengths), dtype=torch.int64)
        step = StepRecord(losses=losses, weights=weights, choice=choice, direction_norm=lengths)
        self._course.record(step, products.double())

    def windows(self) -> list[pd.DataFrame]:
        """The course of each member."""
        return self._course.frames()


def weighers_of(
    plans: Sequence[Plan], seeds: Sequence[int], window: int
) -> list[tuple[Tensor, Weigher]]:
    """Who weighs the losses of which members; those of one strategy or solver decide together."""
    found: dict[tuple, list[int]] = {}
    for member, plan in enumerate(plans):
        if plan.compared:
            found.setdefault((plan.strategy, plan.solver, plan.n_losses), []).append(member)
    made: list[tuple[Tensor, Weigher]] = []
    for (strategy, solver, m), members in found.items():
        own = [seeds[member] for member in members]
        weigher = (
            Solved(solver, len(own), m, window)
            if strategy is None
            else Strategic(strategy, own, m, window)
        )
        made.append((torch.tensor(members), weigher))
    return made
