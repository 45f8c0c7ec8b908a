"""The front by training: every point is a network of its own."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor

from apfex.estimator._inputs import Rows
from apfex.estimator._measure import Candidate, Found, Held, Scored, check_measurable, look_at
from apfex.estimator._prepare import check_init, encode, fit_encoder, held_rows, training_rows
from apfex.estimator._progress import progress
from apfex.estimator._settings import Settings
from apfex.estimator._split import split
from apfex.models import (
    GapWeights,
    StackedMLP,
    StackedModules,
    train_population,
    weight_grid,
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
    if settings.init is not None:
        check_init(settings.init, x, len(rows.classes))
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
        train_population(population, aims, training_rows(rows, train, x), training, on_epoch)
        if settings.patience is not None:
            collector.take_best(settings.patience)
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
        self._losses: list[np.ndarray] = []
        self.candidates: list[Candidate] = []
        self.best: list[float] = []

    def look(self, epoch: int) -> Tensor | None:
        """Take a snapshot, if it is time; with patience, tell error plus gaps of each member."""
        patient = self._settings.patience is not None and epoch > 0
        if epoch not in self._times and not patient:
            return None
        found, scored = self._look(np.full(self._population.n_members, epoch))
        if epoch in self._times:
            self._keep(found, scored)
        if not patient:
            return None
        self._losses.append(np.nan_to_num(scored.values, nan=1.0).sum(1))
        return torch.from_numpy(self._losses[-1]).to(self._x.device)

    def take_best(self, patience: int) -> None:
        """Keep all members, now that each is back at its best epoch."""
        best = 1 + np.argmin(self._losses, 0)
        # Later than this a member had stopped, and was at its best already.
        self.candidates = [c for c in self.candidates if c.epoch <= best[c.member] + patience]
        self._keep(*self._look(best))

    def _look(self, epochs: np.ndarray) -> tuple[list[Candidate], Scored]:
        with torch.no_grad():
            scores = self._population.scores(self._x)
        return look_at(scores, epochs, self._held, self._settings, copy.deepcopy(self._population))

    def _keep(self, found: list[Candidate], scored: Scored) -> None:
        self.best = scored.best
        self.candidates += found


def _population(
    settings: Settings, rows: Rows, n_features: int, seed: int
) -> StackedMLP | StackedModules:
    n_members = settings.n_members if settings.criteria.names else 2
    n_outputs = 1 if len(rows.classes) == 2 else len(rows.classes)
    if settings.init is not None:
        made = StackedModules.copies_of(settings.init, n_members, n_outputs)
    elif settings.factory is not None:
        made = StackedModules(settings.factory, n_features, n_outputs, n_members, seed)
    else:
        made = StackedMLP(n_features, n_outputs, settings.hidden, n_members, seed)
    return made.to(settings.device)


def _aims(settings: Settings, n_members: int, n_groupings: int) -> GapWeights:
    if not settings.criteria.names:
        return GapWeights((), torch.zeros(n_members, 0, device=settings.device))
    ladder = weight_grid(settings.criteria.rates, n_members)
    return GapWeights(ladder.rates, ladder.weights.repeat(1, n_groupings).to(settings.device))
