"""Inprocessing: every point is a model of its own, trained towards its trade-off."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

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
from apfex.front._front import NearConstantWarning
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
    NOWHERE,
    Aims,
    BoostedMembers,
    Checkpoint,
    MemberGradient,
    MemberSchedule,
    StackedMLP,
    StackedModules,
    TrainingRows,
    Trees,
    boost_members,
    check_tensor,
    check_trees,
    kept,
    train_population,
)
from apfex.relaxations import tanh_step
from apfex.strategies import name_of

_COLLAPSED = 0.9
"""Share of constant members from which on a population counts as collapsed."""
_FEWEST = 3
"""Members that a population has at least."""
_ROUNDS, _FASTER = 20, 3.0
"""Rounds on top of the base ensemble, and how much larger their steps are."""
_LEAST_WEIGHT = 2.0
"""Of a leaf of these: no validation rows stop them."""


def search_members(
    rows: Rows, settings: SearchSettings, seed: int, checkpoint: Checkpoint = NOWHERE
) -> SearchResult:
    """Train members as their aims and strategies say; training rows learn, others choose."""
    train, chosen = split(rows, settings.validation_fraction, seed)
    validation = rows.validation(chosen)
    check_measurable(validation, settings.criteria)
    search = _search_trees if settings.has_trees else _search_networks
    found = search(rows, (train, chosen), validation, settings, seed, checkpoint)
    _warn_collapsed(found, settings, settings.aims(len(rows.groupings)))
    return found


Parts = tuple[np.ndarray, np.ndarray]
"""Places of the training rows and of the validation rows."""


def _search_networks(
    rows: Rows,
    parts: Parts,
    validation: ValidationRows,
    settings: SearchSettings,
    seed: int,
    checkpoint: Checkpoint,
) -> SearchResult:
    """Every point a network of its own."""
    train, chosen = parts
    own = settings.init is not None
    encoder = NumericColumns.of(rows.X) if own else fit_encoders(rows, train, settings)
    x, x_validation = (encode(encoder, rows, part, settings) for part in (train, chosen))
    if own:
        check_init_network(settings.init, x, len(rows.classes))
    aims = settings.aims(len(rows.groupings))
    population = _population(settings, rows, x.shape[1], aims.n_members, seed)
    training = settings.training(len(train), seed)
    learning = _weighted(rows.training(train, x), settings, len(rows.classes))
    checkpoint.match(
        lambda: {
            **learning.facts(),
            "validation rows": [x_validation, *validation.facts()],
            "models to start from": population.values(),
        }
    )
    networks = _Networks(population, validation, x_validation, settings, training.epochs)
    with progress(settings.verbose, training.epochs, settings.figures) as show:

        def on_epoch(epoch: int) -> Tensor | None:
            losses = networks.evaluate(epoch)
            show(epoch, networks.best)
            return losses

        population.train(False)
        networks.evaluate(0)
        trace = train_population(
            population,
            learning,
            training,
            aims=aims,
            strategies=settings.strategies,
            on_epoch=on_epoch,
            checkpoint=checkpoint,
            beside=networks,
        )
        if settings.patience is not None:
            networks.take_best(settings.patience)
    objectives = ["cross-entropy", *settings.criteria.gap_names(rows.groupings)]
    per_record = MemberSchedule.of(training.epochs).per_record
    return SearchResult(
        networks.candidates, validation, encoder, trace, objectives, per_record, x_validation
    )


def _search_trees(
    rows: Rows,
    parts: Parts,
    validation: ValidationRows,
    settings: SearchSettings,
    seed: int,
    checkpoint: Checkpoint,
) -> SearchResult:
    """Every point an ensemble of its own, on a common base."""
    own = settings.init is not None
    encoder = InitColumns.of(rows.X) if own else fit_encoders(rows, parts[0], settings)
    trees = encoder.trees(settings, len(parts[0]), seed)
    training, validating = (
        rows.training(part, encode(encoder, rows, part, settings)) for part in parts
    )
    training = _weighted(training, settings, len(rows.classes))
    validating = replace(validating, class_weight=training.class_weight)
    given = None
    if isinstance(encoder, InitColumns):
        given = read_init_trees(settings.init, rows, encoder)
    checkpoint.match(
        lambda: {
            **training.facts(),
            "validation rows": list(validating.facts().values()),
            "init": [] if given is None else [_bytes_of(given)],
        }
    )
    base = given or kept(
        checkpoint,
        "base",
        lambda: Trees.fit(
            training.weighted_by_label(),
            validating.weighted_by_label(),
            len(rows.classes),
            trees,
            encoder.feature_types,
        ),
        lambda found: check_trees(found, encoder.feature_types, len(rows.classes)),
    )
    aims, schedule = settings.aims(len(rows.groupings)), MemberSchedule.of(_ROUNDS)
    gradient = MemberGradient(aims, settings.strategies, schedule, 1, tanh_step, "rms", seed)
    own_rounds = replace(
        trees,
        n_estimators=_ROUNDS,
        learning_rate=min(1.0, _FASTER * trees.learning_rate),
        subsample=1.0,
        min_child_weight=_LEAST_WEIGHT,
        reg_lambda=1.0,
    )
    with progress(settings.verbose, _ROUNDS, settings.figures) as show:
        ensembles = _Ensembles(validation, settings, show, schedule.arrive)
        boost_members(
            base,
            training,
            lambda scores: ensembles.slopes(gradient, scores, training),
            aims.n_members,
            own_rounds,
            encoder.feature_types,
            validation=validating.x,
            on_round=ensembles.evaluate,
            checkpoint=checkpoint,
        )
    objectives = ["cross-entropy", *settings.criteria.gap_names(rows.groupings)]
    return SearchResult(
        ensembles.candidates,
        validation,
        encoder,
        gradient.trace,
        objectives,
        schedule.per_record,
        validating.x,
    )


def _bytes_of(trees: Trees) -> Tensor:
    return torch.frombuffer(bytearray(trees.to_json()), dtype=torch.uint8)


def _weighted(rows: TrainingRows, settings: SearchSettings, n_classes: int) -> TrainingRows:
    """Rows whose labels count in the cross-entropy as errors on them do in the scoring."""
    counts = torch.bincount(rows.y, rows.weights(), n_classes)
    weight = settings.scoring.label_weights(counts / counts.sum())
    return replace(rows, class_weight=None if weight is None else weight.to(rows.x))


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
        schedule = MemberSchedule.of(epochs)
        self._times, self._arrived = set(schedule.looks), schedule.arrive
        self._times |= {0} if settings.init is not None else set()
        self._losses: list[np.ndarray] = []
        self._looks: list[tuple[int, StackedMLP | StackedModules]] = []
        self.candidates: list[Candidate] = []
        self.best: list[float] = []

    def evaluate(self, epoch: int) -> Tensor | None:
        """Take a snapshot, if it is time; with patience, tell error plus gaps of each member.

        Members lose no patience before they have arrived at their aims: the strategies come then.
        """
        patient = self._settings.patience is not None and epoch >= self._arrived
        if epoch not in self._times and not patient:
            return None
        evaluated = self._look(epoch, kept=epoch in self._times)
        if not patient:
            return None
        self._losses.append(evaluated.losses)
        return torch.from_numpy(self._losses[-1]).to(self._x.device)

    def take_best(self, patience: int) -> None:
        """Keep all members, now that each is back at its best epoch."""
        best = self._arrived + np.argmin(self._losses, 0)
        # Later than this a member had stopped, and was at its best already.
        self.candidates = [c for c in self.candidates if c.epoch <= best[c.member] + patience]
        self._evaluate(best, copy.deepcopy(self._population), kept=True)

    def state_dict(self) -> dict[str, Any]:
        """The networks at the epochs of which there are snapshots, for a checkpoint."""
        return {
            "looks": [[epoch, snapshot.state_dict()] for epoch, snapshot in self._looks],
            "losses": [torch.from_numpy(losses) for losses in self._losses],
        }

    def load_state_dict(self, state: Mapping[str, Any], epochs: int) -> None:
        """Evaluate the same networks again; the population is left as the last of them."""
        times = sorted(time for time in self._times if time <= epochs)
        if [epoch for epoch, _ in state["looks"]] != times:
            raise ValueError(f"looks must be those after the epochs {times}, got others")
        patient = self._settings.patience is not None
        n_losses = max(0, epochs + 1 - self._arrived) if patient else 0
        own = torch.zeros(self._population.n_members, dtype=torch.float64)
        for losses in state["losses"]:
            check_tensor(losses, own.dtype, own.shape, "losses")
        if len(state["losses"]) != n_losses:
            raise ValueError(f"losses must be of {n_losses} epochs, got {len(state['losses'])}")
        self.candidates, self._looks = [], []
        for epoch, (_, networks) in zip(times, state["looks"], strict=True):
            self._population.load_state_dict(networks)
            self._look(epoch, kept=True)
        self._losses = [losses.numpy() for losses in state["losses"]]

    def _look(self, epoch: int, *, kept: bool) -> Evaluation:
        snapshot = copy.deepcopy(self._population)
        if kept:
            self._looks.append((epoch, snapshot))
        return self._evaluate(np.full(snapshot.n_members, epoch), snapshot, kept=kept)

    def _evaluate(
        self, epochs: np.ndarray, snapshot: StackedMLP | StackedModules, *, kept: bool
    ) -> Evaluation:
        with torch.no_grad():
            scores = self._population.scores(self._x)
        found, evaluated = evaluate_scores(
            scores, epochs, self._validation, self._settings, snapshot
        )
        if kept:
            self.best = evaluated.best
            self.candidates += found
        return evaluated


class _Ensembles:
    """Evaluates all ensembles after every round, and keeps them as candidates."""

    def __init__(
        self, validation: ValidationRows, settings: SearchSettings, show: Show, arrived: int
    ) -> None:
        self._validation, self._settings, self._show = validation, settings, show
        self._arrived = arrived
        self._losses: list[np.ndarray] = []
        self._going: Tensor | None = None
        self.candidates: list[Candidate] = []

    def slopes(self, gradient: MemberGradient, scores: Tensor, rows: TrainingRows) -> Tensor:
        """The gradient by the scores; zeros for members that have stopped."""
        if self._going is None or bool(self._going.all()):
            return gradient(scores, rows)
        going = self._going.nonzero().squeeze(1)
        found = gradient.of_members(going)(scores[going], rows)
        return torch.zeros_like(scores).index_copy(0, going, found)

    def evaluate(self, members: BoostedMembers) -> Tensor | None:
        """Keep what there is; with patience, once they have arrived, tell which members go on."""
        rounds, kept = members.rounds.numpy(), members.without_scores()
        found, evaluated = evaluate_scores(
            members.validation_scores, rounds, self._validation, self._settings, kept
        )
        self.candidates += found
        self._show(int(rounds.max()), evaluated.best)
        patience = self._settings.patience
        if patience is None or rounds.max() < self._arrived:
            return None
        self._losses.append(evaluated.losses)
        since = len(self._losses) - 1 - np.argmin(self._losses, 0)
        going = torch.from_numpy(since < patience)
        self._going = going if self._going is None else self._going & going
        return self._going


def _warn_collapsed(found: SearchResult, settings: SearchSettings, aims: Aims) -> None:
    """Say that nearly all members that weigh gaps are constant, where the plain one is not."""
    last = {candidate.member: candidate.trivial for candidate in found.candidates}
    others = [trivial for member, trivial in last.items() if aims.weights[member].any()]
    if last.get(0, True) or len(others) < _FEWEST or sum(others) < _COLLAPSED * len(others):
        return
    names = ", ".join(dict.fromkeys(name_of(strategy) for strategy in settings.strategies))
    warnings.warn(
        f"{sum(others)} of {len(others)} members that weigh gaps have become constant: "
        f"under strategy {names} the gaps outweigh the error. Use another strategy ('fixed' keeps "
        "to the aims of the members), fewer epochs, or search='postprocess'.",
        NearConstantWarning,
        stacklevel=5,
    )


def _population(
    settings: SearchSettings, rows: Rows, n_features: int, n_members: int, seed: int
) -> StackedMLP | StackedModules:
    n_outputs = 1 if len(rows.classes) == 2 else len(rows.classes)
    if settings.init is not None:
        made = StackedModules.copies_of(settings.init, n_members, n_outputs)
    elif settings.factory is not None:
        made = StackedModules(settings.factory, n_features, n_outputs, n_members, seed)
    else:
        made = StackedMLP(n_features, n_outputs, settings.hidden, n_members, seed)
    return made.to(settings.device)
