"""What the gradient methods share: one network each, fitted alone or together."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted, check_random_state

from apfex.front import FrontPoint, ParetoFront
from apfex.rates import RateName
from apfex_reproduction.baselines._classifier import BinaryClassifier
from apfex_reproduction.baselines._inputs import Parts, Rows, fit_encoder, read_parts, read_table
from apfex_reproduction.baselines._judge import Judge, Rule, Seen, Snapshot, check_rule, choose
from apfex_reproduction.baselines._networks import Networks, as_module
from apfex_reproduction.baselines._train import Budget, Lesson, train
from apfex_reproduction.baselines._weigh import Plan

BUDGETS: dict[str, dict[str, Any]] = {
    "adult": {"epochs": 35, "batch_size": 512, "learning_rate": 1e-2},
    "celeba": {"epochs": 10, "batch_size": 512, "learning_rate": 5e-3},
    "compas": {"epochs": 100, "batch_size": 512, "learning_rate": 5e-3},
    "german": {"epochs": 500, "batch_size": None, "learning_rate": 5e-3},
    "heart": {"epochs": 500, "batch_size": None, "learning_rate": 5e-3},
}
"""Settings of all gradient methods on each data set of the paper; Adult's are the default."""

_CHUNK = 2**14
"""Rows that a network sees at once."""


class NetworkClassifier(BinaryClassifier):
    """A network input-60-25-1 that a method trains; see the methods."""

    validation_fraction: float
    epochs: int
    batch_size: int | None
    learning_rate: float
    hidden: Sequence[int]
    dropout: float
    selection: Rule
    min_accuracy: float | None
    random_state: Any

    def _fit(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, validation: Any
    ) -> None:
        fit_together(
            [self],
            X,
            y,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            validation=validation,
        )

    def select(self, selection: Rule, min_accuracy: float | None = None) -> Self:
        """Another epoch of the same run, as a fitted classifier of its own.

        Parameters
        ----------
        selection : {"nearest", "fairest", "accurate", "last"}
        min_accuracy : float, optional
            For "fairest": least validation accuracy.
        """
        check_is_fitted(self, "archive_")
        check_rule(selection, min_accuracy)
        return copy.copy(self)._use(choose(self.archive_, self.last_, selection, min_accuracy))

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits of the second class [n]."""
        check_is_fitted(self, "network_")
        x = torch.from_numpy(self._encoder.transform(read_table(self, X, reset=False)))
        with torch.no_grad():  # in float64 the order of rows leaves no trace
            parts = [self.network_(part.double()) for part in x.split(_CHUNK)]
        return torch.cat(parts).squeeze(1).numpy()

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities [n, 2]; not calibrated."""
        positive = torch.sigmoid(torch.from_numpy(self.decision_function(X)))
        return torch.stack([1 - positive, positive], 1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Class of each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int)]

    def predict_archive(self, X: Any) -> np.ndarray:
        """Classes [points, n] that the epochs in ``archive_`` decide for."""
        check_is_fitted(self, "archive_")
        x = torch.from_numpy(self._encoder.transform(read_table(self, X, reset=False))).double()
        decided = []
        for point in self.archive_:
            network = as_module(point.payload.state, self.dropout).double()
            with torch.no_grad():
                scores = torch.cat([network(part) for part in x.split(_CHUNK)])
            decided.append(self.classes_[(scores.squeeze(1) > 0).long().numpy()])
        return np.stack(decided)

    @abstractmethod
    def _plan(self, rows: Rows) -> Plan:
        """Check the settings against the rows, and say what is minimised."""

    @abstractmethod
    def _axes(self, rows: Rows) -> list[tuple[RateName, int]]:
        """Gaps by which an epoch is chosen."""

    def _use(self, point: FrontPoint) -> Self:
        snapshot: Snapshot = point.payload
        self.epoch_, self.constant_ = snapshot.place, snapshot.constant
        self.network_ = as_module(snapshot.state, self.dropout).double()
        return self

    def _keep(self, run: _Run, parts: Parts, encoder: Any) -> None:
        if not len(run.archive):
            raise ValueError(
                f"learning_rate must be small enough for training not to diverge, got "
                f"{self.learning_rate}: no epoch has finite scores; lower it."
            )
        self.classes_, self._encoder = parts.classes, encoder
        self.archive_, self.last_ = run.archive, run.last
        self.history_ = pd.DataFrame(run.history)
        if run.windows is not None:
            names = [" x ".join(groups.attributes) for groups in parts.training.groupings]
            axes = self._axes(parts.training)
            self.windows_ = run.windows
            self.objectives_ = ["cross-entropy", *(f"{rate} {names[at]}" for rate, at in axes)]
        self._use(choose(run.archive, run.last, self.selection, self.min_accuracy))


class _Run:
    """What is kept of the epochs of one member."""

    def __init__(self, judge: Judge, axes: Sequence[tuple[RateName, int]]) -> None:
        self.archive, self.history = ParetoFront(), []
        self.windows: pd.DataFrame | None = None
        self.last: FrontPoint
        self._columns = [0, *(1 + judge.axes.index(axis) for axis in axes if axis in judge.axes)]
        self._names = [judge.names[column] for column in self._columns]

    def record(self, epoch: int, networks: Networks, place: int, seen: Seen) -> None:
        if not seen.finite[place]:
            return
        values, constant = seen.values[place, self._columns], bool(seen.constant[place])
        kept = Snapshot(epoch, networks.snapshot(place), constant)
        self.last = FrontPoint(tuple(values.tolist()), kept)
        self.archive.insert(values, kept)
        figures = dict(zip(self._names, values.tolist(), strict=True))
        self.history.append({"epoch": epoch, **figures, "constant": constant})


def fit_together(
    estimators: Iterable[NetworkClassifier],
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    validation: tuple | None = None,
) -> list[NetworkClassifier]:
    """Fit several gradient methods to the same rows, as members of one population.

    Each comes out as if it had been fitted alone, but for rounding, which long runs amplify: all
    start from the same weights and see the same batches and dropout, whoever else is there.

    Parameters
    ----------
    estimators : iterable of PlainNetwork, SMAMO and MMAMO
        Of one budget and one ``random_state`` (an integer).
    X, y, sensitive_features, sample_weight, validation
        As for ``fit``. A single-attribute method looks at its ``attribute``.

    Returns
    -------
    list of the estimators, fitted

    Examples
    --------
    >>> from apfex_reproduction.baselines import SMAMO, PlainNetwork, fit_together
    >>> from apfex.datasets import make_biased
    >>> data = make_biased(300, random_state=0)
    >>> methods = [PlainNetwork(epochs=2, random_state=0), SMAMO("dp", epochs=2, random_state=0)]
    >>> fitted = fit_together(methods, data.X, data.y, sensitive_features=data.sensitive[["sex"]])
    >>> [method.predict(data.X).shape for method in fitted]
    [(300,), (300,)]
    """
    estimators = list(estimators)
    budget = _common_budget(estimators)
    fraction = estimators[0].validation_fraction
    for estimator in estimators:
        check_rule(estimator.selection, estimator.min_accuracy)
    first, *others = estimators
    parts = read_parts(
        first, X, y, sensitive_features, sample_weight, validation, fraction, budget.seed
    )
    for estimator in others:
        read_table(estimator, X, reset=True)
    plans = [estimator._plan(parts.training) for estimator in estimators]
    encoder = fit_encoder(parts.training)
    axes = [estimator._axes(parts.training) for estimator in estimators]
    judge = Judge(parts.validation, list(dict.fromkeys(axis for own in axes for axis in own)))
    runs = [_Run(judge, own) for own in axes]
    lesson = _lesson(parts.training, encoder)
    validation_x = torch.from_numpy(encoder.transform(parts.validation.X))
    for members in _populations(plans):

        def evaluate(epoch: int, networks: Networks, members: Sequence[int] = members) -> None:
            scores = [networks.forward(part).scores[0] for part in validation_x.split(_CHUNK)]
            seen = judge.evaluate(torch.cat(scores, 1))
            for place, member in enumerate(members):
                runs[member].record(epoch, networks, place, seen)

        followed = train([plans[member] for member in members], lesson, budget, evaluate)
        for group in followed:
            for member, windows in zip(group.members, group.windows(), strict=True):
                runs[members[member]].windows = windows
    for estimator, run in zip(estimators, runs, strict=True):
        estimator._keep(run, parts, encoder)
    return estimators


def _populations(plans: Sequence[Plan]) -> list[list[int]]:
    """Members that share passes and soft decisions; those without fairness losses join any."""
    populations: dict[tuple, list[int]] = {}
    for member, plan in enumerate(plans):
        if plan.terms:
            first = plan.terms[0]
            key = (plan.own_passes, first.form, first.relaxation, first.task_weight)
            populations.setdefault(key, []).append(member)
    alone = [member for member, plan in enumerate(plans) if not plan.terms]
    first, *others = populations.values() or [[]]
    return [alone + first, *others]


def _common_budget(estimators: Sequence[NetworkClassifier]) -> Budget:
    if not estimators:
        raise ValueError("estimators must hold at least one method, got none.")
    shared = ("epochs", "batch_size", "learning_rate", "dropout", "validation_fraction", "hidden")
    for name in (*shared, "random_state"):
        found = [getattr(estimator, name) for estimator in estimators]
        alike = all(value == found[0] for value in found)
        if len(found) > 1 and (not alike or (name == "random_state" and found[0] is None)):
            raise ValueError(
                f"estimators must have the same {name}, an integer for random_state, got {found}; "
                "fit them one by one instead."
            )
    first = estimators[0]
    return Budget(
        first.epochs,
        first.batch_size,
        first.learning_rate,
        tuple(first.hidden),
        first.dropout,
        int(check_random_state(first.random_state).randint(2**31 - 1)),
    )


def _lesson(rows: Rows, encoder: Any) -> Lesson:
    codes = [groups.codes for groups in rows.groupings]
    weight = rows.sample_weight
    return Lesson(
        torch.from_numpy(encoder.transform(rows.X)),
        torch.from_numpy(rows.y),
        torch.from_numpy(np.array(codes, dtype=np.int64).reshape(len(codes), len(rows.y))),
        tuple(len(groups) for groups in rows.groupings),
        None if weight is None else torch.from_numpy(weight).float(),
    )
