"""The explorer: which way each member of a population goes, by its aim, a strategy and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, final

import torch
from torch import Tensor

from apfex.constraints import constraint_step
from apfex.history import History, StepRecord
from apfex.models._aims import Aims
from apfex.models._checkpoint import check_like, check_tensor
from apfex.solvers import min_norm
from apfex.strategies import (
    AdaptiveSwitch,
    Choice,
    Decision,
    StepView,
    Strategy,
    active_min_norm,
    check_weights,
    direction_length,
    name_of,
)

_NOT_ASKED = -1e6
"""A descent that every direction has."""
_BOUND = 1
"""Number of the bounds among those who decide; aims are 0."""
_MOST_MISSED = 1.0
"""Up to which what bounds were missed by adds up."""


@final
class Explorer:
    """What the error and the gaps weigh for each member, from their losses and gradients.

    First every member goes where its aim points, then strategies decide: they see losses and
    gradients weighted by the member's aim, so that equal weights are the aim itself, and their
    weights are given the same sum. Where a strategy gives nothing to what the member aims at, its
    aim counts. Members with bounds weigh the error alone, and are bent at every step by the
    constraint step of Algorithm 1: the nearest direction along which the gaps above their bounds
    fall.

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
    bends : bool
        Whether the constraint step is taken; not where bounds are kept in another way.
    copies : int
        How many populations of the same aims there are, one after the other, as of several tables
        that are searched in step. They do not touch each other.

    Attributes
    ----------
    trace : History
        Error and gaps, their weights (with what bounds add), who decided ("aim", "bound" or a
        strategy), the length of the direction, omega (0: Pareto-stationary) and by how much bounds
        were missed. NaN for members that have stopped.

    Examples
    --------
    >>> aims = Aims(("dp",), torch.tensor([[0.0], [3.0]]))
    >>> explorer = Explorer(aims, [AdaptiveSwitch()], window=4)
    >>> explorer.weigh(torch.ones(2, 2), torch.eye(2).repeat(2, 1, 1), 0.0, explores=False)
    tensor([[1., 0.],
            [1., 3.]], dtype=torch.float64)
    """

    def __init__(
        self,
        aims: Aims,
        strategies: Sequence[Strategy],
        window: int,
        seed: int = 0,
        trace_window: int = 1,
        integral: float = 0.0,
        *,
        bends: bool = True,
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
        self._bounded, self._bends = aims.bounded, bends
        self._chooses = (self._preferences > 0).sum(1) > 1  # between the error and a gap
        self._aimed = torch.zeros_like(self._dealt).index_fill(0, self._bounded, _BOUND)
        self._seeds = place + 1_000_003 * seed
        names = [_choice_names(strategy) for strategy in self._strategies]
        self._offsets = [2 + sum(map(len, names[:place])) for place in range(len(names))]
        self._history = History(m, window, (b,), device=device)
        self._last: Tensor | None = None
        self._known = torch.zeros_like(self._preferences)
        self._integral, self._missed = integral, torch.zeros_like(self._preferences[:, 1:])
        flat = ["aim", "bound", *(name for found in names for name in found)]
        self._traces, window = trace_window > 0, max(1, trace_window)
        every = trace_window == 1
        self.trace = History(m, window, (b,), trace=every, choice_names=flat, device=device)

    def state_dict(self) -> dict[str, Any]:
        """All that it remembers, for a checkpoint."""
        return {
            "history": self._history.state_dict(),
            "trace": self.trace.state_dict(),
            "last": self._last,
            "known": self._known,
            "missed": self._missed,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken."""
        device = self._known.device
        self._history = History.from_state_dict(state["history"], device, self._history)
        self.trace = History.from_state_dict(state["trace"], device, self.trace)
        check_tensor(state["known"], self._known.dtype, self._known.shape, "known")
        check_like(state["missed"], self._missed, "missed")
        if state["last"] is not None:
            check_like(state["last"], self._preferences, "last")
        self._last = None if state["last"] is None else state["last"].to(device)
        self._known, self._missed = state["known"].to(device), state["missed"].to(device)

    @property
    def has_bounds(self) -> bool:
        """Whether there is a member that has to stay within bounds."""
        return len(self._bounded) > 0

    def bounds(self, gaps: Tensor, done: float) -> Tensor:
        """Largest gaps [b, m - 1] that members may have, where they have these.

        ``done`` is how much of the search is done, from 0 to 1, by which bounds are swept.
        """
        return self._aims.bounds(gaps[self._plain], done)

    def aims(self, members: Tensor | None = None) -> Tensor:
        """Weights [b, m] of the aims alone, where there are no bounds."""
        return self._preferences if members is None else self._preferences[members]

    def weigh(
        self,
        losses: Tensor,
        gramian: Tensor,
        done: float,
        *,
        explores: bool,
        gaps: Tensor | None = None,
        prices: Tensor | None = None,
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
        prices : Tensor of shape [n, m - 1], optional
            What bounds have made each gap weigh for the n members that have some, where the
            explorer does not bend directions.
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
        excess = self._excess(done) if self._bends or self._traces else None
        if prices is not None:
            weights = weights.index_copy(0, self._bounded, _beside_error(prices.to(weights)))
        if self._bends and excess is not None:
            weights = self._bend(weights, gramian, excess)
        if self._traces:
            self._record(losses, gramian, weights, choice, excess, members)
        return weights if members is None else weights[members]

    def _excess(self, done: float) -> Tensor | None:
        """What gaps [b, m - 1] are above their bounds by; None if nobody has any."""
        gaps = self._known[:, 1:]
        return gaps - self.bounds(gaps, done) if self.has_bounds else None

    def _spread(self, part: Tensor, members: Tensor) -> Tensor:
        """Of all members; zeros for those that have stopped."""
        everyone = part.new_zeros(len(self._dealt), *part.shape[1:])
        return everyone.index_copy(0, members, part)

    def _weigh(self, losses: Tensor, gramian: Tensor, explores: bool) -> tuple[Tensor, Tensor]:
        """Weights [b, m] by aims or strategies, and who decided [b]."""
        scales = self._preferences
        if not explores:
            return scales, self._aimed
        # Strategies see all of it in units of the member's own aim.
        scaled = gramian * scales.unsqueeze(2) * scales.unsqueeze(1)
        history = self._history
        view = StepView(losses * scales, history, history.step, self._seeds, lambda: scaled)
        decision, choice = self._decide(view)
        weights, decided = self._as_aims(decision.weights)
        choice = torch.where(decided, choice, self._aimed)
        if self._last is not None and decision.blend is not None:
            weights = torch.lerp(self._last, weights, decision.blend.unsqueeze(1))
        self._last = weights
        length = direction_length(scaled, weights)
        history.record(StepRecord(view.losses, weights, decision.choice, length, norms=view.norms))
        return weights * scales, choice

    def _as_aims(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Weights with the sum that equal ones have, and whether they decide anything [b].

        Equal ones are the aim itself; a member that weighs the error alone has no choice.
        """
        active = (self._preferences > 0).to(weights)
        sizes, total = active.sum(1, keepdim=True), (weights * active).sum(1, keepdim=True)
        found = torch.where(total > 0, weights * sizes / total, 1.0) * active
        return found, ((total > 0) & (sizes > 1)).squeeze(1)

    def _decide(self, view: StepView) -> tuple[Decision, Tensor]:
        """Decisions of the strategies, each for its own members, and who decided [b]."""
        weights, blend = torch.zeros_like(view.losses), torch.ones_like(view.losses[:, 0])
        own_choice = torch.zeros_like(self._dealt)
        choice = own_choice
        for place, strategy in enumerate(self._strategies):
            own = self._dealt == place
            found = strategy.decide(view)
            given = found.weights.to(weights).expand_as(weights)
            # what it says of members that have no choice is not used
            check_weights(given.where((own & self._chooses).unsqueeze(1), 0.0), strategy)
            weights = torch.where(own.unsqueeze(1), given, weights)
            if found.blend is not None:
                blend = torch.where(own, found.blend, blend)
            number = torch.zeros_like(choice) if found.choice is None else found.choice
            own_choice = torch.where(own, number, own_choice)
            choice = torch.where(own, number + self._offsets[place], choice)
        return Decision(weights, blend, own_choice), choice

    def _bend(self, weights: Tensor, gramian: Tensor, excess: Tensor) -> Tensor:
        """Weights with what the gradients of gaps above their bounds are given beside."""
        missed = (self._missed + self._integral * excess).clamp(0.0, _MOST_MISSED)
        self._missed = missed.nan_to_num(0.0)
        excess = excess + self._missed
        own = self._bounded[(excess[self._bounded] > 0).any(1)]
        if not len(own):
            return weights
        products, mine = gramian[own], weights[own].unsqueeze(2)
        across = products @ mine  # of all gradients with the direction
        first = torch.cat([mine.mT @ across, across[:, 1:].mT], 2)
        rest = torch.cat([across[:, 1:], products[:, 1:, 1:]], 2)
        needed = torch.where(excess[own] > 0, excess[own], _NOT_ASKED)
        multipliers = constraint_step(torch.cat([first, rest], 1), needed).multipliers
        return weights.index_add(0, own, torch.nn.functional.pad(multipliers, (1, 0)))

    def _record(
        self,
        losses: Tensor,
        gramian: Tensor,
        weights: Tensor,
        choice: Tensor,
        excess: Tensor | None,
        members: Tensor | None,
    ) -> None:
        length = direction_length(gramian, weights)
        slack = torch.full_like(length, torch.nan)
        if excess is not None:
            slack[self._bounded] = excess[self._bounded].amax(1).clamp_min(0)
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


def _beside_error(prices: Tensor) -> Tensor:
    """Weights [b, m] of an error of weight 1 and of gaps."""
    return torch.cat([torch.ones_like(prices[:, :1]), prices], 1)


def _choice_names(strategy: Strategy) -> list[str]:
    if isinstance(strategy, AdaptiveSwitch):
        return [choice.name for choice in Choice]
    return [name_of(strategy)]
