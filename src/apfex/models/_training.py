"""Training a population: minibatches, one backward pass for all members, early stopping."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, Self, final

import torch
from torch import Tensor

from apfex.history import History
from apfex.models._adam import Adam
from apfex.models._aims import Aims
from apfex.models._member_gradient import MemberGradient, MemberSchedule
from apfex.models._member_losses import cross_entropy_gradient
from apfex.models._rows import TrainingRows
from apfex.models._stacked_mlp import Population
from apfex.objectives import Aggregate
from apfex.relaxations import Step, identity_step
from apfex.strategies import EqualWeights, Strategy


@final
@dataclass(frozen=True)
class TrainingSettings:
    """How long, how fast and in which batches a population is trained.

    Attributes
    ----------
    epochs, batch_size : int
        A last batch of less than half the size is left out of its epoch.
    learning_rate, weight_decay : float
        Of Adam; the learning rate falls along a cosine.
    step : callable
        Soft step from probabilities to decisions; the probability itself by default.
    aggregate : str
        How the differences of a rate between groups become one gap.
    seed : int
        Of the order of the rows.
    patience : int or None
        A member stops after so many evaluations in a row without a new best loss, as ``on_epoch``
        of :func:`train_population` reports it, and ends with the parameters of its best one. None:
        all members learn to the end, and keep the parameters of the last epoch.

    Examples
    --------
    >>> TrainingSettings(epochs=3).batch_size
    1024
    """

    epochs: int = 12
    batch_size: int = 1024
    learning_rate: float = 5e-3
    weight_decay: float = 1e-2
    step: Step = identity_step
    aggregate: Aggregate = "rms"
    seed: int = 0
    patience: int | None = None

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be positive, got {self.learning_rate}.")
        if not self.weight_decay >= 0:
            raise ValueError(f"weight_decay must be at least 0, got {self.weight_decay}.")
        if self.patience is not None and not self.patience >= 1:
            raise ValueError(f"patience must be at least 1 or None, got {self.patience}.")


def train_population(
    population: Population,
    rows: TrainingRows,
    settings: TrainingSettings | None = None,
    *,
    aims: Aims | None = None,
    strategies: Sequence[Strategy] = (EqualWeights(),),
    on_epoch: Callable[[int], Tensor | None] | None = None,
) -> History | None:
    """Train all members together, each towards its own aim.

    Parameters
    ----------
    population : Population
        Trained in place: :class:`StackedMLP` or :class:`StackedModules`.
    rows : TrainingRows
    settings : TrainingSettings, optional
    aims : Aims, optional
        Weights [b, a * r], for each grouping the r rates, and bounds; plain models without.
    strategies : sequence of Strategy
        What decides once members have arrived at their aims, in the last two fifths of the
        epochs; they are dealt to them in turn. Equal weights are the aims themselves.
    on_epoch : callable, optional
        Called after each epoch with the number of epochs done; it may evaluate the population.
        With ``patience`` it returns a loss per member [b] to minimise, for instance on validation
        rows, or None in an epoch without evaluation. Members keep their numbers; the losses of
        those that have stopped are ignored.

    Returns
    -------
    History or None
        What strategies decided, and why; None without aims. See :class:`MemberGradient`.

    Notes
    -----
    Towards its aim member i minimises ``CE + sum_j w[i, j] gap_j``. The whole population needs one
    backward pass, whatever decides. Members do not influence each other: one alone learns the same
    (but for bounds that are shares of the first one's gaps), and those that stop leave the stack.

    Examples
    --------
    >>> from apfex.models import StackedMLP, spread_aims
    >>> x, y = torch.randn(64, 3), torch.arange(64) % 2
    >>> rows = TrainingRows(x, y, (torch.arange(64) % 4).unsqueeze(0), (4,))
    >>> population = StackedMLP(3, 1, (8,), n_members=4, seed=0)
    >>> settings = TrainingSettings(epochs=2, batch_size=32)
    >>> train_population(population, rows, settings, aims=spread_aims(("dp",), 4)).step
    4
    """
    settings = settings or TrainingSettings()
    _check(population, aims, rows, settings, on_epoch)
    batches = _Batches(len(rows.y), settings)
    gradient, trace = _Plain(), None
    if aims is not None:
        gradient = _driven(aims, strategies, settings, batches.per_epoch, rows)
        trace = gradient.trace
    learners = _Learners.of(population, gradient, rows, settings)
    stopping = EarlyStopping(population, settings.patience) if settings.patience else None
    with own_randomness(settings.seed, rows.x.device):
        for epoch in range(settings.epochs):
            learners.learn(batches.of(epoch, rows.x.device))
            learners.copy_to(population)
            losses = None if on_epoch is None else on_epoch(epoch + 1)
            if stopping is None or losses is None:
                continue
            learners = learners.keep(stopping.update(losses))
            if not len(learners.members):
                return trace
    if stopping is not None:
        stopping.restore()
    return trace


class _Gradient(Protocol):
    """By the scores of the members that still learn."""

    def __call__(self, scores: Tensor, batch: TrainingRows) -> Tensor: ...

    def of_members(self, members: Tensor) -> Self: ...


class _Plain:
    """The gradient of the cross-entropy, alike for all members."""

    def __call__(self, scores: Tensor, batch: TrainingRows) -> Tensor:
        return cross_entropy_gradient(scores, batch)

    def of_members(self, members: Tensor) -> _Plain:  # noqa: ARG002
        return self


def _driven(
    aims: Aims,
    strategies: Sequence[Strategy],
    settings: TrainingSettings,
    per_epoch: int,
    rows: TrainingRows,
) -> MemberGradient:
    return MemberGradient(
        aims.to(rows.x.device),
        strategies,
        MemberSchedule.of(settings.epochs),
        per_epoch,
        settings.step,
        settings.aggregate,
        settings.seed,
    )


def _check(
    population: Population,
    aims: Aims | None,
    rows: TrainingRows,
    settings: TrainingSettings,
    on_epoch: Callable[[int], Tensor | None] | None,
) -> None:
    b, n = population.n_members, len(rows.y)
    n_gaps = 0 if aims is None else len(rows.n_groups) * len(aims.rates)
    if aims is not None and list(aims.weights.shape) != [b, n_gaps]:
        raise ValueError(
            f"aims must have weights of shape [{b}, {n_gaps}] (members, groupings times rates), "
            f"got {list(aims.weights.shape)}."
        )
    shape = [n] if rows.sample_weight is None else list(rows.sample_weight.shape)
    if shape not in ([n], [b, n]):
        raise ValueError(
            f"sample_weight must have shape [{n}] (rows) or [{b}, {n}] (members, rows), got "
            f"{shape}."
        )
    if settings.patience is not None and on_epoch is None:
        raise ValueError(
            f"on_epoch must return losses for patience={settings.patience}, got None; pass one, or "
            "patience=None."
        )


@final
class EarlyStopping:
    """Which members go on learning, and the parameters of each at its best evaluation.

    Parameters
    ----------
    population : Population
        Members that stop get their best parameters back.
    patience : int
        A member stops after so many evaluations in a row without a new best.
    """

    def __init__(self, population: Population, patience: int) -> None:
        self._population, self._patience = population, patience
        device, b = population.parameters()[0].device, population.n_members
        self._best = torch.full((b,), torch.inf, dtype=torch.float64, device=device)
        self._waited = torch.zeros(b, dtype=torch.int64, device=device)
        self._going = torch.ones(b, dtype=torch.bool, device=device)
        self._values: list[Tensor] = []

    def update(self, losses: Tensor) -> Tensor:
        """Take in a loss per member [b], and return which members go on [b].

        The losses of members that stopped before do not count. NaN is no improvement.
        """
        losses = torch.as_tensor(losses).detach().to(self._best)
        if losses.shape != self._best.shape:
            raise ValueError(
                f"on_epoch must return one loss per member ({len(self._best)}), got shape "
                f"{list(losses.shape)}."
            )
        now = self._population.values()
        self._values = self._values or [value.clone() for value in now]
        better = losses < self._best
        self._best = torch.where(better, losses, self._best)
        self._waited = torch.where(better, 0, self._waited + 1)
        _copy(now, self._values, better)
        stopped = self._going & (self._waited >= self._patience)
        _copy(self._values, now, stopped)
        self._going = self._going & ~stopped
        return self._going

    def restore(self) -> None:
        """Give the members that still learn the parameters of their best evaluation."""
        if self._values:
            _copy(self._values, self._population.values(), self._going)


def _copy(source: list[Tensor], target: list[Tensor], members: Tensor) -> None:
    for new, old in zip(source, target, strict=True):
        old[members] = new[members]


@dataclass(frozen=True, eq=False)
class _Learners:
    """Everything that has a member axis, of the members that still learn."""

    members: Tensor
    population: Population
    rows: TrainingRows
    gradient: _Gradient
    optimizer: Adam

    @staticmethod
    def of(
        population: Population,
        gradient: _Gradient,
        rows: TrainingRows,
        settings: TrainingSettings,
    ) -> _Learners:
        return _Learners(
            torch.arange(population.n_members, device=rows.x.device),
            population,
            rows,
            gradient,
            Adam(population.parameters(), settings.weight_decay),
        )

    def learn(self, batches: Iterator[tuple[Tensor, float]]) -> None:
        """Learn from batches of rows, each with its learning rate."""
        self.population.train()
        parameters = self.population.parameters()
        for chosen, learning_rate in batches:
            batch = self.rows.take(chosen)
            scores = self.population.scores(batch.x)
            for parameter in parameters:
                parameter.grad = None
            torch.autograd.backward(scores, self.gradient(scores.detach(), batch))
            self.optimizer.step([parameter.grad for parameter in parameters], learning_rate)
        self.population.train(False)

    def copy_to(self, population: Population) -> None:
        """Copy what was learned into the population of all members."""
        if self.population is not population:
            for own, everyone in zip(self.population.values(), population.values(), strict=True):
                everyone[self.members] = own

    def keep(self, going: Tensor) -> _Learners:
        """Return those of all members [b] that go on."""
        kept = going[self.members].nonzero().squeeze(1)
        if len(kept) == len(self.members):
            return self
        population = self.population.of_members(kept)
        return _Learners(
            self.members[kept],
            population,
            self.rows.of_members(kept),
            self.gradient.of_members(kept),
            self.optimizer.of_members(kept, population.parameters()),
        )


@contextmanager
def own_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Let dropout and the like follow the seed, and leave the caller's generators alone."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


class _Batches:
    """The order of the rows, a function of seed and epoch, and the learning rate of each batch."""

    def __init__(self, n: int, settings: TrainingSettings) -> None:
        self._n, self._settings = n, settings
        self._size = min(settings.batch_size, n)
        whole, rest = divmod(n, self._size)
        self.per_epoch = whole + (2 * rest >= self._size)

    def of(self, epoch: int, device: torch.device) -> Iterator[tuple[Tensor, float]]:
        generator = torch.Generator().manual_seed(self._settings.seed * 1_000_003 + epoch)
        order = torch.randperm(self._n, generator=generator).to(device)
        batches = order.split(self._size)[: self.per_epoch]
        for step, batch in enumerate(batches, start=epoch * self.per_epoch):
            yield batch, self._learning_rate(step)

    def _learning_rate(self, step: int) -> float:
        settings, n_steps = self._settings, self._settings.epochs * self.per_epoch
        return cosine_rate(settings.learning_rate, step / n_steps)


def cosine_rate(first: float, done: float) -> float:
    """Learning rate after a share of the training: from the first down to 0 along a cosine."""
    return first * (1 + math.cos(math.pi * done)) / 2
