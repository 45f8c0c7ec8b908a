"""Inprocessing: every point is a model of its own, trained towards its trade-off."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from apfex.front._candidates import (
    Candidate,
    Evaluation,
    SearchResult,
    evaluate_scores,
)
from apfex.front._criteria import check_measurable
from apfex.front._init_model import (
    InitColumns,
    NumericColumns,
    check_init_network,
    read_init_trees,
)
from apfex.front._progress import Show, progress
from apfex.front._rows import Rows, ValidationRows, encode, fit_encoders, split
from apfex.front._settings import SearchSettings
from apfex.models import (
    BoostedMembers,
    GapWeights,
    PenalizedLoss,
    StackedMLP,
    StackedModules,
    Trees,
    boost_members,
    train_population,
)
from apfex.relaxations import tanh_step

_SNAPSHOTS = 6
"""Times at which networks are evaluated, over the second half of the training."""
_ROUNDS, _FASTER = 20, 3.0
"""Rounds on top of the base ensemble, and how much larger their steps are."""
_LEAST_WEIGHT = 2.0
"""Of a leaf of these: no validation rows stop them."""


def search_members(rows: Rows, settings: SearchSettings, seed: int) -> SearchResult:
    """Train members towards a grid of weights; training rows learn, validation rows choose."""
    train, chosen = split(rows, settings.validation_fraction, seed)
    validation = rows.validation(chosen)
    check_measurable(validation, settings.criteria)
    search = _search_trees if settings.has_trees else _search_networks
    return search(rows, (train, chosen), validation, settings, seed)


Parts = tuple[np.ndarray, np.ndarray]
"""Places of the training rows and of the validation rows."""


def _search_networks(
    rows: Rows, parts: Parts, validation: ValidationRows, settings: SearchSettings, seed: int
) -> SearchResult:
    """Every point a network of its own."""
    train, chosen = parts
    own = settings.init is not None
    encoder = NumericColumns.of(rows.X) if own else fit_encoders(rows, train, settings)
    x, x_validation = (encode(encoder, rows, part, settings) for part in (train, chosen))
    if own:
        check_init_network(settings.init, x, len(rows.classes))
    population = _population(settings, rows, x.shape[1], seed)
    training = settings.training(len(train), seed)
    networks = _Networks(population, validation, x_validation, settings, training.epochs)
    with progress(settings.verbose, training.epochs, settings.figures) as show:

        def on_epoch(epoch: int) -> Tensor | None:
            losses = networks.evaluate(epoch)
            show(epoch, networks.best)
            return losses

        population.train(False)
        networks.evaluate(0)
        grid = settings.gap_weights(population.n_members, len(rows.groupings))
        weights = grid.weights.expand(population.n_members, -1).to(settings.device)
        gap_weights = GapWeights(grid.rates, weights)
        train_population(population, gap_weights, rows.training(train, x), training, on_epoch)
        if settings.patience is not None:
            networks.take_best(settings.patience)
    return SearchResult(networks.candidates, validation, encoder, inputs=x_validation)


def _search_trees(
    rows: Rows, parts: Parts, validation: ValidationRows, settings: SearchSettings, seed: int
) -> SearchResult:
    """Every point an ensemble of its own, on a common base."""
    own = settings.init is not None
    encoder = InitColumns.of(rows.X) if own else fit_encoders(rows, parts[0], settings)
    trees = encoder.trees(settings, len(parts[0]), seed)
    training, validating = (
        rows.training(part, encode(encoder, rows, part, settings)) for part in parts
    )
    base = (
        read_init_trees(settings.init, rows, encoder)
        if isinstance(encoder, InitColumns)
        else Trees.fit(training, validating, len(rows.classes), trees, encoder.feature_types)
    )
    gap_weights = settings.gap_weights(settings.n_members, len(rows.groupings))
    loss = PenalizedLoss(gap_weights, len(rows.groupings), 1, tanh_step, "rms")
    own_rounds = replace(
        trees,
        n_estimators=_ROUNDS,
        learning_rate=min(1.0, _FASTER * trees.learning_rate),
        subsample=1.0,
        min_child_weight=_LEAST_WEIGHT,
        reg_lambda=1.0,
    )
    with progress(settings.verbose, _ROUNDS, settings.figures) as show:
        ensembles = _Ensembles(validation, settings, show)
        boost_members(
            base,
            training,
            lambda scores: loss.gradient(scores.clone(), training),
            gap_weights.n_members,
            own_rounds,
            encoder.feature_types,
            validation=validating.x,
            on_round=ensembles.evaluate,
        )
    return SearchResult(ensembles.candidates, validation, encoder, inputs=validating.x)


class _Networks:
    """Evaluates all networks at a few epochs, and keeps them as candidates."""

    def __init__(
        self,
        population: StackedMLP | StackedModules,
        validation: ValidationRows,
        x: Tensor,
        settings: SearchSettings,
        epochs: int,
    ) -> None:
        self._population, self._x, self._settings = population, x, settings
        self._validation = validation
        first = max(1, epochs // 2)
        count = min(_SNAPSHOTS, epochs - first + 1)
        self._times = set(np.linspace(first, epochs, count).round().astype(int).tolist())
        self._times |= {0} if settings.init is not None else set()
        self._losses: list[np.ndarray] = []
        self.candidates: list[Candidate] = []
        self.best: list[float] = []

    def evaluate(self, epoch: int) -> Tensor | None:
        """Take a snapshot, if it is time; with patience, tell error plus gaps of each member."""
        patient = self._settings.patience is not None and epoch > 0
        if epoch not in self._times and not patient:
            return None
        found, evaluated = self._evaluate(np.full(self._population.n_members, epoch))
        if epoch in self._times:
            self._keep(found, evaluated)
        if not patient:
            return None
        self._losses.append(evaluated.losses)
        return torch.from_numpy(self._losses[-1]).to(self._x.device)

    def take_best(self, patience: int) -> None:
        """Keep all members, now that each is back at its best epoch."""
        best = 1 + np.argmin(self._losses, 0)
        # Later than this a member had stopped, and was at its best already.
        self.candidates = [c for c in self.candidates if c.epoch <= best[c.member] + patience]
        self._keep(*self._evaluate(best))

    def _evaluate(self, epochs: np.ndarray) -> tuple[list[Candidate], Evaluation]:
        with torch.no_grad():
            scores = self._population.scores(self._x)
        snapshot = copy.deepcopy(self._population)
        return evaluate_scores(scores, epochs, self._validation, self._settings, snapshot)

    def _keep(self, found: list[Candidate], evaluated: Evaluation) -> None:
        self.best = evaluated.best
        self.candidates += found


class _Ensembles:
    """Evaluates all ensembles after every round, and keeps them as candidates."""

    def __init__(self, validation: ValidationRows, settings: SearchSettings, show: Show) -> None:
        self._validation, self._settings, self._show = validation, settings, show
        self._losses: list[np.ndarray] = []
        self.candidates: list[Candidate] = []

    def evaluate(self, members: BoostedMembers) -> Tensor | None:
        """Keep what there is; with patience, tell which members go on."""
        rounds, kept = members.rounds.numpy(), members.without_scores()
        found, evaluated = evaluate_scores(
            members.validation_scores, rounds, self._validation, self._settings, kept
        )
        self.candidates += found
        self._show(int(rounds.max()), evaluated.best)
        self._losses.append(evaluated.losses)
        patience = self._settings.patience
        if patience is None:
            return None
        since = len(self._losses) - 1 - np.argmin(self._losses, 0)
        return torch.from_numpy(since < patience)


def _population(
    settings: SearchSettings, rows: Rows, n_features: int, seed: int
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
