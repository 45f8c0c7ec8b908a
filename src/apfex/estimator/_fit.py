"""One fit: split, encode, train the population, collect candidates, make the front."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from sklearn.utils import _safe_indexing
from torch import Tensor

from apfex.estimator._criteria import Criteria
from apfex.estimator._front import Front
from apfex.estimator._measure import Candidate, Held, candidate_values, make_front
from apfex.groups import Groups, make_groups
from apfex.tables import TableEncoder
from apfex.training import (
    Aims,
    StackedMLP,
    StackedModules,
    TrainingRows,
    TrainingSettings,
    train_population,
    weight_ladder,
)

_SNAPSHOTS = 6
"""Times at which members are looked at, over the second half of the training."""


@final
@dataclass(frozen=True, eq=False)
class FitRequest:
    """All that a fit needs, checked."""

    X: Any
    y: np.ndarray
    n_classes: int
    crossing: Groups | None
    groupings: Sequence[Groups]
    sample_weight: np.ndarray | None
    criteria: Criteria
    favorable: int
    settings: TrainingSettings
    seed: int
    estimator: Any


def explore(request: FitRequest) -> tuple[Front, TableEncoder]:
    """Train and choose; training rows make gradients, validation rows choose."""
    options = request.estimator
    train, held = split(request, options.validation_fraction)
    encoder = TableEncoder(bins=options.bins)
    encoder.fit(_safe_indexing(request.X, train), request.y[train])
    inputs = [
        torch.from_numpy(encoder.transform(_safe_indexing(request.X, r))) for r in (train, held)
    ]
    device = _device(options.device)
    rows = _training_rows(request, train, inputs[0], device)
    held_rows = _held_rows(request, held, inputs[1].to(device))
    population = _population(options, inputs[0].shape[1], request, device)
    aims = _aims(request, population.n_members, device)
    collector = _Collector(population, held_rows, request)
    with _progress(options.verbose, request.settings.epochs) as show:

        def on_epoch(epoch: int) -> None:
            collector.look(epoch)
            show(epoch, collector)

        train_population(population, aims, rows, request.settings, on_epoch)
    front = make_front(
        collector.candidates, held_rows, request.criteria, request.favorable, options.n_points
    )
    return front, encoder


def split(request: FitRequest, fraction: float) -> tuple[np.ndarray, np.ndarray]:
    """Training and validation rows, even within each label and group as far as these allow."""
    n = len(request.y)
    generator = np.random.default_rng(request.seed)
    codes = np.zeros(n, dtype=np.int64) if request.crossing is None else request.crossing.codes
    strata = codes * request.n_classes + request.y
    order = np.lexsort((generator.random(n), strata))
    # Every so-maniest row along the strata: shares differ by at most one row from the fraction.
    offset = generator.random()
    places = np.floor((np.arange(n) + offset) * fraction)
    chosen = np.zeros(n, dtype=bool)
    chosen[order] = np.diff(np.append(places, np.floor((n + offset) * fraction))) > 0
    for label in range(request.n_classes):  # no class may vanish from either part
        members = np.flatnonzero(request.y == label)
        if chosen[members].all():
            chosen[members[0]] = False
        if not chosen[members].any() and len(members) > 1:
            chosen[members[-1]] = True
    held = np.flatnonzero(chosen)
    train = np.flatnonzero(~chosen)
    return train, held if held.size else train


class _Collector:
    """Looks at all members at a few epochs, and keeps them as candidates."""

    def __init__(self, population: Any, held: Held, request: FitRequest) -> None:
        self._population, self._held, self._request = population, held, request
        last = request.settings.epochs
        first = max(1, last // 2)
        count = min(_SNAPSHOTS, last - first + 1)
        self._times = set(np.linspace(first, last, count).round().astype(int).tolist())
        self.candidates: list[Candidate] = []
        self.best = np.array([np.nan])

    def look(self, epoch: int) -> None:
        """Take a snapshot, if it is time."""
        if epoch not in self._times:
            return
        with torch.no_grad():
            scores = self._population.scores(self._held.x)
        decisions = (scores > 0).long() if scores.ndim == 2 else scores.argmax(2)
        decisions = decisions.cpu().numpy()
        balanced = self._request.estimator.scoring == "balanced_accuracy"
        values = candidate_values(decisions, self._held, self._request.criteria, balanced)
        self.best = values[values[:, 0].argmin()]
        for member, (row, value) in enumerate(zip(decisions, values, strict=True)):
            module = self._population.member(member).cpu().eval()
            self.candidates.append(Candidate(member, epoch, row, value, module))


def _training_rows(
    request: FitRequest, train: np.ndarray, x: Tensor, device: torch.device
) -> TrainingRows:
    codes = [grouping.codes[train] for grouping in request.groupings]
    weight = request.sample_weight
    return TrainingRows(
        x=x.to(device),
        y=torch.from_numpy(request.y[train]).to(device),
        codes=torch.from_numpy(np.array(codes, dtype=np.int64).reshape(len(codes), -1)).to(device),
        n_groups=tuple(len(grouping) for grouping in request.groupings),
        sample_weight=None if weight is None else torch.from_numpy(weight[train]).to(x),
    )


def _held_rows(request: FitRequest, held: np.ndarray, x: Tensor) -> Held:
    everybody = make_groups(np.zeros(len(request.y), dtype=np.int64))
    crossing = everybody if request.crossing is None else request.crossing
    weight = request.sample_weight
    return Held(
        x=x,
        y=request.y[held],
        groupings=[grouping.take(held) for grouping in request.groupings],
        crossing=crossing.take(held),
        sample_weight=None if weight is None else weight[held],
        n_classes=request.n_classes,
    )


def _population(
    options: Any, n_features: int, request: FitRequest, device: torch.device
) -> StackedMLP | StackedModules:
    n_members = options.n_members if request.criteria.names else 2
    n_outputs = 1 if request.n_classes == 2 else request.n_classes
    if callable(options.model):
        made = StackedModules(options.model, n_features, n_outputs, n_members, request.seed)
    else:
        hidden = () if options.model == "linear" else tuple(options.hidden)
        made = StackedMLP(n_features, n_outputs, hidden, n_members, request.seed)
    return made.to(device)


def _aims(request: FitRequest, n_members: int, device: torch.device) -> Aims:
    if not request.criteria.names:
        return Aims((), torch.zeros(n_members, 0, device=device))
    ladder = weight_ladder(request.criteria.rates, n_members)
    repeated = ladder.weights.repeat(1, len(request.groupings))
    return Aims(ladder.rates, repeated.to(device))


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)


def _progress(verbose: int, epochs: int) -> Any:
    """A progress bar that shows epoch, best error with its gaps, and the time left."""
    if not verbose:
        return nullcontext(lambda *_: None)
    return _Bar(epochs)


class _Bar:
    def __init__(self, epochs: int) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("epoch {task.completed}/{task.total}"),
            BarColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[best]}"),
        )
        self._task = self._bar.add_task("fit", total=epochs, best="")

    def __enter__(self) -> Callable[[int, _Collector], None]:
        self._bar.start()
        return self._show

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def _show(self, epoch: int, collector: _Collector) -> None:
        error, *gaps = collector.best
        text = "" if np.isnan(error) else f"best error {error:.4f}"
        text += "".join(f", gap {gap:.3f}" for gap in gaps)
        self._bar.update(self._task, completed=epoch, best=text)
