"""The search for rules: members explore the front, and an archive collects what they find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from apfex.history import History
from apfex.models import Adam, Aims, Explorer, check_like
from apfex.objectives import Aggregate
from apfex.rules._prices import Prices
from apfex.rules._problem import RuleProblem, SoftDecisions, largest_gaps
from apfex.strategies import Strategy

_LEAST_SLOPE = 1e-3
"""Slopes far below this are rounding, which Adam would blow up."""


@final
@dataclass(frozen=True)
class Pace:
    """How one step is taken.

    Attributes
    ----------
    learning_rate : float
    softness, priced : float
        Width of the soft decision, in probabilities, of members with weights and with bounds.
    aggregate : str
        How differences between groups become the gap that is differentiated.
    """

    learning_rate: float
    softness: float
    priced: float
    aggregate: Aggregate


@final
@dataclass(frozen=True)
class RuleSchedule:
    """How long rules are searched, and in which steps.

    Attributes
    ----------
    arrive : int
        Steps in which decisions harden and every member goes where its aim points.
    windows, window : int
        Then so many windows of so many steps, in which strategies decide.
    softness : pair of float
        Width of the soft decision at the beginning and at the end, in probabilities.
    priced : float
        The same at the end, of members with bounds, which are kept by what is decided in truth.
    gather : int
        Steps at the beginning that count the differences of all groups (root mean square), so
        that all of them move, before the largest alone counts.
    rates : three of float
        Learning rates: arriving from the first to the second; exploring from the third to 0, in
        every window. For up to four groups; less for more, as a score is a sum over all of them.
    """

    arrive: int = 60
    windows: int = 4
    window: int = 8
    softness: tuple[float, float] = (0.2, 0.02)
    priced: float = 0.002
    gather: int = 30
    rates: tuple[float, float, float] = (0.04, 0.01, 0.02)

    @property
    def looks(self) -> int:
        """How often the rules are archived: after arriving, and after every window."""
        return 1 + self.windows

    def paces(self, look: int) -> Iterator[Pace]:
        """Every step up to a look."""
        (wide, narrow), (first, last, exploring) = self.softness, self.rates
        if look:
            for step in range(self.window):
                rate = exploring * (1 - step / self.window)
                yield Pace(rate, narrow, self.priced, "smooth_max")
            return
        for step in range(self.arrive):
            share = step / self.arrive
            soft, priced = (wide * (end / wide) ** share for end in (narrow, self.priced))
            aggregate = "rms" if step < self.gather else "smooth_max"
            yield Pace(first + (last - first) * share, soft, priced, aggregate)


@final
@dataclass(frozen=True, eq=False)
class ExploredRules:
    """All rules that a search has looked at.

    Attributes
    ----------
    rules : Tensor of shape [looks * b, 1, k, c], or [looks * b, c, k, c] for several classes
        Coefficients of the probabilities; see :func:`rule_scores`.
    steps : Tensor of shape [looks * b]
        After how many steps each was taken.
    trace : History
        Every step of the b members; of all problems, where several were explored in step.
    """

    rules: Tensor
    steps: Tensor
    trace: History

    def state_dict(self) -> dict[str, Any]:
        """All of it, for a checkpoint."""
        return {"rules": self.rules, "steps": self.steps, "trace": self.trace.state_dict()}

    @staticmethod
    def from_state_dict(
        state: Mapping[str, Any], problem: RuleProblem, aims: Aims
    ) -> ExploredRules:
        """What :meth:`state_dict` was taken of; that of other problems or aims is refused."""
        schedule, device, b = RuleSchedule(), problem.q.device, aims.n_members
        trace = History.from_state_dict(state["trace"], device)
        seen = [trace.n_objectives, *trace.members]
        if seen != [1 + aims.weights.shape[1], b] or trace.step != int(_steps(schedule, 1)[-1]):
            raise ValueError(f"trace must be of {b} members to the end, got {trace!r}")
        shape = (schedule.looks * b, len(problem.start), *problem.totals.shape)
        check_like(state["rules"], problem.q.new_zeros(shape).cpu(), "rules")
        steps = _steps(schedule, b)
        if not steps.equal(state["steps"]):
            raise ValueError("steps must be those of the looks, got others")
        return ExploredRules(state["rules"].to(device), steps, trace)


def explore_rules(
    problems: Sequence[RuleProblem],
    aims: Aims,
    strategies: Sequence[Strategy],
    *,
    schedule: RuleSchedule | None = None,
    seed: int = 0,
    trace: bool = True,
) -> list[ExploredRules]:
    """Explore the trade-offs between the expected error and the gaps, with rules as models.

    Parameters
    ----------
    problems : sequence of p RuleProblems
        Of the same groups and classes, as of the folds of a table. They are explored in step and
        do not touch each other: most of what a step takes on a small table does not depend on how
        many members there are.
    aims : Aims
        Of b members of each problem: weights [b, a * r] for each of a groupings and r rates, and
        bounds.
    strategies : sequence of Strategy
        What decides once members have arrived at their aims; they are dealt to them in turn.
    schedule : RuleSchedule, optional
    seed : int
        Of what strategies draw.
    trace : bool
        Whether every step is recorded, which takes a quarter of the time on small tables.

    Returns
    -------
    list of p ExploredRules

    Notes
    -----
    Of all decisions by the same inputs, those that minimise the error plus a weighted sum of group
    rates have this form: what a decision is worth for a row is the sum, over groups and labels, of
    what it is worth there, times the probability that the row belongs there (Menon and Williamson
    2018; Zeng et al. 2022; Xian and Zhao 2024). So a search among rules loses nothing but what the
    joint model does not know. All members start from the most likely label, on soft decisions that
    harden on the way. Those with weights follow the gradients of error and gaps (Adam), as
    strategies weigh them (:class:`Explorer`); those with bounds follow the prices at which bounds
    are kept (:class:`Prices`).

    Examples
    --------
    >>> from apfex.models import OutOfFoldPredictions
    >>> from apfex.rules import rule_scores
    >>> from apfex.strategies import AdaptiveSwitch
    >>> q = torch.tensor([[[0.4, 0.1], [0.2, 0.3]], [[0.1, 0.5], [0.1, 0.3]]])
    >>> predictions = OutOfFoldPredictions(q, torch.tensor([0, 1]))
    >>> problem = RuleProblem.of(predictions, ("dp",), [torch.arange(2)])
    >>> [found] = explore_rules([problem], Aims(("dp",), torch.zeros(1, 1)), [AdaptiveSwitch()])
    >>> rule_scores(found.rules, q)[0] > 0  # the more likely label
    tensor([False,  True])
    """
    schedule, (k, c) = schedule or RuleSchedule(), problems[0].totals.shape
    search = _Search(problems, aims.to(problems[0].start), strategies, schedule, seed, trace=trace)
    archive = []
    for look in range(schedule.looks):
        search.look(look)
        archive.append([rules.unflatten(-1, (k, c)) for rules in search.rules()])
    return [
        ExploredRules(
            torch.cat(rules).to(problems[0].q),
            _steps(schedule, aims.n_members),
            search.explorer.trace,
        )
        for rules in zip(*archive, strict=True)
    ]


def _steps(schedule: RuleSchedule, n_members: int) -> Tensor:
    """After how many steps each of the rules was taken."""
    steps = schedule.arrive + schedule.window * torch.arange(schedule.looks)
    return steps.repeat_interleave(n_members)


@final
class _Search:
    """The members of all problems, those with weights and those with bounds.

    Members are numbered problem by problem. Those with weights follow gradients, those with bounds
    prices; both are taken to where they are on the same rows.
    """

    def __init__(
        self,
        problems: Sequence[RuleProblem],
        aims: Aims,
        strategies: Sequence[Strategy],
        schedule: RuleSchedule,
        seed: int,
        *,
        trace: bool,
    ) -> None:
        first, p = problems[0], len(problems)
        bounded = torch.zeros(aims.n_members, dtype=torch.bool)
        bounded[aims.bounded] = True
        self._problems, self._schedule, self._traces = list(problems), schedule, trace
        self._bounded = bounded.repeat(p).nonzero().squeeze(1)
        self._weighted = (~bounded.repeat(p)).nonzero().squeeze(1)
        self._sizes = int((~bounded).sum()), int(bounded.sum())
        self.explorer = Explorer(
            *(aims, strategies, schedule.window, seed),
            trace_window=int(trace),
            bends=False,
            copies=p,
        )
        n_weighted, n_bounded = (p * size for size in self._sizes)
        self._moves = first.start.new_zeros(n_weighted, len(first.start), len(first.basis))
        self._adam = Adam([self._moves], betas=(0.9, 0.99), epsilon=_LEAST_SLOPE, fused=False)
        self._prices = Prices(
            first.start, (n_bounded, len(first.start)), first.rates, first.parents
        )
        self._slower = min(1.0, (4 / len(first.totals)) ** 0.5)

    def look(self, look: int) -> None:
        """Take all steps up to a look."""
        self._prices.restart()
        done = (look + 0.5) / self._schedule.looks
        for pace in self._schedule.paces(look):
            self._step(pace, done, explores=look > 0)

    def rules(self) -> list[Tensor]:
        """Coefficients [b, j, k c] of the members of each problem."""
        found = []
        for weighted, bounded in zip(self._by_moves(), self._by_prices(), strict=True):
            both = torch.cat([weighted, bounded])
            order = torch.cat([self._weighted[: len(weighted)], self._bounded[: len(bounded)]])
            found.append(torch.empty_like(both).index_copy(0, order, both))
        return found

    def _by_moves(self) -> list[Tensor]:
        """Coefficients of the members with weights, of each problem."""
        moves = self._moves.unflatten(0, (len(self._problems), self._sizes[0]))
        pairs = zip(self._problems, moves, strict=True)
        return [problem.at_rate(problem.start + own @ problem.basis) for problem, own in pairs]

    def _by_prices(self, *, ahead: bool = False) -> list[Tensor]:
        """Coefficients of the members with bounds, of each problem; see :meth:`Prices.moves`."""
        if not self._sizes[1]:
            return [problem.start.new_zeros(0, *problem.start.shape) for problem in self._problems]
        moves = self._prices.moves(ahead=ahead).split(self._sizes[1])
        return [problem.rules(own) for problem, own in zip(self._problems, moves, strict=True)]

    def _step(self, pace: Pace, done: float, *, explores: bool) -> None:
        weighted = self._decide(self._by_moves(), pace.softness)
        bounded = self._decide(self._by_prices(ahead=True), pace.priced)
        gaps = self._gaps(weighted, bounded)
        losses, gradients = self._measure(weighted, pace.aggregate)
        others = self._measure(bounded, pace.aggregate) if self._traces else ()
        weights = self.explorer.weigh(
            self._everyone(losses, *others[:1]),
            self._everyone(*(found @ found.mT for found in (gradients, *others[1:]))),
            done,
            explores=explores,
            gaps=gaps,
            prices=self._prices.of_gaps if self._sizes[1] else None,
        )
        direction = weights[self._weighted].to(gradients).unsqueeze(1) @ gradients
        self._adam.step([direction.view_as(self._moves)], self._slower * pace.learning_rate)
        if self._sizes[1]:
            pairs = zip(self._problems, bounded, strict=True)
            near = _joined(problem.near(soft) for problem, soft in pairs)
            bounds = self.explorer.bounds(gaps, done)[self._bounded]
            self._prices.step(_joined(soft.counts for soft in bounded), near, bounds)

    def _decide(self, rules: Sequence[Tensor], softness: float) -> list[SoftDecisions]:
        pairs = zip(self._problems, rules, strict=True)
        return [problem.decide(own, softness) for problem, own in pairs]

    def _gaps(self, *parts: Sequence[SoftDecisions]) -> Tensor:
        """Largest gaps [b, a r] of all members."""
        each = [_joined(soft.counts for soft in part) for part in parts]
        counts = [self._everyone(*both) for both in zip(*each, strict=True)]
        if not counts:
            return self._moves.new_zeros(len(self._weighted), 0)
        return largest_gaps(counts, self._problems[0].rates)

    def _measure(
        self, soft: Sequence[SoftDecisions], aggregate: Aggregate
    ) -> tuple[Tensor, Tensor]:
        """Losses [b, m] and gradients [b, m, f]."""
        pairs = zip(self._problems, soft, strict=True)
        found = [problem.measure(one, aggregate) for problem, one in pairs]
        losses, gradients = (torch.cat(parts) for parts in zip(*found, strict=True))
        return losses, gradients

    def _everyone(self, weighted: Tensor, bounded: Tensor | None = None) -> Tensor:
        """Of all members, in their order; zeros for those with bounds, if nothing is told."""
        n = len(self._weighted) + len(self._bounded)
        found = weighted.new_zeros(n, *weighted.shape[1:]).index_copy(0, self._weighted, weighted)
        return found if bounded is None else found.index_copy(0, self._bounded, bounded)


def _joined(parts: Iterable[Sequence[Tensor]]) -> list[Tensor]:
    """Those of all problems, one after the other, for each grouping."""
    return [torch.cat(each) for each in zip(*parts, strict=True)]
