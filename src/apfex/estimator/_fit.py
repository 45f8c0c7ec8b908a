"""One fit: split, encode, train the population, collect candidates, make the front."""

from __future__ import annotations

import copy

import numpy as np
import torch
from sklearn.utils import _safe_indexing
from torch import Tensor

from apfex.estimator._front import Front
from apfex.estimator._inputs import Rows
from apfex.estimator._measure import Candidate, Held, check_measurable, make_front, score
from apfex.estimator._progress import progress
from apfex.estimator._settings import Settings
from apfex.groups import make_groups
from apfex.tables import TableEncoder
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


def explore(
    rows: Rows, settings: Settings, favorable: int, seed: int
) -> tuple[Front, TableEncoder]:
    """Train and choose; training rows make gradients, validation rows choose."""
    train, held = split(rows, settings.validation_fraction, seed)
    encoder = TableEncoder(bins=settings.bins).fit(_safe_indexing(rows.X, train), rows.y[train])
    if not encoder.n_features_out_:
        raise ValueError(f"X must have a column that varies, got none: {encoder.dropped_}.")
    inputs = [
        torch.from_numpy(encoder.transform(_safe_indexing(rows.X, part))).to(settings.device)
        for part in (train, held)
    ]
    held_rows = _held_rows(rows, held, inputs[1])
    check_measurable(held_rows, settings.criteria)
    population = _population(settings, rows, inputs[0].shape[1], seed)
    training = settings.training(len(train), seed)
    collector = _Collector(population, held_rows, settings, training.epochs)
    with progress(settings.verbose, training.epochs) as show:

        def on_epoch(epoch: int) -> None:
            collector.look(epoch)
            show(epoch, collector.best)

        aims = _aims(settings, population.n_members, len(rows.groupings))
        train_population(
            population, aims, _training_rows(rows, train, inputs[0]), training, on_epoch
        )
    front = make_front(collector.candidates, held_rows, settings, favorable)
    return front, encoder


def split(rows: Rows, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and validation rows, even within each label and group.

    A label within a group has rows in both parts if it has two, and so has every label. The
    only row of a label is for training.
    """
    n, n_classes = len(rows.y), len(rows.classes)
    generator = np.random.default_rng(seed)
    codes = np.zeros(n, dtype=np.int64) if rows.crossing is None else rows.crossing.codes
    strata = codes * n_classes + rows.y
    order = np.lexsort((generator.random(n), strata))
    # Every so-maniest row along the strata: shares differ by at most one row from the fraction.
    places = np.floor(np.arange(n + 1) * fraction + generator.random())
    chosen = np.zeros(n, dtype=bool)
    chosen[order] = np.diff(places) > 0
    for parts in (strata, rows.y):
        _mend(chosen, parts, order)
    chosen[np.bincount(rows.y)[rows.y] == 1] = False
    if not chosen.any():
        raise ValueError(
            "y must have two rows of a class, one to learn from and one to choose by, got "
            f"n_samples={n} of {n_classes} classes."
        )
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def _mend(chosen: np.ndarray, parts: np.ndarray, order: np.ndarray) -> None:
    """Where two rows or more of a part are all on one side, send one to the other."""
    numbers, first, inverse, counts = np.unique(
        parts[order], return_index=True, return_inverse=True, return_counts=True
    )
    held = np.bincount(inverse, chosen[order], minlength=len(numbers))
    one_sided = (counts > 1) & ((held == 0) | (held == counts))
    rows = order[first[one_sided]]
    chosen[rows] = ~chosen[rows]


class _Collector:
    """Looks at all members at a few epochs, and keeps them as candidates."""

    def __init__(
        self, population: StackedMLP | StackedModules, held: Held, settings: Settings, epochs: int
    ) -> None:
        self._population, self._held, self._settings = population, held, settings
        first = max(1, epochs // 2)
        count = min(_SNAPSHOTS, epochs - first + 1)
        self._times = set(np.linspace(first, epochs, count).round().astype(int).tolist())
        self.candidates: list[Candidate] = []
        self.best: list[float] = []

    def look(self, epoch: int) -> None:
        """Take a snapshot, if it is time; members that have diverged are no candidates."""
        if epoch not in self._times:
            return
        with torch.no_grad():
            scores = self._population.scores(self._held.x)
        decisions = (scores > 0).long() if scores.ndim == 2 else scores.argmax(2)
        scored = score(decisions, self._held, self._settings.criteria, self._settings.by)
        self.best = scored.values[scored.values[:, 0].argmin()].tolist()
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


def _held_rows(rows: Rows, held: np.ndarray, x: Tensor) -> Held:
    everybody = make_groups(np.zeros(len(rows.y), dtype=np.int64))
    crossing = everybody if rows.crossing is None else rows.crossing
    weight = rows.sample_weight
    return Held(
        x=x,
        y=rows.y[held],
        groupings=[grouping.take(held) for grouping in rows.groupings],
        crossing=crossing.take(held),
        sample_weight=None if weight is None else weight[held],
        n_classes=len(rows.classes),
    )


def _population(
    settings: Settings, rows: Rows, n_features: int, seed: int
) -> StackedMLP | StackedModules:
    n_members = settings.n_members if settings.criteria.names else 2
    n_outputs = 1 if len(rows.classes) == 2 else len(rows.classes)
    if settings.factory is not None:
        made = StackedModules(settings.factory, n_features, n_outputs, n_members, seed)
    else:
        made = StackedMLP(n_features, n_outputs, settings.hidden, n_members, seed)
    return made.to(settings.device)


def _aims(settings: Settings, n_members: int, n_groupings: int) -> Aims:
    if not settings.criteria.names:
        return Aims((), torch.zeros(n_members, 0, device=settings.device))
    ladder = weight_ladder(settings.criteria.rates, n_members)
    return Aims(ladder.rates, ladder.weights.repeat(1, n_groupings).to(settings.device))
