"""Networks that learn group and label together from rows in chunks; learners of some columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from torch import nn

from apfex.chunks._rows import Chunk, ChunkedLearner, ChunkedRows, JointTargets
from apfex.models import (
    DECAY_ROWS,
    NOWHERE,
    Adam,
    Checkpoint,
    ColumnsModel,
    StackedMLP,
    TrainingRows,
    TrainingSettings,
    check_count,
    cosine_rate,
    cross_entropy_gradient,
    own_randomness,
)

_MOST_STEPS = 2**53
_REPEATED = 4
"""At most one over this of a batch are rows that are repeated so that their group is present."""


@final
@dataclass(frozen=True)
class ChunkedNetworkLearner:
    """Networks or linear models, one for each fold, trained as one population on batches.

    Attributes
    ----------
    hidden : tuple of int
        As for the learner of rows in memory, empty for linear models.
    training : TrainingSettings
    device : torch.device

    Notes
    -----
    Batches are dealt from a buffer that is itself a sample of all rows. The rows of each group and
    label are spread evenly over the batches of a buffer; where there are fewer of them than
    batches, they are repeated in several and count for less in each, so that a rare group is
    present in nearly every batch, and no row counts for more than it should.
    """

    hidden: tuple[int, ...]
    training: TrainingSettings
    device: torch.device

    @property
    def steps(self) -> int:
        """Number of epochs."""
        return self.training.epochs

    def fit(
        self, rows: ChunkedRows, on_step: Callable[[], None], checkpoint: Checkpoint = NOWHERE
    ) -> list[nn.Module]:
        """Train a network for each fold."""
        n, (k, c) = int(rows.counts("training").sum()), rows.joint.shape
        training = self.training
        if not self.hidden:
            training = replace(training, weight_decay=min(1.0, DECAY_ROWS / n))
        made = StackedMLP(rows.n_inputs, k * c, self.hidden, rows.n_folds, training.seed)
        population = made.to(self.device)
        optimizer = Adam(population.parameters(), training.weight_decay)
        steps = training.epochs * max(1, n / training.batch_size)

        def take(state: Any) -> tuple[int, int]:
            population.load_state_dict(state["population"])
            optimizer.load_state_dict(state["optimizer"])
            return (
                check_count(state["epochs"], 1, training.epochs, "epochs"),
                check_count(state["steps"], 1, _MOST_STEPS, "steps"),
            )

        first, done = checkpoint.read("training", take) or (0, 0)
        with own_randomness(training.seed, self.device):
            for epoch in range(first, training.epochs):
                population.train()
                for batch in batches(rows, training, epoch):
                    rate = cosine_rate(training.learning_rate, min(1.0, done / steps))
                    batch = replace(batch, targets=rows.joint.of(batch.targets))
                    _learn(population, optimizer, batch.to(self.device), rate)
                    done += 1
                population.train(False)
                on_step()
                if checkpoint.is_due(finished=epoch + 1 == training.epochs):
                    state = {
                        "epochs": epoch + 1,
                        "steps": done,
                        "population": population.state_dict(),
                        "optimizer": optimizer.state_dict(),
                    }
                    checkpoint.write("training", state)
        return [population.member(fold).cpu() for fold in range(rows.n_folds)]


def _learn(population: StackedMLP, optimizer: Adam, batch: Chunk, learning_rate: float) -> None:
    """One step of all members, each without the rows of its own fold."""
    folds, parameters = torch.arange(population.n_members), population.parameters()
    weight = batch.weight.to(batch.x) * (batch.folds != folds.to(batch.folds).unsqueeze(1))
    no_codes = batch.folds.new_empty(0, len(batch))
    rows = TrainingRows(batch.x, batch.targets, no_codes, (), weight)
    scores = population.scores(batch.x)
    for parameter in parameters:
        parameter.grad = None
    torch.autograd.backward(scores, cross_entropy_gradient(scores.detach(), rows))
    optimizer.step([parameter.grad for parameter in parameters], learning_rate)


def batches(rows: ChunkedRows, training: TrainingSettings, epoch: int) -> Iterator[Chunk]:
    """All training rows in batches of an epoch, in each its share of every group and label."""
    for place, buffer in enumerate(rows.mixed(training.seed, epoch)):
        generator = np.random.default_rng([training.seed, epoch, place])
        yield from _batches_of(buffer, training.batch_size, generator)
        del buffer  # before the next one is read


def _batches_of(buffer: Chunk, size: int, generator: np.random.Generator) -> Iterator[Chunk]:
    n_batches = max(1, round(len(buffer) / size))
    targets, spare = buffer.targets.numpy(), size // _REPEATED
    chosen, dealt, times = deal_batches(targets, n_batches, spare, generator)
    order = np.argsort(dealt, kind="stable")
    ends = np.cumsum(np.bincount(dealt, minlength=n_batches))[:-1]
    for part in np.split(order, ends):
        batch = buffer.take(torch.from_numpy(chosen[part]))
        yield replace(batch, weight=batch.weight / torch.from_numpy(times[part]))


def deal_batches(
    targets: np.ndarray, n_batches: int, spare: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places of rows, the batch of each place, and how often the row of each is dealt.

    Every target is spread evenly over the batches; one with fewer rows than batches is dealt
    several times, in all at most ``spare`` places of a batch beyond those of the rows themselves.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> chosen, dealt, times = deal_batches(np.array([0, 0, 0, 0, 1]), 2, 8, generator)
    >>> sorted(dealt[chosen == 4].tolist()), times[chosen == 4].tolist()
    ([0, 1], [2.0, 2.0])
    """
    counts = np.bincount(targets)
    rare = (counts > 0) & (counts < n_batches)
    wanted = np.where(rare, n_batches // np.maximum(counts, 1), 1)
    if rare.sum() > spare:  # so many groups that batches would be all repetition
        wanted = np.maximum(1, wanted * spare // int(rare.sum()))
    times = wanted[targets]
    chosen = np.repeat(np.arange(len(targets)), times)
    # at random within each target, then dealt one by one along all of them: the copies of a row
    # are apart by as many places as its target has rows, so that no batch gets one twice
    copies = np.arange(len(chosen)) - np.repeat(np.cumsum(times) - times, times)
    order = np.lexsort((generator.random(len(targets))[chosen], copies, targets[chosen]))
    dealt = np.empty(len(chosen), dtype=np.int64)
    dealt[order] = (np.arange(len(chosen)) + generator.integers(n_batches)) % n_batches
    return chosen, dealt, times[chosen].astype(np.float64)


@final
@dataclass(frozen=True)
class ChunkedColumnsLearner:
    """A learner that is given some of the inputs only.

    Attributes
    ----------
    learner : ChunkedLearner
    start, stop : int
        Which inputs, as in :class:`ColumnsModel`.
    """

    learner: ChunkedLearner
    start: int
    stop: int

    @property
    def steps(self) -> int:
        """Those of the learner."""
        return self.learner.steps

    def fit(
        self, rows: ChunkedRows, on_step: Callable[[], None], checkpoint: Checkpoint = NOWHERE
    ) -> list[nn.Module]:
        """Fit the learner to its inputs."""
        own = _SomeColumns(rows, self.start, self.stop)
        models = self.learner.fit(own, on_step, checkpoint)
        return [ColumnsModel(model, self.start, self.stop) for model in models]


@dataclass(frozen=True, eq=False)
class _SomeColumns:
    """Rows with some of their inputs."""

    rows: ChunkedRows
    start: int
    stop: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape

    @property
    def joint(self) -> JointTargets:
        return self.rows.joint

    @property
    def n_inputs(self) -> int:
        return self.stop - self.start

    @property
    def n_folds(self) -> int:
        return self.rows.n_folds

    def counts(self, part: Any) -> np.ndarray:
        return self.rows.counts(part)

    def chunks(self, part: Any) -> Iterator[Chunk]:
        return map(self._own, self.rows.chunks(part))

    def mixed(self, seed: int, epoch: int) -> Iterator[Chunk]:
        return map(self._own, self.rows.mixed(seed, epoch))

    def add_up(self, part: Any, measure: Callable[[Chunk], np.ndarray]) -> np.ndarray:
        return self.rows.add_up(part, lambda chunk: measure(self._own(chunk)))

    def _own(self, chunk: Chunk) -> Chunk:
        return replace(chunk, x=chunk.x[:, self.start : self.stop].contiguous())
