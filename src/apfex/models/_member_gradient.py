"""Which way the scores of members go: first to their aims, then as strategies decide."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from apfex.history import History
from apfex.models._aims import Aims
from apfex.models._explorer import Explorer
from apfex.models._member_losses import MeasuredMembers, MemberLosses, ToldOfMembers
from apfex.models._rows import TrainingRows
from apfex.objectives import Aggregate
from apfex.relaxations import Step
from apfex.strategies import Strategy

_WINDOWS = 4
"""Windows in which strategies decide."""
_EXPLORING = 0.4
"""Share of the training that they have."""
_INTEGRAL = 0.1
"""Share of an excess over a bound that adds to what later steps are asked for."""
_MOST_RECORDS = 300
"""Of a member, in the trace."""


@final
@dataclass(frozen=True)
class MemberSchedule:
    """When strategies decide, and when members are archived.

    Attributes
    ----------
    arrive : int
        Rounds (of trees) or epochs in which every member goes where its aim points.
    windows, window : int
        Then so many windows of so many rounds, in which strategies decide.

    Examples
    --------
    >>> MemberSchedule.of(20)
    MemberSchedule(arrive=12, windows=4, window=2)
    >>> MemberSchedule.of(20).looks
    (12, 14, 16, 18, 20)
    """

    arrive: int
    windows: int
    window: int

    @staticmethod
    def of(rounds: int) -> MemberSchedule:
        """Divide some rounds; half of them at least are for arriving."""
        windows = min(_WINDOWS, rounds // 2)
        window = max(1, round(_EXPLORING * rounds / _WINDOWS))
        return MemberSchedule(rounds - windows * window, windows, window)

    @property
    def rounds(self) -> int:
        """All of them."""
        return self.arrive + self.windows * self.window

    @property
    def looks(self) -> tuple[int, ...]:
        """Rounds after which members are archived: after arriving, and after every window."""
        return tuple(range(self.arrive, self.rounds + 1, self.window))

    @property
    def per_record(self) -> int:
        """Rounds of which the trace has the means; 1 up to 300 rounds."""
        return -(-self.rounds // _MOST_RECORDS)


@final
class MemberGradient:
    """The gradient by the scores along which each member moves, step by step.

    Parameters
    ----------
    aims : Aims
        Of b members: weights [b, a * r] for each of a groupings and r rates, and bounds.
    strategies : sequence of Strategy
        What decides once members have arrived at their aims; they are dealt to them in turn.
    schedule : MemberSchedule
    per_round : int
        Steps of a round: batches of an epoch.
    step, aggregate
        See :class:`MemberLosses`.
    seed : int
        Of what strategies draw.

    Attributes
    ----------
    trace : History
        What happened: means of every round, or of several where there are more than 300.

    Notes
    -----
    Scores are taken for the parameters: the Gramian of the losses by the scores is exact, for all
    members together, and what the strategies make of it goes back through the models in one pass.
    Rows are measured where they are; what decides by those few numbers is on the CPU, where an
    operation takes a fraction of a launch on a GPU. Inner products are means over rows, so that
    neither their number nor that of the batches matters. Gaps are those of about an epoch, and
    bounds are compared with gaps of hard decisions.

    Examples
    --------
    >>> import torch
    >>> from apfex.relaxations import identity_step
    >>> from apfex.strategies import AdaptiveSwitch
    >>> groups = torch.tensor([[0, 0, 1, 1]])
    >>> rows = TrainingRows(torch.zeros(4, 1), torch.arange(4) % 2, groups, (2,))
    >>> aims, schedule = Aims(("dp",), torch.tensor([[0.0], [1.0]])), MemberSchedule.of(5)
    >>> gradient = MemberGradient(aims, [AdaptiveSwitch()], schedule, 1, identity_step, "rms")
    >>> gradient(torch.tensor([[0.0, 0.0, 2.0, 2.0]] * 2), rows).round(decimals=2)
    tensor([[ 0.1200, -0.1200,  0.2200, -0.0300],
            [ 0.0600, -0.1900,  0.2500, -0.0000]])
    """

    def __init__(
        self,
        aims: Aims,
        strategies: Sequence[Strategy],
        schedule: MemberSchedule,
        per_round: int,
        step: Step,
        aggregate: Aggregate,
        seed: int = 0,
    ) -> None:
        self._schedule, self._per_round = schedule, per_round
        together, own = per_round * schedule.per_record, aims.to(torch.device("cpu"))
        self._explorer = Explorer(
            own, strategies, schedule.window * per_round, seed, together, _INTEGRAL
        )
        n_groupings = aims.weights.shape[1] // max(1, len(aims.rates))
        self._losses = MemberLosses(
            aims.rates,
            n_groupings,
            per_round,
            step,
            aggregate,
            measures_hard=self._explorer.has_bounds,
        )
        self._members: Tensor | None = None
        self._n_losses = 1 + aims.weights.shape[1]

    @property
    def trace(self) -> History:
        """What happened."""
        return self._explorer.trace

    def __call__(self, scores: Tensor, batch: TrainingRows) -> Tensor:
        """Return the gradient by scores [b, n] or [b, n, c], of losses that are means over rows."""
        found = self.measure(scores, batch)
        return found.gradient(self.decide(found.told().cpu()).to(scores.device)).view_as(scores)

    def measure(self, scores: Tensor, batch: TrainingRows) -> MeasuredMembers:
        """Return what is to be known of scores [b, n] or [b, n, c]."""
        return self._losses.measure(scores, batch)

    def foreseen(self) -> Tensor | None:
        """Return what :meth:`decide` will return, as far as that can be said beforehand."""
        if self._since_arrival >= 0 or self._explorer.has_bounds:
            return None
        return self._explorer.aims(self._members)

    def decide(self, told: Tensor) -> Tensor:
        """Return the weights [b, m] of the losses, from :meth:`MeasuredMembers.told` on the CPU."""
        found = ToldOfMembers.read(told, self._n_losses)
        schedule, since = self._schedule, self._since_arrival
        look = 0 if since < 0 else 1 + since // schedule.window
        return self._explorer.weigh(
            found.losses,
            found.gramian,
            (look + 0.5) / (schedule.windows + 1),
            explores=since >= 0,
            gaps=found.gaps,
            members=self._members,
        )

    @property
    def _since_arrival(self) -> int:
        """Rounds since strategies decide."""
        return self.trace.step // self._per_round - self._schedule.arrive

    def state_dict(self) -> dict[str, Any]:
        """All that it remembers, for a checkpoint."""
        return {"explorer": self._explorer.state_dict(), "losses": self._losses.state_dict()}

    def load_state_dict(
        self, state: Mapping[str, Any], device: torch.device, counts: Sequence[Sequence[int]]
    ) -> None:
        """Go on where :meth:`state_dict` was taken, with the same members; rows are on a device.

        ``counts`` are the shapes of the confusion counts of each grouping.
        """
        self._explorer.load_state_dict(state["explorer"])
        self._losses.load_state_dict(state["losses"], device, counts)

    def of_members(self, members: Tensor) -> MemberGradient:
        """Return the gradient of some of the members, in mid-course; the trace stays the same."""
        taken, own = copy.copy(self), members.cpu()
        taken._members = own if self._members is None else self._members[own]
        taken._losses = self._losses.of_members(members)
        return taken
