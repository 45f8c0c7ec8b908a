"""The front by boosting: every point is an ensemble of its own, on a common trunk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from apfex.estimator._inputs import Rows
from apfex.estimator._measure import Candidate, Found, Held, check_measurable, look_at
from apfex.estimator._own_trees import OwnInputs, read_own_trees
from apfex.estimator._prepare import encode, fit_inputs, held_rows, training_rows
from apfex.estimator._progress import Show, progress
from apfex.estimator._settings import Settings
from apfex.estimator._split import split
from apfex.models import (
    BoostedMembers,
    GapWeights,
    PenalizedLoss,
    Trees,
    boost_members,
    weight_grid,
)
from apfex.relaxations import tanh_step

_ROUNDS, _FASTER = 20, 3.0
"""Rounds on top of the trunk, and how much larger their steps are."""


def search_trees(rows: Rows, settings: Settings, seed: int) -> Found:
    """Grow members on a trunk towards a ladder of weights; training rows learn, others choose."""
    train, chosen = split(rows, settings.validation_fraction, seed)
    held = held_rows(rows, chosen)
    check_measurable(held, settings.criteria)
    inputs = fit_inputs(rows, train, settings) if settings.init is None else OwnInputs.of(rows.X)
    trees = inputs.trees(settings, len(train), seed)
    taught, watched = (
        training_rows(rows, part, encode(inputs, rows, part, settings)) for part in (train, chosen)
    )
    trunk = (
        read_own_trees(settings.init, rows, inputs)
        if isinstance(inputs, OwnInputs)
        else Trees.fit(taught, watched, len(rows.classes), trees, inputs.feature_types)
    )
    aims = _aims(settings, len(rows.groupings))
    pressure = PenalizedLoss(aims, len(rows.groupings), 1, tanh_step, "rms")
    repair = replace(
        trees, n_estimators=_ROUNDS, learning_rate=min(1.0, _FASTER * trees.learning_rate)
    )
    with progress(settings.verbose, _ROUNDS) as show:
        collector = _Collector(held, settings, show)
        boost_members(
            trunk,
            taught,
            lambda scores: pressure.gradient(scores.clone(), taught),
            aims.n_members,
            repair,
            inputs.feature_types,
            validation=watched.x,
            on_round=collector.look,
        )
    return Found(collector.candidates, held, inputs)


class _Collector:
    """Looks at all members after every round, and keeps them as candidates."""

    def __init__(self, held: Held, settings: Settings, show: Show) -> None:
        self._held, self._settings, self._show = held, settings, show
        self._losses: list[np.ndarray] = []
        self.candidates: list[Candidate] = []

    def look(self, members: BoostedMembers) -> Tensor | None:
        """Keep what there is; with patience, tell which members go on."""
        rounds = members.rounds.numpy()
        kept = members.without_scores()
        found, scored = look_at(members.validation_scores, rounds, self._held, self._settings, kept)
        self.candidates += found
        self._show(int(rounds.max()), scored.best)
        self._losses.append(np.nan_to_num(scored.values, nan=1.0).sum(1))
        patience = self._settings.patience
        if patience is None:
            return None
        since = len(self._losses) - 1 - np.argmin(self._losses, 0)
        return torch.from_numpy(since < patience)


def _aims(settings: Settings, n_groupings: int) -> GapWeights:
    if not settings.criteria.names:
        return GapWeights((), torch.zeros(1, 0))
    ladder = weight_grid(settings.criteria.rates, settings.n_members)
    return GapWeights(ladder.rates, ladder.weights.repeat(1, n_groupings))
