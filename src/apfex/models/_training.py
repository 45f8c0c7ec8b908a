"""Training a population: minibatches, one backward pass for all members, early stopping."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, final

import torch
from torch import Tensor

from apfex.distributed import chosen_workers
from apfex.history import History
from apfex.models._aims import Aims
from apfex.models._checkpoint import NOWHERE, Checkpoint, check_count, check_tensor
from apfex.models._early_stopping import EarlyStopping
from apfex.models._learners import Learners, PlainGradient
from apfex.models._member_gradient import MemberGradient, MemberSchedule
from apfex.models._rows import TrainingRows
from apfex.models._shared_training import meet
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
    checkpoint: Checkpoint = NOWHERE,
    beside: Remembers | None = None,
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
    checkpoint : Checkpoint, optional
        Where the state is kept after some of the epochs, and from where the training goes on.
    beside : object with ``state_dict`` and ``load_state_dict``, optional
        What else belongs to the state, such as what ``on_epoch`` has gathered.

    Returns
    -------
    History or None
        What strategies decided, and why; None without aims. See :class:`MemberGradient`.

    Notes
    -----
    Towards its aim member i minimises ``CE + sum_j w[i, j] gap_j``. The whole population needs one
    backward pass, whatever decides. Members do not influence each other: one alone learns the same
    (but for bounds that are shares of the first one's gaps), and those that stop leave the stack.

    Within :func:`~apfex.distributed.share_batches` every worker has all rows and learns from its
    part of each batch; sums over rows, and with them gradients, are those of the whole batch.

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
    team = chosen_workers()
    if team is not None:
        how = {"epochs": settings.epochs, "batch_size": settings.batch_size, "seed": settings.seed}
        meet(team, population, rows, how)
    batches = _Batches(len(rows.y), settings)
    gradient = PlainGradient()
    if aims is not None:
        gradient = _driven(aims, strategies, settings, batches.per_epoch)
    learners = Learners.of(population, gradient, rows, settings.weight_decay)
    stopping = EarlyStopping(population, settings.patience) if settings.patience else None
    course = _Course(population, stopping, beside, rows.x.device)
    with own_randomness(settings.seed, rows.x.device):
        first, learners = course.resume(checkpoint, learners, settings.epochs)
        for epoch in range(first, settings.epochs):
            if not len(learners.members):
                break
            learners.learn(batches.of(epoch, rows.x.device))
            learners.copy_to(population)
            losses = None if on_epoch is None else on_epoch(epoch + 1)
            if stopping is not None and losses is not None:
                losses = losses if team is None else team.first(losses)
                learners = learners.keep(stopping.update(losses))
            finished = epoch + 1 == settings.epochs or not len(learners.members)
            if checkpoint.is_due(finished=finished):
                checkpoint.write(_TRAINING, course.state(epoch + 1, learners))
    if stopping is not None:
        stopping.restore()
    return None if isinstance(gradient, PlainGradient) else gradient.trace


_TRAINING = "training"
"""Name of the state in a checkpoint."""


class Remembers(Protocol):
    """Something with a memory that belongs to a checkpoint."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: Mapping[str, Any], epochs: int) -> None: ...


@dataclass(frozen=True, eq=False)
class _Course:
    """All that a training changes, but for those who still learn."""

    population: Population
    stopping: EarlyStopping | None
    beside: Remembers | None
    device: torch.device

    def state(self, epochs: int, learners: Learners) -> dict[str, Any]:
        """After so many epochs."""
        is_cuda = self.device.type == "cuda"
        return {
            "epochs": epochs,
            "population": self.population.state_dict(),
            "learners": learners.state_dict(),
            "stopping": None if self.stopping is None else self.stopping.state_dict(),
            "beside": None if self.beside is None else self.beside.state_dict(),
            "drawn": torch.get_rng_state(),
            "drawn on device": torch.cuda.get_rng_state(self.device) if is_cuda else None,
        }

    def resume(self, checkpoint: Checkpoint, learners: Learners, most: int) -> tuple[int, Learners]:
        """How many epochs are done, of so many at most, and who learns on."""
        found = checkpoint.read(_TRAINING, lambda state: self._taken(state, learners, most))
        return (0, learners) if found is None else found

    def _taken(
        self, state: Mapping[str, Any], learners: Learners, most: int
    ) -> tuple[int, Learners]:
        epochs = check_count(state["epochs"], 1, most, "epochs")
        if self.beside is not None:
            self.beside.load_state_dict(state["beside"], epochs)
        self.population.load_state_dict(state["population"])
        going = torch.ones_like(learners.members, dtype=torch.bool)
        if self.stopping is not None:
            self.stopping.load_state_dict(state["stopping"])
            going = self.stopping.going
        restored = learners.restored(state["learners"], going)
        check_tensor(state["drawn"], torch.uint8, torch.get_rng_state().shape, "drawn")
        torch.set_rng_state(state["drawn"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(state["drawn on device"], self.device)
        return epochs, restored


def _driven(
    aims: Aims,
    strategies: Sequence[Strategy],
    settings: TrainingSettings,
    per_epoch: int,
) -> MemberGradient:
    return MemberGradient(
        aims,
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
