"""The loop: b networks on the same batches, each with losses of its own, combined by weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.rates import GroupIndex
from apfex_reproduction.baselines._losses import LossBatch, evaluate
from apfex_reproduction.baselines._networks import Networks, Passed
from apfex_reproduction.baselines._weigh import Plan, Solved, Strategic, strategic_groups

_BETAS, _EPSILON = (0.9, 0.999), 1e-8
_LN2 = 0.6931471805599453
"""Cross-entropy of a model that knows nothing."""
_FLOOR = 0.05
"""Smallest scale of a loss where scales are the largest losses at the start."""
_FULL_BATCH_WINDOW = 10
"""Steps of a window where an epoch is a single step."""


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

    def take(self, rows: Tensor) -> tuple[Tensor, LossBatch]:
        """Inputs of some of the rows, and the rest that losses need."""
        parts = zip(self.codes[:, rows], self.n_groups, strict=True)
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        indexes = [GroupIndex(codes, None, k) for codes, k in parts]
        return self.x[rows], LossBatch(self.y[rows], indexes, weight)


def train(
    plans: Sequence[Plan],
    lesson: Lesson,
    budget: Budget,
    on_epoch: Callable[[int, Networks], None],
) -> list[Strategic | Solved]:
    """Train a network for each plan; all start alike and see the same batches and dropout.

    Members do not touch each other: one alone learns the same. Returned is the course of those
    that weigh several losses.
    """
    networks = Networks(
        lesson.x.shape[1], budget.hidden, budget.dropout, len(plans), _mix(budget.seed, 0)
    )
    learner = _Learner(networks, plans, lesson, budget)
    for epoch in range(1, budget.epochs + 1):
        for step, rows in learner.batches.of(epoch):
            learner.step(step, rows)
        on_epoch(epoch, networks)
    return [*learner.strategic, *learner.solved.values()]


class _Batches:
    """The order of rows and the number of each step, functions of seed and epoch."""

    def __init__(self, n: int, budget: Budget) -> None:
        self._n, self._seed = n, budget.seed
        self._size = min(budget.batch_size or n, n)
        whole, rest = divmod(n, self._size)
        self._per_epoch = whole + (2 * rest >= self._size)
        self.window = self._per_epoch if self._per_epoch > 1 else _FULL_BATCH_WINDOW
        """Steps over which strategies see means: an epoch."""

    def of(self, epoch: int) -> Iterator[tuple[int, Tensor]]:
        generator = torch.Generator().manual_seed(_mix(self._seed, 1 + epoch))
        order = torch.randperm(self._n, generator=generator)
        batches = order.split(self._size)[: self._per_epoch]
        return enumerate(batches, start=epoch * self._per_epoch)


class _Learner:
    """Members and their r losses, listed one after another: those of a member together."""

    def __init__(
        self, networks: Networks, plans: Sequence[Plan], lesson: Lesson, budget: Budget
    ) -> None:
        self._networks, self._plans, self._lesson = networks, plans, lesson
        self.batches = _Batches(len(lesson.y), budget)
        self._seed, self._generator = budget.seed, torch.Generator()
        self._terms = list(dict.fromkeys(term for plan in plans for term in plan.terms))
        self._list_losses()
        self._adam = Adam(networks.values, budget.learning_rate)
        self._rate = budget.learning_rate
        self._plain_steps = torch.tensor([plan.steps == "sgd" for plan in plans])
        self.strategic = strategic_groups(plans, self.batches.window, budget.seed)
        self.solved = {
            member: Solved(plan.solver, member, plan.n_losses, self.batches.window)
            for member, plan in enumerate(plans)
            if plan.solver is not None
        }
        self._scales = self._starting_scales()

    def step(self, step: int, rows: Tensor) -> None:
        """One batch: gradients, weights, and a step."""
        passed, values, slopes = self._losses(step, rows)
        slopes = slopes / self._scales.unsqueeze(-1)
        gradients = self._networks.pull_back(passed, slopes, self._members, self._passes)
        direction = torch.empty_like(self._networks.values)
        for member, plan in enumerate(self._plans):
            places = self._places[member]
            if member in self.solved:
                scaled = values[places] / self._scales[places]
                direction[member] = self.solved[member].direction(scaled, gradients[places])
            elif plan.strategy is None:
                direction[member] = gradients[places][0]
        for group in self.strategic:
            places = torch.stack([self._places[member] for member in group.members])
            scaled = values[places] / self._scales[places]
            direction[group.members] = group.direction(scaled, gradients[places])
        self._move(direction)

    def _move(self, direction: Tensor) -> None:
        if self._plain_steps.any():
            plain = self._plain_steps.unsqueeze(1)
            self._adam.step(torch.where(plain, 0.0, direction))
            self._networks.values.sub_(torch.where(plain, self._rate * direction, 0.0))
        else:
            self._adam.step(direction)

    def _list_losses(self) -> None:
        """Member, pass and number (0: the cross-entropy) of each of the r losses."""
        listed = [
            (member, slot if plan.own_passes else 0, number)
            for member, plan in enumerate(self._plans)
            for slot, number in enumerate([0, *(1 + self._terms.index(t) for t in plan.terms)])
        ]
        self._members, self._passes, self._numbers = torch.tensor(listed).T.contiguous()
        self._n_passes = int(self._passes.max()) + 1
        self._places = [
            torch.nonzero(self._members == member).squeeze(1) for member in range(len(self._plans))
        ]

    def _losses(
        self, step: int, rows: Tensor, *, dropout: bool = True
    ) -> tuple[Passed, Tensor, Tensor]:
        """The forward pass, values [r], and slopes by the scores [r, n]."""
        x, batch = self._lesson.take(rows)
        masks = None
        if dropout:
            self._generator.manual_seed(_mix(self._seed, -1 - step))
            masks = self._networks.draw_masks(len(x), self._n_passes, self._generator)
        passed = self._networks.forward(x, masks)
        losses = evaluate(self._terms, passed.scores, batch)
        place = (self._passes if dropout else 0, self._members, self._numbers)
        return passed, losses.values[place], losses.slopes[place]

    def _starting_scales(self) -> Tensor:
        """What each loss [r] is divided by; 1 for a loss that is alone."""
        kinds = [plan.scales if plan.compared else "none" for plan in self._plans]
        scales = torch.ones(len(self._members))
        for kind, measured in (("mean", self._mean_losses), ("largest", self._largest_losses)):
            of_kind = torch.tensor([own == kind for own in kinds])[self._members]
            if of_kind.any():
                scales = torch.where(of_kind, measured(), scales)
        for member, own in enumerate(kinds):
            if own == "range":
                weights = [term.task_weight for term in self._plans[member].terms]
                scales[self._places[member]] = _LN2 * torch.tensor([1.0, *weights])
                scales[self._places[member][1:]] += 1.0
        return scales

    def _mean_losses(self) -> Tensor:
        """Over the batches of an epoch, dropout on, as in the code of Padh et al."""
        seen = [self._losses(step, rows)[1] for step, rows in self.batches.of(0)]
        return torch.stack(seen).mean(0)

    def _largest_losses(self) -> Tensor:
        """Over the batches of an epoch, dropout off."""
        seen = [self._losses(0, rows, dropout=False)[1] for _, rows in self.batches.of(0)]
        return torch.stack(seen).amax(0).clamp(min=_FLOOR)


@final
class Adam:
    """Adam at a constant rate, for one tensor that is changed in place.

    The numbers of ``torch.optim.Adam``, whose first step imports for seconds.
    """

    def __init__(self, values: Tensor, learning_rate: float) -> None:
        self._values, self._rate, self._steps = values, learning_rate, 0
        self._mean, self._square = torch.zeros_like(values), torch.zeros_like(values)

    def step(self, gradient: Tensor) -> None:
        """Move the values against the gradient."""
        first, second = _BETAS
        self._steps += 1
        self._mean.lerp_(gradient, 1 - first)
        self._square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        root = self._square.sqrt().div_((1 - second**self._steps) ** 0.5).add_(_EPSILON)
        rate = self._rate / (1 - first**self._steps)
        self._values.addcdiv_(self._mean, root, value=-rate)


def _mix(seed: int, place: int) -> int:
    """A seed for each place of a run; places of another run do not meet it."""
    return (seed * 0x9E3779B97F4A7C15 + place * 0xBF58476D1CE4E5B9) % 2**63
