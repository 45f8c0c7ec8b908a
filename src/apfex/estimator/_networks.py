"""The front by training: every point is a network of its own."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor

from apfex.estimator._inputs import Rows
from apfex.estimator._measure import Candidate, Found, Held, Scored, check_measurable, score
from apfex.estimator._prepare import encode, fit_encoder, held_rows
from apfex.estimator._progress import progress
from apfex.estimator._settings import Settings
from apfex.estimator._split import split
from apfex.training import (
    Aims,
    StackedMLP,
    StackedModules,
    TrainingRows,
    train_population,
    weight_ladder,
)

_SNAPSHOTS = 6
"""Times at which members are looked at, over the second half of the training."""


def search_networks(rows: Rows, settings: Settings, seed: int) -> Found:
    """Train a population towards a ladder of weights; training rows learn, the others choose."""
    train, chosen = split(rows, settings.validation_fraction, seed)
    held = held_rows(rows, chosen)
    check_measurable(held, settings.criteria)
    encoder = fit_encoder(rows, train, settings)
    x, x_held = (encode(encoder, rows, part, settings) for part in (train, chosen))
    population = _population(settings, rows, x.shape[1], seed)
    training = settings.training(len(train), seed)
    collector = _Collector(population, held, x_held, settings, training.epochs)
    with progress(settings.verbose, training.epochs) as show:

        def on_epoch(epoch: int) -> Tensor | None:
            losses = collector.look(epoch)
            show(epoch, collector.best)
            return losses

        population.train(False)
        collector.look(0)
        aims = _aims(settings, population.n_members, len(rows.groupings))
        train_population(population, aims, _training_rows(rows, train, x), training, on_epoch)
        if settings.patience is not None:  # members are now where they were best
            collector.take(training.epochs)
    return Found(collector.candidates, held, encoder)


class _Collector:
    """Looks at all members at a few epochs, and keeps them as candidates."""

    def __init__(
        self,
        population: StackedMLP | StackedModules,
        held: Held,
        x: Tensor,
        settings: Settings,
        epochs: int,
    ) -> None:
        self._population, self._held, self._x, self._settings = population, held, x, settings
        first = max(1, epochs // 2)
        count = min(_SNAPSHOTS, epochs - first + 1)
        self._times = set(np.linspace(first, epochs, count).round().astype(int).tolist())
        self._times |= {0} if settings.init is not None else set()
        self.candidates: list[Candidate] = []
        self.best: list[float] = []

    def look(self, epoch: int) -> Tensor | None:
        """Take a snapshot, if it is time; with patience, tell error plus gaps of each member."""
        if epoch in self._times:
            return self.take(epoch)
        if self._settings.patience is None or not epoch:
            return None
        scores, _, scored = self._measure()
        return self._losses(scored).to(scores.device)

    def take(self, epoch: int) -> Tensor:
        """Keep all members as candidates, but those that have diverged."""
        scores, decisions, scored = self._measure()
        self.best = scored.best
        alive = scores.flatten(1).isfinite().all(1).cpu().numpy()
        usable = np.flatnonzero(alive & np.isfinite(scored.values).all(1))
        small, snapshot = decisions.to(torch.int16).cpu().numpy(), copy.deepcopy(self._population)
        self.candidates += [
            Candidate(
                int(member),
                epoch,
                small[member],
                scored.values[member],
                bool(scored.trivial[member]),
                snapshot,
            )
            for member in usable
        ]
        return self._losses(scored).to(scores.device)

    def _measure(self) -> tuple[Tensor, Tensor, Scored]:
        with torch.no_grad():
            scores = self._population.scores(self._x)
        decisions = (scores > 0).long() if scores.ndim == 2 else scores.argmax(2)
        criteria, by = self._settings.criteria, self._settings.by
        return scores, decisions, score(decisions, self._held, criteria, by)

    def _losses(self, scored: Scored) -> Tensor:
        return torch.from_numpy(np.nan_to_num(scored.values, nan=1.0).sum(1))


def _training_rows(rows: Rows, train: np.ndarray, x: Tensor) -> TrainingRows:
    codes = np.empty((len(rows.groupings), len(train)), dtype=np.int64)
    for place, grouping in enumerate(rows.groupings):
        codes[place] = grouping.codes[train]
    weight = rows.sample_weight
    return TrainingRows(
        x=x,
        y=torch.from_numpy(rows.y[train]).to(x.device),
        codes=torch.from_numpy(codes).to(x.device),
        n_groups=tuple(len(grouping) for grouping in rows.groupings),
        sample_weight=None if weight is None else torch.from_numpy(weight[train]).to(x),
    )


def _population(
    settings: Settings, rows: Rows, n_features: int, seed: int
) -> StackedMLP | StackedModules:
    n_members = settings.n_members if settings.criteria.names else 2
    n_outputs = 1 if len(rows.classes) == 2 else len(rows.classes)
    if settings.init is not None:
        made = StackedModules.around(settings.init, n_members, n_outputs)
    elif settings.factory is not None:
        made = StackedModules(settings.factory, n_features, n_outputs, n_members, seed)
    else:
        made = StackedMLP(n_features, n_outputs, settings.hidden, n_members, seed)
    return made.to(settings.device)


def _aims(settings: Settings, n_members: int, n_groupings: int) -> Aims:
    if not settings.criteria.names:
        return Aims((), torch.zeros(n_members, 0, device=settings.device))
    ladder = weight_ladder(settings.criteria.rates, n_members)
    return Aims(ladder.rates, ladder.weights.repeat(1, n_groupings).to(settings.device))
