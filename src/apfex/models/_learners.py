"""Members that learn: everything with a member axis, and the step that they take together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, final

import torch
from torch import Tensor

from apfex.distributed import Workers, chosen_workers
from apfex.models._adam import Adam
from apfex.models._checkpoint import check_tensor
from apfex.models._member_losses import cross_entropy_gradient
from apfex.models._recorded_step import RecordedStep, can_record
from apfex.models._rows import TrainingRows
from apfex.models._shared_training import share_first, whole_gradients
from apfex.models._stacked_mlp import Population

_FIRST_STEPS = 2
"""Taken one by one before a step is recorded: they set up what a device sets up once."""


class Measured(Protocol):
    """What was measured of a batch."""

    @property
    def n_losses(self) -> int:
        """Number of losses m."""
        ...

    def told(self) -> Tensor | None:
        """Return what decides on weights [b, m] of the losses; None where all weigh 1."""
        ...

    def gradient(self, weights: Tensor) -> Tensor:
        """Return the gradient by the scores, with weights [b, m] of the losses."""
        ...


class Gradient(Protocol):
    """By the scores of the members that still learn; rows are on the device, decisions are not."""

    def measure(self, scores: Tensor, batch: TrainingRows) -> Measured: ...

    def foreseen(self) -> Tensor | None: ...

    def decide(self, told: Tensor) -> Tensor: ...

    def of_members(self, members: Tensor) -> Self: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(
        self, state: Mapping[str, Any], device: torch.device, counts: Sequence[Sequence[int]]
    ) -> None: ...


@final
class PlainGradient:
    """The gradient of the cross-entropy, alike for all members."""

    def measure(self, scores: Tensor, batch: TrainingRows) -> PlainGradient.Slopes:
        """Return it, as there is nothing to decide."""
        return PlainGradient.Slopes(cross_entropy_gradient(scores, batch))

    def foreseen(self) -> None:
        """Nothing is decided."""

    def decide(self, told: Tensor) -> Tensor:
        """Return what is told: there is one loss."""
        return told

    def of_members(self, members: Tensor) -> PlainGradient:  # noqa: ARG002
        """Return the same."""
        return self

    def state_dict(self) -> dict[str, Any]:
        """Nothing is remembered."""
        return {}

    def load_state_dict(
        self, state: Mapping[str, Any], device: torch.device, counts: Sequence[Sequence[int]]
    ) -> None:
        """There is nothing to load."""

    @final
    @dataclass(frozen=True, eq=False)
    class Slopes:
        """By the scores [b, n] or [b, n, c]."""

        slopes: Tensor
        n_losses: int = 1

        def told(self) -> None:
            """Nothing is to be decided."""

        def gradient(self, weights: Tensor) -> Tensor:  # noqa: ARG002
            """Return the slopes."""
            return self.slopes


@final
@dataclass(eq=False)
class Learners:
    """Everything that has a member axis, of the members that still learn.

    A step has two halves, :meth:`measure` and :meth:`move`, between which it is decided what each
    loss weighs. On a GPU both are recorded once for each size of a batch, and replayed.
    """

    members: Tensor
    population: Population
    rows: TrainingRows
    gradient: Gradient
    optimizer: Adam
    _team: Workers | None = field(default_factory=chosen_workers)
    _steps: int = 0
    _recorded: dict[int, RecordedStep] = field(default_factory=dict)

    @staticmethod
    def of(
        population: Population, gradient: Gradient, rows: TrainingRows, weight_decay: float
    ) -> Learners:
        """All members, at the beginning."""
        members = torch.arange(population.n_members, device=rows.x.device)
        optimizer = Adam(population.parameters(), weight_decay)
        return Learners(members, population, rows, gradient, optimizer)

    def learn(self, batches: Iterator[tuple[Tensor, float]]) -> None:
        """Learn from batches of rows, each with its learning rate."""
        self.population.train()
        for chosen, learning_rate in batches:
            self._step(chosen, learning_rate)
            self._steps += 1
        self._finish()
        if self._team is not None:
            share_first(self.population, self._team)
        self.population.train(False)

    def measure(self, chosen: Tensor) -> tuple[Tensor, Measured]:
        """Scores of some rows, by which the parameters can be moved, and what is known of them."""
        team = self._team
        batch = self.rows.take(chosen if team is None else team.part(chosen), team)
        scores = self.population.scores(batch.x)
        return scores, self.gradient.measure(scores.detach(), batch)

    def move(
        self,
        scores: Tensor,
        found: Measured,
        weights: Tensor,
        learning_rate: float | Tensor,
    ) -> None:
        """Move the parameters against the gradient."""
        by_scores = found.gradient(weights).view_as(scores)
        parameters = self.population.parameters()
        # a scalar: to check the shape of a gradient that is given, torch imports SymPy
        total = (scores * by_scores).sum()
        gradients = torch.autograd.grad(total, parameters, allow_unused=True)
        self.optimizer.step(whole_gradients(gradients, self._team), learning_rate)

    def copy_to(self, population: Population) -> None:
        """Copy what was learned into the population of all members."""
        if self.population is not population:
            for own, everyone in zip(self.population.values(), population.values(), strict=True):
                everyone[self.members] = own

    def keep(self, going: Tensor) -> Learners:
        """Return those of all members [b] that go on."""
        kept = going[self.members].nonzero().squeeze(1)
        if len(kept) == len(self.members):
            return self
        population = self.population.of_members(kept)
        return Learners(
            self.members[kept],
            population,
            self.rows.of_members(kept),
            self.gradient.of_members(kept),
            self.optimizer.of_members(kept, population.parameters()),
        )

    def state_dict(self) -> dict[str, Any]:
        """What it remembers beside the population of all members, for a checkpoint."""
        return {
            "members": self.members,
            "optimizer": self.optimizer.state_dict(),
            "gradient": self.gradient.state_dict(),
        }

    def restored(self, state: Mapping[str, Any], going: Tensor) -> Learners:
        """Those of a checkpoint that go on, of all members [b], whose population has its values."""
        device = self.members.device
        members = state["members"]
        check_tensor(members, torch.int64, going.nonzero().squeeze(1).shape, "members")
        if not members.equal(going.nonzero().squeeze(1).cpu()):
            raise ValueError(f"members must be those that go on, got {members.tolist()}")
        learners = self.keep(going)
        learners.optimizer.load_state_dict(state["optimizer"])
        b, c = len(members), self.population.n_outputs
        counts = [(b, *([c] if c > 1 else []), k, 4) for k in self.rows.n_groups]
        learners.gradient.load_state_dict(state["gradient"], device, counts)
        return learners

    def _step(self, chosen: Tensor, learning_rate: float) -> None:
        size = len(chosen)
        is_shared = self._team is not None
        if self._steps < _FIRST_STEPS or is_shared or not can_record(self.population, chosen):
            self._finish()
            self._step_once(chosen, learning_rate)
            return
        if size not in self._recorded:
            self._recorded[size] = RecordedStep(self, chosen)
        self._finish(but=self._recorded[size])
        self._recorded[size].play(chosen, learning_rate)

    def _step_once(self, chosen: Tensor, learning_rate: float) -> None:
        scores, found = self.measure(chosen)
        told = found.told()
        weights = torch.ones(len(scores), found.n_losses, device=scores.device)
        if told is not None:
            weights = self.gradient.decide(told.cpu()).to(scores.device)
        # A GPU's fused kernel rounds a rate that is a tensor, as that of a recording is.
        rate = (
            torch.tensor(learning_rate, device=chosen.device) if chosen.is_cuda else learning_rate
        )
        self.move(scores, found, weights, rate)

    def _finish(self, but: RecordedStep | None = None) -> None:
        """Let all recordings take in what was told of their last step."""
        for recorded in self._recorded.values():
            if recorded is not but:
                recorded.finish()
