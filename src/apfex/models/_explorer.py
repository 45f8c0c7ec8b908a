"""The explorer: which way each member of a population goes, by its aim, a strategy and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from apfex.constraints import constraint_step
from apfex.history import History, StepRecord
from apfex.models._aims import Aims
from apfex.solvers import min_norm
from apfex.strategies import (
    AdaptiveSwitch,
    Choice,
    Decision,
    StepView,
    Strategy,
    active_min_norm,
    direction_length,
)

_NOT_ASKED = -1e6
"""A descent that every direction has."""


@final
class Explorer:
    """Directions of all members, from the gradients of the error and of the gaps.

    First every member goes where its aim points (``arrive``), then strategies decide
    (``explore``): they see losses and gradients weighted by the member's aim, so that equal weights
    are the aim itself. At every step members with bounds are bent by the constraint step of
    Algorithm 1: the nearest direction along which the gaps above their bounds fall.

    Parameters
    ----------
    aims : Aims
    strategies : sequence of Strategy
        Members are dealt to them in turn.
    window : int
        Steps over which strategies average losses.
    seed : int

    Attributes
    ----------
    trace : History
        Every step: error and gaps, their weights, which strategy decided, the length of the
        direction, omega (0: Pareto-stationary) and by how much bounds were missed.

    Examples
    --------
    >>> aims = Aims(("dp",), torch.tensor([[0.0], [3.0]]))
    >>> explorer = Explorer(aims, [AdaptiveSwitch()], window=4)
    >>> gradients = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]] * 2)
    >>> explorer.arrive(torch.ones(2, 2), gradients, 0.0)
    tensor([[1., 0.],
            [1., 3.]])
    """

    def __init__(
        self, aims: Aims, strategies: Sequence[Strategy], window: int, seed: int = 0
    ) -> None:
        weights = aims.weights
        b, device = aims.n_members, weights.device
        m = 1 + weights.shape[1]
        self._aims, self._strategies = aims, tuple(strategies)
        self._dealt = torch.arange(b, device=device) % len(self._strategies)
        self._preferences = torch.cat([weights.new_ones(b, 1), weights], 1)
        self._bounded = aims.bounded
        self._seeds = torch.arange(b) + 1_000_003 * seed
        names = [_choice_names(strategy) for strategy in self._strategies]
        self._offsets = [1 + sum(map(len, names[:place])) for place in range(len(names))]
        self._history = History(m, window, (b,), device=device)
        self._last: Tensor | None = None
        self._gramian: Tensor | None = None
        flat = ["aim", *(name for found in names for name in found)]
        self.trace = History(m, 1, (b,), trace=True, choice_names=flat, device=device)

    def arrive(self, losses: Tensor, gradients: Tensor, done: float) -> Tensor:
        """Return directions [b, p] towards the aims.

        Parameters
        ----------
        losses : Tensor of shape [b, m]
            The error and the gaps.
        gradients : Tensor of shape [b, m, p]
        done : float
            How much of the search is done, from 0 to 1, by which bounds are swept.
        """
        scaled, view = self._view(losses, gradients)
        decision = Decision(torch.ones_like(self._preferences) / losses.shape[1])
        choice = torch.zeros(len(losses), dtype=torch.int64, device=losses.device)
        return self._directions(losses, gradients, scaled, view, decision, choice, done)

    def explore(self, losses: Tensor, gradients: Tensor, done: float) -> Tensor:
        """Return directions [b, p] that the strategies decide; arguments as for ``arrive``."""
        scaled, view = self._view(losses, gradients)
        decision, choice = self._decide(view)
        return self._directions(losses, gradients, scaled, view, decision, choice, done)

    def _view(self, losses: Tensor, gradients: Tensor) -> tuple[Tensor, StepView]:
        """What strategies see: all of it in units of the member's own aim."""
        scaled = gradients * self._preferences.unsqueeze(2)
        weighted = (losses.nan_to_num(0.0, 0.0) * self._preferences).double()

        def gramian() -> Tensor:
            return (scaled @ scaled.mT).double()

        return scaled, StepView(weighted, self._history, self._history.step, self._seeds, gramian)

    def _decide(self, view: StepView) -> tuple[Decision, Tensor]:
        """Decisions of the strategies, each for its own members, and who decided [b]."""
        weights, blend = torch.zeros_like(view.losses), torch.ones_like(view.losses[:, 0])
        own_choice = torch.zeros_like(self._dealt)
        choice = own_choice
        for place, strategy in enumerate(self._strategies):
            own = self._dealt == place
            found = strategy.decide(view)
            weights = torch.where(own.unsqueeze(1), found.weights, weights)
            if found.blend is not None:
                blend = torch.where(own, found.blend, blend)
            number = torch.zeros_like(choice) if found.choice is None else found.choice
            own_choice = torch.where(own, number, own_choice)
            choice = torch.where(own, number + self._offsets[place], choice)
        return Decision(weights, blend, own_choice), choice

    def _directions(
        self,
        losses: Tensor,
        gradients: Tensor,
        scaled: Tensor,
        view: StepView,
        decision: Decision,
        choice: Tensor,
        done: float,
    ) -> Tensor:
        weights = decision.weights.to(scaled) * losses.shape[1]  # equal weights are the aim
        direction = (weights.unsqueeze(1) @ scaled).squeeze(1)
        if decision.blend is not None:
            if self._last is not None:
                share = decision.blend.to(direction).unsqueeze(1)
                direction = torch.lerp(self._last, direction, share)
            self._last = direction
            self._history.record(
                StepRecord(
                    view.losses, weights, decision.choice, direction.norm(dim=1), norms=view.norms
                )
            )
        direction, slack = self._bend(direction, losses, gradients, done)
        self._record(losses, gradients, weights * self._preferences, choice, direction, slack)
        return direction

    def _bend(
        self, direction: Tensor, losses: Tensor, gradients: Tensor, done: float
    ) -> tuple[Tensor, Tensor | None]:
        """Directions along which the gaps that are above their bounds fall."""
        own = self._bounded
        if not len(own):
            return direction, None
        gaps, slopes = losses[own, 1:], gradients[own, 1:]
        excess = gaps - self._aims.bounds(losses[0, 1:], done)[own].to(gaps)
        rows = torch.cat([direction[own].unsqueeze(1), slopes], 1)
        needed = torch.where(excess > 0, excess, _NOT_ASKED).nan_to_num(_NOT_ASKED, _NOT_ASKED)
        bent = constraint_step((rows @ rows.mT).double(), needed.double())
        direction = direction.clone()
        direction[own] += (bent.multipliers.to(slopes).unsqueeze(1) @ slopes).squeeze(1)
        slack = torch.full_like(losses[:, 0], torch.nan, dtype=torch.float64)
        slack[own] = excess.amax(1).clamp_min(0).double()
        return direction, slack

    def _record(
        self,
        losses: Tensor,
        gradients: Tensor,
        weights: Tensor,
        choice: Tensor,
        direction: Tensor,
        slack: Tensor | None,
    ) -> None:
        gramian = (gradients @ gradients.mT).double()
        raw = StepView.of(gramian, losses.double(), self.trace)
        self.trace.record(
            StepRecord(
                losses.nan_to_num(torch.nan, torch.nan),
                weights,
                choice,
                direction.norm(dim=1),
                norms=raw.norms,
                omega=direction_length(gramian, min_norm(gramian)),
                omega_active=direction_length(gramian, active_min_norm(raw)),
                slack=slack,
            )
        )


def _choice_names(strategy: Strategy) -> list[str]:
    if isinstance(strategy, AdaptiveSwitch):
        return [choice.name for choice in Choice]
    return [type(strategy).__name__]
