"""What the gradient methods share: one network each, fitted alone or together."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted, check_random_state

from apfex.front import FrontPoint, ParetoFront
from apfex.rates import RateName
from apfex_reproduction.baselines._classifier import BinaryClassifier
from apfex_reproduction.baselines._inputs import Parts, Rows, fit_encoder, read_parts, read_table
from apfex_reproduction.baselines._judge import Judge, Rule, Seen, Snapshot, check_rule, choose
from apfex_reproduction.baselines._networks import Inputs, as_module, scores_of
from apfex_reproduction.baselines._train import Budget, Learner, Lesson, train
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
        x = self.encode(X)
        with torch.no_grad():
            parts = [self.network_(part.double()) for part in x.split(_CHUNK)]
        return torch.cat(parts).squeeze(1).numpy()

    def encode(self, X: Any) -> torch.Tensor:
        """Rows as the network sees them [n, d]; alike for methods that were fitted together."""
        check_is_fitted(self, "archive_")
        return torch.from_numpy(self._encoder.transform(read_table(self, X, reset=False)))

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
        return self.predict_points(self.encode(X), list(self.archive_))

    def predict_points(self, x: torch.Tensor, points: Sequence[FrontPoint]) -> np.ndarray:
        """Classes [points, n] that some epochs decide for, of rows as :meth:`encode` has them."""
        check_is_fitted(self, "archive_")
        scores = scores_of([point.payload.state for point in points], x)
        return self.classes_[(scores > 0).long().numpy()]

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

    def record(self, epoch: int, learner: Learner, member: int, seen: Seen) -> None:
        if not seen.finite[member]:
            return
        values, constant = seen.values[member, self._columns], bool(seen.constant[member])
        kept = Snapshot(epoch, learner.snapshot(member), constant)
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
    >>> from apfex_reproduction.baselines import SMAMO, PlainNetwork
    >>> from apfex_reproduction.baselines._base import fit_together
    >>> from apfex.datasets import make_biased
    >>> data = make_biased(300, random_state=0)
    >>> methods = [PlainNetwork(epochs=2, random_state=0), SMAMO("dp", epochs=2, random_state=0)]
    >>> fitted = fit_together(methods, data.X, data.y, sensitive_features=data.sensitive[["sex"]])
    >>> [method.predict(data.X).shape for method in fitted]
    [(300,), (300,)]
    """
    table = Table(list(estimators), X, y, sensitive_features, sample_weight, validation)
    fit_tables([table])
    return list(table.estimators)


@final
@dataclass(frozen=True, eq=False)
class Table:
    """Gradient methods and the rows that they are fitted to, as for :func:`fit_together`.

    Examples
    --------
    >>> from apfex.datasets import make_biased
    >>> from apfex_reproduction.baselines import PlainNetwork, Table
    >>> data = make_biased(300, random_state=0)
    >>> len(Table([PlainNetwork(epochs=2, random_state=0)], data.X, data.y).estimators)
    1
    """

    estimators: Sequence[NetworkClassifier]
    X: Any
    y: Any
    sensitive_features: Any = None
    sample_weight: Any = None
    validation: tuple | None = None


def fit_tables(tables: Sequence[Table]) -> None:
    """Fit the gradient methods of several tables in step: those of several splits, for instance.

    Each comes out as if it had been fitted alone, but for rounding. Strategies decide for all
    tables at once, which takes a third of the time.

    Parameters
    ----------
    tables : sequence of Table

    Examples
    --------
    >>> from apfex.datasets import make_biased
    >>> from apfex_reproduction.baselines import PlainNetwork, Table, fit_tables
    >>> data = make_biased(300, random_state=0)
    >>> clf = PlainNetwork(epochs=2, random_state=0)
    >>> fit_tables([Table([clf], data.X, data.y)])
    >>> clf.predict(data.X).shape
    (300,)
    """
    fits = [_Fit(table) for table in tables]
    in_step: dict[tuple[int, int], list[_Fit]] = {}
    for fit in fits:
        pace = fit.learner.budget.epochs, fit.learner.batches.per_epoch
        in_step.setdefault(pace, []).append(fit)
    for some in in_step.values():
        courses = train([fit.learner for fit in some], [fit.judge_epoch for fit in some])
        for fit, windows in zip(some, courses, strict=True):
            fit.finish(windows)


class _Fit:
    """The methods of one table, what they learn from, and what is kept of their epochs."""

    def __init__(self, table: Table) -> None:
        self._estimators = list(table.estimators)
        budget = _common_budget(self._estimators)
        for estimator in self._estimators:
            check_rule(estimator.selection, estimator.min_accuracy)
        first, *others = self._estimators
        given = (table.X, table.y, table.sensitive_features, table.sample_weight, table.validation)
        self._parts = read_parts(first, *given, first.validation_fraction, budget.seed)
        for estimator in others:
            read_table(estimator, table.X, reset=True)
        training, validation = self._parts.training, self._parts.validation
        plans = [estimator._plan(training) for estimator in self._estimators]
        self._encoder = fit_encoder(training)
        axes = [estimator._axes(training) for estimator in self._estimators]
        self._judge = Judge(validation, list(dict.fromkeys(axis for own in axes for axis in own)))
        self._runs = [_Run(self._judge, own) for own in axes]
        self.learner = Learner(plans, _lesson(training, self._encoder), budget)
        x = torch.from_numpy(self._encoder.transform(validation.X))
        self._portions = Inputs.of(x).split(_CHUNK)

    def judge_epoch(self, epoch: int, learner: Learner) -> None:
        """Look at all members on the validation rows."""
        seen = self._judge.evaluate(learner.scores(self._portions))
        for member, run in enumerate(self._runs):
            run.record(epoch, learner, member, seen)

    def finish(self, windows: dict[int, pd.DataFrame]) -> None:
        """Turn the runs into fitted classifiers."""
        for member, (estimator, run) in enumerate(zip(self._estimators, self._runs, strict=True)):
            run.windows = windows.get(member)
            estimator._keep(run, self._parts, self._encoder)


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
