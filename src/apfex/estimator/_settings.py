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
    "bins": ("tree", "quantile", None),
}
_LEAST = {"n_points": 1, "n_members": 2, "batch_size": 1}


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
    n_points: int
    n_members: int
    validation_fraction: float
    bins: Any
    epochs: int | None
    batch_size: int
    learning_rate: float
    weight_decay: float
    device: torch.device
    verbose: int

    def training(self, n: int, seed: int) -> TrainingSettings:
        """How to train on n rows: at least 12 epochs and 200 steps, unless told."""
        epochs = self.epochs
        if epochs is None:
            epochs = max(12, round(200 * self.batch_size / max(n, self.batch_size)))
        return TrainingSettings(
            epochs=epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            seed=seed,
        )


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
        n_points=given.n_points,
        n_members=given.n_members,
        validation_fraction=given.validation_fraction,
        bins=given.bins,
        epochs=given.epochs,
        batch_size=given.batch_size,
        learning_rate=given.learning_rate,
        weight_decay=given.weight_decay,
        device=_read_device(given.device),
        verbose=given.verbose,
    )
    settings.training(1, 0)  # checks its own part
    return settings


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
    if given.epochs is not None and not isinstance(given.epochs, Integral):
        raise ValueError(f"epochs must be None or an integer, got {given.epochs!r}.")
    if not 0 < given.validation_fraction < 1:
        raise ValueError(
            f"validation_fraction must be between 0 and 1, got {given.validation_fraction}."
        )


def _read_hidden(hidden: Sequence[int]) -> tuple[int, ...]:
    widths = tuple(hidden)
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
