"""How a front is searched, as one value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import torch

from apfex.front._criteria import Criteria
from apfex.front._scoring import Scoring
from apfex.models import Aims, TrainingSettings, TreeSettings, spread_aims
from apfex.strategies import Strategy

_MOST_FOLDS = 10
_SMALL = 5_000
"""Rows below which one validation part is too small to rank points."""


@final
@dataclass(frozen=True, eq=False)
class SearchSettings:
    """How a front is searched; all values are in range.

    Attributes
    ----------
    criteria : Criteria
        The gaps to close.
    bounds : mapping from criterion to float
        Of the point that is to stay on the front in any case.
    models : tuple of str
        Of "mlp", "linear", "boosting"; "auto" alone; empty where the user brings a model.
    factory : callable or None
        ``(n_features, n_outputs) -> nn.Module``.
    estimator : classifier or None
        Of the user's, unfitted; it learns the label.
    scoring : Scoring
        What points are ranked by.
    search : {"postprocess", "inprocess"}
        Postprocessing: decision rules on joint models. Inprocessing: a model for each point.
    init : fitted model of the user's, or None
        The model that the search starts from.
    strategies : tuple of Strategy
        What decides where members go; they are dealt to them in turn.

    The others are those of :class:`~apfex.estimator.APFExClassifier`.
    """

    criteria: Criteria
    bounds: Mapping[str, float]
    models: tuple[str, ...]
    factory: Callable[[int, int], torch.nn.Module] | None
    estimator: Any
    hidden: tuple[int, ...]
    scoring: Scoring
    max_error_increase: float | None
    n_threads: int
    search: Literal["postprocess", "inprocess"]
    init: Any
    strategies: tuple[Strategy, ...]
    group_thresholds: bool
    n_points: int
    n_members: int
    validation: str
    validation_fraction: float
    bins: Any
    epochs: int | None
    batch_size: int
    learning_rate: float | None
    weight_decay: float
    patience: int | None
    n_estimators: int | None
    max_depth: int | None
    monotone_constraints: Mapping[str, int]
    device: torch.device
    verbose: int

    def training(self, n: int, seed: int) -> TrainingSettings:
        """How to train on n rows: 200 steps at least, else about 800, in 12 to 24 epochs."""
        epochs = self.epochs
        if epochs is None:
            batches = max(1, round(n / self.batch_size))
            epochs = max(-(-200 // batches), min(24, max(12, round(800 / batches))))
        return TrainingSettings(
            epochs=epochs,
            batch_size=self.batch_size,
            learning_rate=self._rate(n) if self.learning_rate is None else self.learning_rate,
            weight_decay=self.weight_decay,
            seed=seed,
            patience=self.patience,
        )

    def trees(
        self,
        n: int,
        seed: int,
        names: Sequence[str],
        feature_types: Sequence[str],
        constant: Collection[str] = (),
    ) -> TreeSettings:
        """How to grow trees on n rows with these columns; a constraint on a constant is met."""
        types = dict(zip(names, feature_types, strict=True))
        wrong = [
            name
            for name in self.monotone_constraints
            if types.get(name) != "q" and name not in constant
        ]
        if wrong:
            numbers = [name for name, type_ in types.items() if type_ == "q"]
            raise ValueError(
                f"monotone_constraints must name columns of numbers, got {wrong}; there are "
                f"{numbers}."
            )
        constraints = tuple(self.monotone_constraints.get(name, 0) for name in names)
        return TreeSettings.for_rows(
            n,
            n_estimators=self.n_estimators,
            max_depth=self.max_depth,
            learning_rate=self.learning_rate,
            monotone_constraints=constraints if any(constraints) else (),
            seed=seed,
        )

    @property
    def dtype(self) -> torch.dtype:
        """What models count in: ours in float64, where the order of rows leaves no trace."""
        own = self.factory is None and (self.init is None or self.search == "postprocess")
        return torch.float64 if own else torch.float32

    def aims(self, n_groupings: int) -> Aims:
        """Where members are to go; one plain member without criteria."""
        if not self.criteria.names:
            return Aims((), torch.zeros(1, 0))
        limits = self.criteria.limits(self.bounds)
        together = [self.criteria.rates_of(name) for name in self.criteria.names]
        return spread_aims(self.criteria.rates, self.n_members, n_groupings, limits, together)

    @property
    def figures(self) -> tuple[str, ...]:
        """Names of what is told of a member while it is trained: the loss that ranks, the gaps."""
        return (self.scoring.name.replace("_", " "), *(f"{n} gap" for n in self.criteria.names))

    @property
    def positive_rate(self) -> float | None:
        """Share of rows that get the last of two classes, where it is fixed."""
        rate = self.scoring.selection_rate
        return rate if rate is None or not self.criteria.of_other_label else 1 - rate

    @property
    def is_auto(self) -> bool:
        """Whether the table tells which models are trained."""
        return self.models == ("auto",)

    def looks_first(self, n: int) -> bool:
        """Whether a sample of n rows tells which models are trained on all of them."""
        return self.is_auto and n >= _SMALL

    def hidden_for(self, n: int) -> tuple[int, ...]:
        """Widths of the hidden layers; by themselves small tables get linear models alone."""
        return () if self.is_auto and n < _SMALL else self.hidden

    @property
    def has_trees(self) -> bool:
        """Whether there are boosted trees."""
        return "boosting" in self.models or self.is_auto

    @property
    def has_networks(self) -> bool:
        """Whether there are networks or linear models."""
        return self.models != ("boosting",)

    def _rate(self, n: int) -> float:
        """Slow from a fitted network, or where each point's own network would overfit."""
        if self.init is not None:
            return 2e-3
        return 5e-3 if self.search == "inprocess" and n < _SMALL else 2e-2

    @property
    def n_folds(self) -> int:
        """Parts into which rows are dealt where each has its turn to choose."""
        return min(_MOST_FOLDS, max(2, round(1 / self.validation_fraction)))

    def crosses(self, n: int) -> bool:
        """Whether each of n rows has its turn to choose."""
        small = n < _SMALL and not (self.bins == "tree" and self.has_networks)
        return self.validation == "cross" or (self.validation == "auto" and small)

    def bins_for(self, n: int) -> Literal["tree", "quantile"] | None:
        """Small tables have no use for bins."""
        if self.bins == "auto":
            return None if n < _SMALL or self.validation == "cross" else "tree"
        return self.bins
