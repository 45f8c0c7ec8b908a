"""The loop: networks of several trials in step, each with losses of its own, and weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

import pandas as pd
import torch
from torch import Tensor

from apfex.rates import GroupIndex
from apfex_reproduction.baselines._losses import LossBatch
from apfex_reproduction.baselines._networks import Inputs, Networks, draw_masks
from apfex_reproduction.baselines._population import Population
from apfex_reproduction.baselines._scales import starting_scales
from apfex_reproduction.baselines._weigh import Plan, weighers_of

_FULL_BATCH_WINDOW = 10
"""Steps of a window where an epoch is a single step."""
Batch = tuple[Inputs, LossBatch, Sequence[Tensor] | None]


@final
@dataclass(frozen=True)
class Budget:
    """How long, how fast, in which portions; all of the training part where batch_size is None."""

    epochs: int
    batch_size: int | None
    learning_rate: float
    hidden: tuple[int, ...]
    dropout: float
    seed: int

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        for name in ("epochs", "batch_size"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be positive, got {self.learning_rate}.")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, got {self.dropout}.")
        if not all(isinstance(width, int) and width > 0 for width in self.hidden):
            raise ValueError(f"hidden must hold positive integers, got {list(self.hidden)}.")


@final
@dataclass(frozen=True, eq=False)
class Lesson:
    """Inputs [n, d], labels [n], codes of each grouping [a, n] and weights [n] to learn from."""

    x: Tensor
    y: Tensor
    codes: Tensor
    n_groups: tuple[int, ...]
    sample_weight: Tensor | None

    def take(self, rows: Tensor) -> LossBatch:
        """What losses need of some of the rows."""
        parts = zip(self.codes[:, rows], self.n_groups, strict=True)
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        indexes = [GroupIndex(codes, None, k) for codes, k in parts]
        return LossBatch(self.y[rows], indexes, weight)


class Learner:
    """Members with plans of their own on one lesson.

    All start from the same weights and see the same batches and dropout, whoever else is there.

    Parameters
    ----------
    plans : sequence of Plan
    lesson : Lesson
    budget : Budget
    start : Tensor of shape [p], optional
        Parameters to start from instead of the drawn ones.
    """

    def __init__(
        self, plans: Sequence[Plan], lesson: Lesson, budget: Budget, start: Tensor | None = None
    ) -> None:
        self.plans, self.budget = list(plans), budget
        self.batches = _Batches(len(lesson.y), budget)
        self._lesson, self._inputs = lesson, Inputs.of(lesson.x)
        self._generator, self._start = torch.Generator(), start
        self._places: dict[int, tuple[int, int]] = {}
        together: dict[tuple[int, bool], list[int]] = {}
        for member, plan in enumerate(plans):
            own = plan.own_passes and bool(plan.terms)
            together.setdefault((plan.n_losses, own), []).append(member)
        self._n_passes = max(m if own else 1 for m, own in together)
        self.members = list(together.values())
        """Of each population."""
        self.populations = [self._population([plans[one] for one in own]) for own in self.members]
        for place, members in enumerate(self.members):
            self._places |= {member: (place, row) for row, member in enumerate(members)}

    def differentiate(self, step: int, rows: Tensor) -> None:
        """Losses and gradients of all members on a batch."""
        batch = self.take(step, rows)
        for population in self.populations:
            population.differentiate(*batch)

    def take(self, step: int, rows: Tensor, *, dropout: bool = True) -> Batch:
        """Some of the rows, and the dropout of a step."""
        masks = None
        if dropout:
            generator = self._generator.manual_seed(_mix(self.budget.seed, -1 - step))
            shape = (self.budget.hidden, self.budget.dropout, len(rows), self._n_passes)
            masks = draw_masks(*shape, generator)
        return self._inputs.take(rows), self._lesson.take(rows), masks

    def scores(self, portions: Sequence[Inputs]) -> Tensor:
        """Of all members [b, n], without dropout."""
        found = [
            torch.cat([population.networks.forward(part).scores[0] for part in portions], 1)
            for population in self.populations
        ]
        order = torch.tensor([member for members in self.members for member in members])
        return torch.cat(found)[order.argsort()]

    def parameters(self, member: int) -> Tensor:
        """All parameters [p] of a member, which training goes on to change."""
        place, row = self._places[member]
        return self.populations[place].networks.values[row]

    def snapshot(self, member: int) -> list:
        """Copies of the weights and biases of a member."""
        place, row = self._places[member]
        return self.populations[place].networks.snapshot(row)

    def _population(self, plans: Sequence[Plan]) -> Population:
        def batches(dropout: bool) -> Iterator[Batch]:
            return (self.take(step, rows, dropout=dropout) for step, rows in self.batches.of(0))

        scales = starting_scales(plans, self._networks(1), batches)
        networks = self._networks(len(plans))
        return Population(networks, plans, scales, self.budget.learning_rate)

    def _networks(self, b: int) -> Networks:
        d, budget = self._lesson.x.shape[1], self.budget
        made = Networks(d, budget.hidden, budget.dropout, b, _mix(budget.seed, 0))
        if self._start is not None:
            made.values.copy_(self._start)
        return made


OnEpoch = Callable[[int, Learner], None]


def train(
    learners: Sequence[Learner], on_epoch: Sequence[OnEpoch]
) -> list[dict[int, pd.DataFrame]]:
    """Train all members of all learners in step.

    Members do not touch each other: one alone learns the same, but for rounding. That of several
    learners one strategy decides for all saves time: what a decision costs hardly depends on for
    how many it is.

    Parameters
    ----------
    learners : sequence of Learner
        With the same number of epochs, and of batches in each.
    on_epoch : sequence of callables
        Called with the number of each epoch and the learner, one for each learner.

    Returns
    -------
    list of dict
        For each learner the course of those members that weigh several losses.
    """
    first = learners[0]
    assert len({(one.budget.epochs, one.batches.per_epoch) for one in learners}) == 1
    councils = _councils(learners)
    for epoch in range(1, first.budget.epochs + 1):
        orders = [learner.batches.of(epoch) for learner in learners]
        for batches in zip(*orders, strict=True):
            for learner, (step, rows) in zip(learners, batches, strict=True):
                learner.differentiate(step, rows)
            for council in councils:
                council.move()
        for learner, tell in zip(learners, on_epoch, strict=True):
            tell(epoch, learner)
    courses: list[dict[int, pd.DataFrame]] = [{} for _ in learners]
    for council in councils:
        for (place, member), windows in council.windows():
            courses[place][member] = windows
    return courses


class _Council:
    """Populations of one number of losses, of all learners, whose members decide together."""

    def __init__(
        self,
        populations: Sequence[Population],
        seats: Sequence[tuple[int, int]],
        seeds: Sequence[int],
        window: int,
    ) -> None:
        self._populations, self._seats = populations, seats
        self._sizes = [len(population.plans) for population in populations]
        plans = [plan for population in populations for plan in population.plans]
        self.weighers = weighers_of(plans, seeds, window)

    def move(self) -> None:
        """Decide, and step."""
        losses = torch.cat([population.losses for population in self._populations])
        products = torch.cat([population.products for population in self._populations])
        weights, shares = torch.ones_like(losses), torch.ones_like(losses[:, 0])
        for members, weigher in self.weighers:
            decision = weigher.decide(losses[members], products[members])
            weights[members] = decision.weights.to(weights)
            if decision.blend is not None:
                shares[members] = decision.blend.to(shares)
        parts = zip(
            self._populations, weights.split(self._sizes), shares.split(self._sizes), strict=True
        )
        lengths = torch.cat([population.move(own, share) for population, own, share in parts])
        for members, weigher in self.weighers:
            weigher.record(lengths[members])

    def windows(self) -> Iterator[tuple[tuple[int, int], pd.DataFrame]]:
        """Learner and member, and the course of its training."""
        for members, weigher in self.weighers:
            for row, windows in zip(members.tolist(), weigher.windows(), strict=True):
                yield self._seats[row], windows


def _councils(learners: Sequence[Learner]) -> list[_Council]:
    found: dict[int, list[tuple[Population, list[tuple[int, int]], int]]] = {}
    for place, learner in enumerate(learners):
        for members, population in zip(learner.members, learner.populations, strict=True):
            seats = [(place, member) for member in members]
            listed = found.setdefault(population.n_losses, [])
            listed.append((population, seats, learner.budget.seed))
    return [
        _Council(
            [population for population, *_ in listed],
            [seat for _, seats, _ in listed for seat in seats],
            [seed for _, seats, seed in listed for _ in seats],
            learners[0].batches.window,
        )
        for listed in found.values()
    ]


class _Batches:
    """The order of rows and the number of each step, functions of seed and epoch."""

    def __init__(self, n: int, budget: Budget) -> None:
        self._n, self._seed = n, budget.seed
        self._size = min(budget.batch_size or n, n)
        whole, rest = divmod(n, self._size)
        self.per_epoch = whole + (2 * rest >= self._size)
        self.window = self.per_epoch if self.per_epoch > 1 else _FULL_BATCH_WINDOW
        """Steps over which strategies see means: an epoch."""

    def of(self, epoch: int) -> Iterator[tuple[int, Tensor]]:
        generator = torch.Generator().manual_seed(_mix(self._seed, 1 + epoch))
        order = torch.randperm(self._n, generator=generator)
        batches = order.split(self._size)[: self.per_epoch]
        return enumerate(batches, start=epoch * self.per_epoch)


def _mix(seed: int, place: int) -> int:
    """A seed for each place of a run; places of another run do not meet it."""
    return (seed * 0x9E3779B97F4A7C15 + place * 0xBF58476D1CE4E5B9) % 2**63
