"""The search for rules: members explore the front, and an archive collects what they find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.history import History
from apfex.models._adam import Adam
from apfex.models._aims import Aims
from apfex.models._explorer import Explorer
from apfex.models._rule_problem import RuleProblem
from apfex.strategies import Strategy

_LEAST_SLOPE = 1e-3
"""Slopes far below this are rounding, which Adam would blow up."""


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
    gather: int = 30
    rates: tuple[float, float, float] = (0.04, 0.01, 0.02)

    @property
    def looks(self) -> int:
        """How often the rules are archived: after arriving, and after every window."""
        return 1 + self.windows


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
    joint model does not know. All members start from the most likely label, and move together
    (Adam) on soft decisions that harden on the way; see :class:`Explorer`.

    Examples
    --------
    >>> from apfex.models import OutOfFoldPredictions, rule_scores
    >>> from apfex.strategies import AdaptiveSwitch
    >>> q = torch.tensor([[[0.4, 0.1], [0.2, 0.3]], [[0.1, 0.5], [0.1, 0.3]]])
    >>> predictions = OutOfFoldPredictions(q, torch.tensor([0, 1]))
    >>> problem = RuleProblem.of(predictions, ("dp",), [torch.arange(2)])
    >>> [found] = explore_rules([problem], Aims(("dp",), torch.zeros(1, 1)), [AdaptiveSwitch()])
    >>> rule_scores(found.rules, q)[0] > 0  # the more likely label
    tensor([False,  True])
    """
    schedule, first = schedule or RuleSchedule(), problems[0]
    b, p, (k, c) = aims.n_members, len(problems), first.totals.shape
    explorer = Explorer(
        aims.to(first.q), strategies, schedule.window, seed, trace_window=int(trace), copies=p
    )
    moves = first.q.new_zeros(p * b, len(first.start), len(first.basis))
    optimizer = Adam([moves], betas=(0.9, 0.99), epsilon=_LEAST_SLOPE, fused=False)
    archive, slower = [], min(1.0, (4 / k) ** 0.5)
    for look in range(schedule.looks):
        for step, (learning_rate, softness) in enumerate(_steps(schedule, look)):
            spread = "smooth_max" if look or step >= schedule.gather else "rms"
            found = [
                problem.losses_and_gradients(own, softness, spread)
                for problem, own in zip(problems, moves.split(b), strict=True)
            ]
            losses, gradients = (torch.cat(parts) for parts in zip(*found, strict=True))
            turn = explorer.explore if look else explorer.arrive
            direction = turn(losses, gradients, (look + 0.5) / schedule.looks)
            optimizer.step([direction.view_as(moves)], slower * learning_rate)
        pairs = zip(problems, moves.split(b), strict=True)
        archive.append([problem.rules(own).unflatten(-1, (k, c)) for problem, own in pairs])
    steps = schedule.arrive + schedule.window * torch.arange(schedule.looks).repeat_interleave(b)
    return [
        ExploredRules(torch.cat(rules), steps, explorer.trace)
        for rules in zip(*archive, strict=True)
    ]


def _steps(schedule: RuleSchedule, look: int) -> list[tuple[float, float]]:
    """Learning rate and softness of each step up to a look."""
    (wide, narrow), (first, last, exploring) = schedule.softness, schedule.rates
    if look:
        shares = (step / schedule.window for step in range(schedule.window))
        return [(exploring * (1 - share), narrow) for share in shares]
    shares = (step / schedule.arrive for step in range(schedule.arrive))
    return [(first + (last - first) * share, wide * (narrow / wide) ** share) for share in shares]
