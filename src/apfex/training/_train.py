"""The loop: minibatches, and one backward pass for all members and all their aims."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from apfex.objectives import Aggregate, gaps_of_masses
from apfex.rates import GroupIndex
from apfex.relaxations import Step, identity_step
from apfex.training._aims import Aims
from apfex.training._population import Population
from apfex.training._running import RunningMasses

_TINY = 1e-30
"""A batch whose weights vanish in float32 teaches nothing, rather than NaN."""


@final
@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What members learn from.

    Attributes
    ----------
    x : Tensor of shape [n, d]
    y : int64 Tensor of shape [n]
    codes : int64 Tensor of shape [a, n]
        Groups of the rows, one row for each grouping.
    n_groups : tuple of a numbers
    sample_weight : Tensor of shape [n] or None

    Examples
    --------
    >>> codes = torch.tensor([[0, 1, 0]])
    >>> rows = TrainingRows(torch.zeros(3, 2), torch.tensor([0, 1, 1]), codes, (2,))
    >>> rows.take(torch.tensor([1, 2])).y
    tensor([1, 1])
    """

    x: Tensor
    y: Tensor
    codes: Tensor
    n_groups: tuple[int, ...]
    sample_weight: Tensor | None = None

    def take(self, rows: Tensor) -> TrainingRows:
        """Some of the rows."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return TrainingRows(self.x[rows], self.y[rows], self.codes[:, rows], self.n_groups, weight)

    def indexes(self) -> list[GroupIndex]:
        """One group index for each grouping."""
        pairs = zip(self.codes, self.n_groups, strict=True)
        return [GroupIndex(codes, None, k) for codes, k in pairs]


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

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be positive, got {self.learning_rate}.")
        if not self.weight_decay >= 0:
            raise ValueError(f"weight_decay must be at least 0, got {self.weight_decay}.")


def train_population(
    population: Population,
    aims: Aims,
    rows: TrainingRows,
    settings: TrainingSettings | None = None,
    on_epoch: Callable[[int], None] | None = None,
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
        Called with the number of epochs done, after each; may look at the population.

    Notes
    -----
    Member i minimises ``CE + sum_j w[i, j] gap_j``. The gaps are functions of the running group
    masses, so their gradient by a row's score is an entry of a small table times the slope of the
    soft step, and the whole population needs one backward pass. Members do not touch each
    other: one alone learns the same.

    Examples
    --------
    >>> from apfex.training import StackedMLP, weight_ladder
    >>> x, y = torch.randn(64, 3), torch.arange(64) % 2
    >>> rows = TrainingRows(x, y, (torch.arange(64) % 4).unsqueeze(0), (4,))
    >>> population = StackedMLP(3, 1, (8,), n_members=4, seed=0)
    >>> settings = TrainingSettings(epochs=2, batch_size=32)
    >>> train_population(population, weight_ladder(("dp",), 4), rows, settings)
    """
    settings = settings or TrainingSettings()
    n_aims = len(rows.n_groups) * len(aims.rates)
    if aims.n_members != population.n_members or aims.weights.shape[1] != n_aims:
        raise ValueError(
            f"aims must have shape [{population.n_members}, {n_aims}] (members, groupings times "
            f"rates), got {list(aims.weights.shape)}."
        )
    batches = _Batches(len(rows.y), settings)
    optimizer = torch.optim.AdamW(
        population.parameters(),
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        foreach=True,
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, settings.epochs * batches.per_epoch
    )
    pressure = _Pressure(aims, len(rows.n_groups), batches.per_epoch, settings)
    with _own_randomness(settings.seed, rows.x.device):
        for epoch in range(settings.epochs):
            population.train()
            for chosen in batches.of(epoch):
                batch = rows.take(chosen.to(rows.y.device))
                scores = population.scores(batch.x)
                optimizer.zero_grad()
                torch.autograd.backward(scores, pressure.slope(scores.detach(), batch))
                optimizer.step()
                schedule.step()
            population.train(False)
            if on_epoch is not None:
                on_epoch(epoch + 1)


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

    def of(self, epoch: int) -> Iterator[Tensor]:
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + epoch)
        order = torch.randperm(self._n, generator=generator)
        return iter(order.split(self.size)[: self.per_epoch])


class _Pressure:
    """Slope of every member's loss by its scores."""

    def __init__(
        self, aims: Aims, n_groupings: int, memory: int, settings: TrainingSettings
    ) -> None:
        self._rates, self._settings = aims.rates, settings
        self._weights = aims.weights.chunk(n_groupings, 1) if n_groupings else ()
        self._running = [RunningMasses(memory) for _ in range(n_groupings)]

    def slope(self, scores: Tensor, batch: TrainingRows) -> Tensor:
        """Slope by scores [b, n] or [b, n, c]; each member's loss is a mean over rows."""
        is_multiclass = scores.ndim == 3
        weight = batch.sample_weight
        weight = torch.ones(len(batch.y)).to(batch.x) if weight is None else weight
        scores.requires_grad_()
        with torch.enable_grad():
            p = torch.softmax(scores, 2).mT if is_multiclass else torch.sigmoid(scores)
            decisions = self._settings.step(p)
        labels = F.one_hot(batch.y, scores.shape[2]).T if is_multiclass else batch.y
        task = (p.detach() - labels) * (weight / weight.sum().clamp_min(_TINY))
        worth = self._worth(decisions.detach(), labels, batch)
        (fairness,) = torch.autograd.grad(decisions, scores, worth * weight)
        return (task.mT if is_multiclass else task) + fairness

    def _worth(self, decisions: Tensor, labels: Tensor, batch: TrainingRows) -> Tensor:
        """What a row's decision adds to the weighted gaps, shape of the decisions."""
        total = torch.zeros_like(decisions)
        for index, running, weights in zip(
            batch.indexes(), self._running, self._weights, strict=True
        ):
            masses = running.update(decisions, labels, index, batch.sample_weight)
            _, slopes = gaps_of_masses(masses, self._rates, self._settings.aggregate)
            shares = weights.to(slopes)  # [b, r]
            if labels.ndim == 2:
                shares = shares.unsqueeze(1) / len(labels)  # the mean over classes
            table = (shares[..., None, None] * slopes).sum(-3)[..., :2].flatten(-2)
            cells = index.cells(labels)
            if cells.ndim == 1:
                total += table.index_select(-1, cells)
            else:
                total += table.gather(-1, cells.expand(len(table), *cells.shape))
        return total
