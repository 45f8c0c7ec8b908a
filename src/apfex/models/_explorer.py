"""The explorer: which way each member of a population goes, by its aim, a strategy and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
_MOST_MISSED = 1.0
"""Up to which what bounds were missed by adds up."""


@final
class Explorer:
    """Directions of all members, from the gradients of the error and of the gaps.

    First every member goes where its aim points (``arrive``), then strategies decide
    (``explore``): they see losses and gradients weighted by the member's aim, so that equal weights
    are the aim itself, and their weights are given the same sum. At every step members with bounds
    are bent by the constraint step of Algorithm 1: the nearest direction along which the gaps above
    their bounds fall.

    Parameters
    ----------
    aims : Aims
    strategies : sequence of Strategy
        Members are dealt to them in turn.
    window : int
        Steps over which strategies average losses.
    seed : int
    trace_window : int
        Steps of which the trace keeps the means; 1 for every single step, 0 for no trace at all.
    integral : float
        Share of what a gap exceeds its bound by that is added to what is asked of later steps:
        what falls too slowly is asked for more and more, as where a step by the scores comes to
        less in the models.
    copies : int
        How many populations of the same aims there are, one after the other, as of several tables
        that are searched in step. They do not touch each other.

    Attributes
    ----------
    trace : History
        Error and gaps, their weights (with what the constraint step adds), which strategy decided,
        the length of the direction, omega (0: Pareto-stationary) and by how much bounds were
        missed. NaN for members that have stopped.

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
        self,
        aims: Aims,
        strategies: Sequence[Strategy],
        window: int,
        seed: int = 0,
        trace_window: int = 1,
        integral: float = 0.0,
        copies: int = 1,
    ) -> None:
        place = torch.arange(aims.n_members).repeat(copies)
        aims = aims if copies == 1 else aims.of_members(place.to(aims.weights.device))
        weights = aims.weights
        b, device = aims.n_members, weights.device
        m = 1 + weights.shape[1]
        self._aims, self._strategies = aims, tuple(strategies)
        self._dealt = place.to(device) % len(self._strategies)
        self._plain = (torch.arange(b) - place).to(device)  # the first of each population
        self._preferences = torch.cat([weights.new_ones(b, 1), weights], 1).double()
        self._bounded = aims.bounded
        self._seeds = place + 1_000_003 * seed
        names = [_choice_names(strategy) for strategy in self._strategies]
        self._offsets = [1 + sum(map(len, names[:place])) for place in range(len(names))]
        self._history = History(m, window, (b,), device=device)
        self._last: Tensor | None = None
        self._known = torch.zeros_like(self._preferences)
        self._integral, self._missed = integral, torch.zeros_like(self._preferences[:, 1:])
        flat = ["aim", *(name for found in names for name in found)]
        self._traces, window = trace_window > 0, max(1, trace_window)
        every = trace_window == 1
        self.trace = History(m, window, (b,), trace=every, choice_names=flat, device=device)

    @property
    def has_bounds(self) -> bool:
        """Whether there is a member that has to stay within bounds."""
        return len(self._bounded) > 0

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
        weights = self.weigh(losses, gradients @ gradients.mT, done, explores=False)
        return (weights.to(gradients).unsqueeze(1) @ gradients).squeeze(1)

    def explore(self, losses: Tensor, gradients: Tensor, done: float) -> Tensor:
        """Return directions [b, p] that the strategies decide; arguments as for ``arrive``."""
        weights = self.weigh(losses, gradients @ gradients.mT, done, explores=True)
        return (weights.to(gradients).unsqueeze(1) @ gradients).squeeze(1)

    def weigh(
        self,
        losses: Tensor,
        gramian: Tensor,
        done: float,
        *,
        explores: bool,
        gaps: Tensor | None = None,
        members: Tensor | None = None,
    ) -> Tensor:
        """Return the weights [b, m] of the gradients whose sum is the direction.

        Parameters
        ----------
        losses : Tensor of shape [b, m]
        gramian : Tensor of shape [b, m, m]
            Inner products of their gradients, in whichever space.
        done : float
        explores : bool
            Whether strategies decide, or aims.
        gaps : Tensor of shape [b, m - 1], optional
            What is compared with the bounds, as hard gaps; the losses by default.
        members : int64 Tensor of shape [b], optional
            Numbers of the members that still move, where others have stopped.
        """
        losses, gramian = losses.double(), gramian.double()
        seen = losses if gaps is None else torch.cat([losses[:, :1], gaps.double()], 1)
        if members is not None:
            losses, gramian = (self._spread(part, members) for part in (losses, gramian))
            seen = self._known.index_copy(0, members, seen)
        self._known = seen.nan_to_num(torch.nan, 0.0)  # a gap that nobody can tell
        weights, choice = self._weigh(losses.nan_to_num(0.0, 0.0), gramian, explores)
        multipliers, slack = self._bend(weights, gramian, done)
        bent = torch.cat([weights[:, :1], weights[:, 1:] + multipliers], 1)
        if self._traces:
            self._record(losses, gramian, bent, choice, slack, members)
        return bent if members is None else bent[members]

    def _spread(self, part: Tensor, members: Tensor) -> Tensor:
        """Of all members; zeros for those that have stopped."""
        everyone = part.new_zeros(len(self._dealt), *part.shape[1:])
        return everyone.index_copy(0, members, part)

    def _weigh(self, losses: Tensor, gramian: Tensor, explores: bool) -> tuple[Tensor, Tensor]:
        """Weights [b, m] by aims or strategies, and who decided [b]."""
        scales = self._preferences
        if not explores:
            return scales, torch.zeros_like(self._dealt)
        # Strategies see all of it in units of the member's own aim.
        scaled = gramian * scales.unsqueeze(2) * scales.unsqueeze(1)
        history = self._history
        view = StepView(losses * scales, history, history.step, self._seeds, lambda: scaled)
        decision, choice = self._decide(view)
        weights = self._as_aims(decision.weights)
        if self._last is not None and decision.blend is not None:
            weights = torch.lerp(self._last, weights, decision.blend.unsqueeze(1))
        self._last = weights
        length = direction_length(scaled, weights)
        history.record(StepRecord(view.losses, weights, decision.choice, length, norms=view.norms))
        return weights * scales, choice

    def _as_aims(self, weights: Tensor) -> Tensor:
        """Weights with the sum that equal ones have: these are the aim itself."""
        active = (self._preferences > 0).to(weights)
        total = (weights * active).sum(1, keepdim=True)
        return torch.where(total > 0, weights * active.sum(1, keepdim=True) / total, active)

    def _decide(self, view: StepView) -> tuple[Decision, Tensor]:
        """Decisions of the strategies, each for its own members, and who decided [b]."""
        weights, blend = torch.zeros_like(view.losses), torch.ones_like(view.losses[:, 0])
        own_choice = torch.zeros_like(self._dealt)
        choice = own_choice
        for place, strategy in enumerate(self._strategies):
            own = self._dealt == place
            found = strategy.decide(view)
            weights = torch.where(own.unsqueeze(1), found.weights.to(weights), weights)
            if found.blend is not None:
                blend = torch.where(own, found.blend, blend)
            number = torch.zeros_like(choice) if found.choice is None else found.choice
            own_choice = torch.where(own, number, own_choice)
            choice = torch.where(own, number + self._offsets[place], choice)
        return Decision(weights, blend, own_choice), choice

    def _bend(self, weights: Tensor, gramian: Tensor, done: float) -> tuple[Tensor, Tensor | None]:
        """What the gradients of gaps above their bounds are given beside, and the excess."""
        own, multipliers = self._bounded, torch.zeros_like(weights[:, 1:])
        if not len(own):
            return multipliers, None
        excess = self._known[:, 1:] - self._aims.bounds(self._known[self._plain, 1:], done)
        slack = torch.full_like(weights[:, 0], torch.nan)
        slack[own] = excess[own].amax(1).clamp_min(0)
        missed = (self._missed + self._integral * excess).clamp(0.0, _MOST_MISSED)
        self._missed = missed.nan_to_num(0.0)
        excess = excess + self._missed
        own = own[(excess[own] > 0).any(1)]
        if not len(own):
            return multipliers, slack
        products, mine = gramian[own], weights[own].unsqueeze(2)
        across = products @ mine  # of all gradients with the direction
        first = torch.cat([mine.mT @ across, across[:, 1:].mT], 2)
        rest = torch.cat([across[:, 1:], products[:, 1:, 1:]], 2)
        needed = torch.where(excess[own] > 0, excess[own], _NOT_ASKED)
        multipliers[own] = constraint_step(torch.cat([first, rest], 1), needed).multipliers
        return multipliers, slack

    def _record(
        self,
        losses: Tensor,
        gramian: Tensor,
        weights: Tensor,
        choice: Tensor,
        slack: Tensor | None,
        members: Tensor | None,
    ) -> None:
        length = direction_length(gramian, weights)
        losses = losses.nan_to_num(torch.nan, torch.nan)
        if members is not None:  # nothing is told of those that have stopped
            stopped = torch.ones_like(length, dtype=torch.bool).index_fill(0, members, False)
            losses = losses.masked_fill(stopped.unsqueeze(1), torch.nan)
        record = StepRecord(losses, weights, choice, length, slack=slack)
        if (self.trace.step + 1) % self.trace.window == 0:
            raw = StepView.of(gramian, losses, self.trace)
            record = replace(
                record,
                norms=raw.norms,
                omega=direction_length(gramian, min_norm(gramian)),
                omega_active=direction_length(gramian, active_min_norm(raw)),
            )
        self.trace.record(record)


def _choice_names(strategy: Strategy) -> list[str]:
    if isinstance(strategy, AdaptiveSwitch):
        return [choice.name for choice in Choice]
    return [type(strategy).__name__]
