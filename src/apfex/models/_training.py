"""The loop: minibatches, and one backward pass for all members and all their aims."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from apfex.models._adam import StackedAdamW
from apfex.models._early_stopping import EarlyStopping
from apfex.models._gap_weights import Aims
from apfex.models._penalized_loss import Pressure
from apfex.models._population import Population
from apfex.models._rows import TrainingRows
from apfex.objectives import Aggregate
from apfex.relaxations import Step, identity_step


@final
@dataclass(frozen=True)
class TrainingSettings:
    """How long, how fast, in which portions.

    Attributes
    ----------
    epochs, batch_size : int
        A last batch of less than half the size is left out of its epoch.
    learning_rate, weight_decay : float
        Of AdamW; the rate falls along a cosine.
    step : callable
        Soft step from probabilities to decisions; the probability itself by default.
    aggregate : str
        How the differences of a rate are summed up.
    seed : int
        Of the order of the rows.
    patience : int or None
        A member stops after so many looks in a row without a new best loss, as ``on_epoch`` of
        :func:`train_population` reports it, and ends with the values of its best look. None: all
        learn to the end, and end with the values they have then.

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
    aims: Aims,
    rows: TrainingRows,
    settings: TrainingSettings | None = None,
    on_epoch: Callable[[int], Tensor | None] | None = None,
) -> None:
    """Train all members together, each towards its own aim.

    Parameters
    ----------
    population : Population
        Trained in place.
    aims : Aims
        Weights [b, a * r]: for each grouping the r rates.
    rows : TrainingRows
    settings : TrainingSettings, optional
    on_epoch : callable, optional
        Called with the number of epochs done, after each; may look at the population. With
        ``patience`` it reports a loss per member [b] to minimise, for instance on validation
        rows, or None in an epoch that does not count as a look. Members keep their numbers; the
        losses of those that have stopped are not read.

    Notes
    -----
    Member i minimises ``CE + sum_j w[i, j] gap_j``. The gaps are functions of the running group
    masses, so their gradient by a row's score is an entry of a small table times the slope of the
    soft step, and the whole population needs one backward pass. Members do not touch each
    other: one alone learns the same, and those that stop leave the stack.

    Examples
    --------
    >>> from apfex.models import StackedMLP, weight_ladder
    >>> x, y = torch.randn(64, 3), torch.arange(64) % 2
    >>> rows = TrainingRows(x, y, (torch.arange(64) % 4).unsqueeze(0), (4,))
    >>> population = StackedMLP(3, 1, (8,), n_members=4, seed=0)
    >>> settings = TrainingSettings(epochs=2, batch_size=32)
    >>> train_population(population, weight_ladder(("dp",), 4), rows, settings)
    """
    settings = settings or TrainingSettings()
    _check(population, aims, rows, settings, on_epoch)
    batches = _Batches(len(rows.y), settings)
    learners = _Learners.of(population, aims, rows, settings, batches.per_epoch)
    stopping = EarlyStopping(population, settings.patience) if settings.patience else None
    with _own_randomness(settings.seed, rows.x.device):
        for epoch in range(settings.epochs):
            learners.learn(batches.of(epoch, rows.x.device))
            learners.report_to(population)
            losses = None if on_epoch is None else on_epoch(epoch + 1)
            if stopping is None or losses is None:
                continue
            learners = learners.keep(stopping.look(losses))
            if not len(learners.members):
                return
    if stopping is not None:
        stopping.restore()


def _check(
    population: Population,
    aims: Aims,
    rows: TrainingRows,
    settings: TrainingSettings,
    on_epoch: Callable[[int], Tensor | None] | None,
) -> None:
    b, n, n_aims = population.n_members, len(rows.y), len(rows.n_groups) * len(aims.rates)
    if list(aims.weights.shape) != [b, n_aims]:
        raise ValueError(
            f"aims must have shape [{b}, {n_aims}] (members, groupings times rates), got "
            f"{list(aims.weights.shape)}."
        )
    shape = [n] if rows.sample_weight is None else list(rows.sample_weight.shape)
    if shape not in ([n], [b, n]):
        raise ValueError(
            f"sample_weight must have shape [{n}] (rows) or [{b}, {n}] (members, rows), got "
            f"{shape}."
        )
    if settings.patience is not None and on_epoch is None:
        raise ValueError(
            f"on_epoch must report losses for patience={settings.patience}, got None; pass one, or "
            "patience=None."
        )


@dataclass(frozen=True, eq=False)
class _Learners:
    """All that has a member axis, of the members that go on."""

    members: Tensor
    population: Population
    rows: TrainingRows
    pressure: Pressure
    optimizer: StackedAdamW

    @staticmethod
    def of(
        population: Population,
        aims: Aims,
        rows: TrainingRows,
        settings: TrainingSettings,
        per_epoch: int,
    ) -> _Learners:
        """All members, before the first step."""
        device = rows.x.device
        aims = replace(aims, weights=aims.weights.to(device))
        return _Learners(
            torch.arange(population.n_members, device=device),
            population,
            rows,
            Pressure(aims, len(rows.n_groups), per_epoch, settings.step, settings.aggregate),
            StackedAdamW(
                population.parameters(),
                settings.learning_rate,
                settings.weight_decay,
                settings.epochs * per_epoch,
            ),
        )

    def learn(self, batches: Iterator[Tensor]) -> None:
        """One epoch."""
        self.population.train()
        for chosen in batches:
            batch = self.rows.take(chosen)
            scores = self.population.scores(batch.x)
            self.optimizer.zero_grad()
            torch.autograd.backward(scores, self.pressure.slope(scores.detach(), batch))
            self.optimizer.step()
        self.population.train(False)

    def report_to(self, population: Population) -> None:
        """Write what was learned into the population of all."""
        if self.population is not population:
            for own, everyone in zip(self.population.values(), population.values(), strict=True):
                everyone[self.members] = own

    def keep(self, going: Tensor) -> _Learners:
        """Those of all members [b] that go on."""
        kept = going[self.members].nonzero().squeeze(1)
        if len(kept) == len(self.members):
            return self
        population = self.population.of_members(kept)
        return _Learners(
            self.members[kept],
            population,
            self.rows.of_members(kept),
            self.pressure.of_members(kept),
            self.optimizer.of_members(kept, population.parameters()),
        )


@contextmanager
def _own_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Dropout and the like follow the seed, and leave the caller's generators alone."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


class _Batches:
    """The order of rows, a function of seed and epoch."""

    def __init__(self, n: int, settings: TrainingSettings) -> None:
        self._n, self._seed = n, settings.seed
        self.size = min(settings.batch_size, n)
        whole, rest = divmod(n, self.size)
        self.per_epoch = whole + (2 * rest >= self.size)

    def of(self, epoch: int, device: torch.device) -> Iterator[Tensor]:
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + epoch)
        order = torch.randperm(self._n, generator=generator).to(device)
        return iter(order.split(self.size)[: self.per_epoch])
