"""What a user asks for, checked: the arguments of ``APFExClassifier`` as one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, final

import torch

from apfex.estimator._criteria import Criteria
from apfex.training import TrainingSettings

if TYPE_CHECKING:
    from apfex.estimator._classifier import APFExClassifier

_CHOICES = {
    "grouping": ("intersectional", "attributes"),
    "scoring": ("accuracy", "balanced_accuracy"),
    "bins": ("auto", "tree", "quantile", None),
    "search": ("auto", "rules", "networks"),
    "validation": ("auto", "split", "cross"),
}
_LEAST = {"n_points": 1, "n_members": 2, "batch_size": 1}
_MOST_FOLDS = 10
_SMALL = 5_000
"""Rows below which one validation part is too small to rank points."""


@final
@dataclass(frozen=True, eq=False)
class Settings:
    """Arguments that name something and lie in range."""

    criteria: Criteria
    bounds: Mapping[str, float]
    grouping: str
    factory: Callable[[int, int], torch.nn.Module] | None
    hidden: tuple[int, ...]
    by: Literal["error", "balanced_error"]
    """What points are ranked by: "error" or "balanced_error"."""
    search: Literal["rules", "networks"]
    init: torch.nn.Module | None
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

    def _rate(self, n: int) -> float:
        """Slow from a fitted network, or where each point's own network would overfit."""
        if self.init is not None:
            return 2e-3
        return 5e-3 if self.search == "networks" and n < _SMALL else 2e-2

    @property
    def n_folds(self) -> int:
        """Parts into which rows are dealt where each has its turn to choose."""
        return min(_MOST_FOLDS, max(2, round(1 / self.validation_fraction)))

    def crosses(self, n: int) -> bool:
        """Whether each of n rows has its turn to choose."""
        small = n < _SMALL and self.bins != "tree"
        return self.validation == "cross" or (self.validation == "auto" and small)

    def bins_for(self, n: int) -> Literal["tree", "quantile"] | None:
        """Small tables have no use for bins."""
        if self.bins == "auto":
            return None if n < _SMALL or self.validation == "cross" else "tree"
        return self.bins


def read_settings(given: APFExClassifier) -> Settings:
    """Check the arguments of a classifier."""
    _check_choices(given)
    criteria = Criteria.of(given.criteria)
    settings = Settings(
        criteria=criteria,
        bounds=read_bounds(given.max_gap, criteria.names),
        grouping=given.grouping,
        factory=None if isinstance(given.model, str) else given.model,
        hidden=() if given.model == "linear" else _read_hidden(given.hidden),
        by="balanced_error" if given.scoring == "balanced_accuracy" else "error",
        search=_read_search(given),
        init=given.init,
        group_thresholds=given.group_thresholds,
        n_points=given.n_points,
        n_members=given.n_members,
        validation=given.validation,
        validation_fraction=given.validation_fraction,
        bins=given.bins,
        epochs=given.epochs,
        batch_size=given.batch_size,
        learning_rate=given.learning_rate,
        weight_decay=given.weight_decay,
        patience=given.patience,
        device=_read_device(given.device),
        verbose=given.verbose,
    )
    settings.training(1, 0)  # checks its own part
    return settings


def _read_search(given: APFExClassifier) -> Literal["rules", "networks"]:
    """Rules need models of our own; a factory or a start is trained as it is."""
    own = given.init is not None or not isinstance(given.model, str)
    if given.init is not None and not isinstance(given.init, torch.nn.Module):
        raise ValueError(
            f"init must be a fitted torch.nn.Module or None, got {type(given.init).__name__}."
        )
    if given.search == "rules" and own:
        what = "init" if given.init is not None else "a factory as model"
        raise ValueError(
            f"search must be 'networks' or 'auto' with {what}, got 'rules': rules have networks "
            "of their own."
        )
    search = "networks" if own or given.search == "networks" else "rules"
    if search == "networks":
        if given.group_thresholds:
            raise ValueError(
                "group_thresholds must be False for networks, got True: only rules have them. "
                "Leave search, init and model at their defaults."
            )
        if given.validation == "cross":
            raise ValueError(
                "validation must be 'split' or 'auto' for networks, got 'cross': every point is a "
                "network of its own, which would have to be trained for every fold."
            )
    elif given.validation == "cross" and given.bins == "tree":
        raise ValueError(
            "bins must not be 'tree' with validation='cross', got 'tree': they are made with the "
            "labels of all rows, and no row would be left that has not been seen. Use 'quantile'."
        )
    elif given.patience is not None:
        raise ValueError(
            f"patience must be None for rules, got {given.patience}: their networks are trained "
            "to the end. Use search='networks'."
        )
    return search


def read_bounds(max_gap: float | Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    """Bound of each criterion; a number is for all of them."""
    if isinstance(max_gap, Mapping):
        bounds = {Criteria.short(name): float(bound) for name, bound in max_gap.items()}
        unknown = sorted(set(bounds) - set(names))
        if unknown:
            raise ValueError(f"max_gap must name criteria of {list(names)}, got {unknown}.")
    else:
        bounds = dict.fromkeys(names, float(max_gap))
    for name, bound in bounds.items():
        if not bound >= 0:
            raise ValueError(f"max_gap must be at least 0, got {bound} for {name!r}.")
    return bounds


def _check_choices(given: APFExClassifier) -> None:
    for name, allowed in _CHOICES.items():
        if getattr(given, name) not in allowed:
            raise ValueError(
                f"{name} must be one of {list(allowed)}, got {getattr(given, name)!r}."
            )
    if not callable(given.model) and given.model not in ("mlp", "linear"):
        raise ValueError(f"model must be 'mlp', 'linear' or a factory, got {given.model!r}.")
    for name, least in _LEAST.items():
        value = getattr(given, name)
        if not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")
    for name in ("epochs", "patience"):
        value = getattr(given, name)
        if value is not None and not isinstance(value, Integral):
            raise ValueError(f"{name} must be None or an integer, got {value!r}.")
    if not 0 < given.validation_fraction < 1:
        raise ValueError(
            f"validation_fraction must be between 0 and 1, got {given.validation_fraction}."
        )


def _read_hidden(hidden: Sequence[int]) -> tuple[int, ...]:
    widths = tuple([hidden] if isinstance(hidden, int) else hidden)
    if not all(isinstance(width, Integral) and width >= 1 for width in widths):
        raise ValueError(f"hidden must be widths of at least 1, got {hidden!r}.")
    return widths


def _read_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device must be 'auto' or a device of torch, got {name!r}.") from error
