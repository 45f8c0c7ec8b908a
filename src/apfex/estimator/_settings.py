"""What a user asks for, checked: the arguments of ``APFExClassifier`` as one value."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Literal

import torch

from apfex.front import Criteria, Rows, SearchSettings
from apfex.persistence import NotStored

if TYPE_CHECKING:
    from apfex.estimator._classifier import APFExClassifier

_CHOICES = {
    "grouping": ("intersectional", "attributes"),
    "scoring": ("accuracy", "balanced_accuracy"),
    "bins": ("auto", "tree", "quantile", None),
    "search": ("auto", "postprocess", "inprocess"),
    "validation": ("auto", "split", "cross"),
}
_LEAST = {"n_points": 1, "n_members": 2, "batch_size": 1}


def read_settings(given: APFExClassifier) -> SearchSettings:
    """Check the arguments of a classifier."""
    _check_stored(given)
    _check_choices(given)
    criteria = Criteria.of(given.criteria)
    models = _read_models(given)
    monotone = _read_monotone(given, models)
    settings = SearchSettings(
        criteria=criteria,
        bounds=read_bounds(given.max_gap, criteria.names),
        models=models,
        factory=None if models else given.model,
        hidden=() if "linear" in models else _read_hidden(given.hidden),
        by="balanced_error" if given.scoring == "balanced_accuracy" else "error",
        search=_read_search(given, models),
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
        n_estimators=given.n_estimators,
        max_depth=given.max_depth,
        monotone_constraints=monotone,
        device=_read_device(given.device),
        verbose=given.verbose,
    )
    settings.training(1, 0)  # each checks its own part
    replace(settings, monotone_constraints={}).trees(1, 0, (), ())
    return settings


def settings_for_rows(settings: SearchSettings, rows: Rows, favorable: int) -> SearchSettings:
    """Criteria of the favorable label, by its code; none, with a warning, without groups."""
    if rows.crossing is None:
        warnings.warn(
            "sensitive_features is None and sensitive names no columns: the front is a single "
            "plain model, fair to nobody in particular.",
            stacklevel=3,
        )
        return replace(settings, criteria=Criteria(()), bounds={}, group_thresholds=False)
    criteria = settings.criteria.for_label(favorable, len(rows.classes))
    return replace(settings, criteria=criteria)


def _check_stored(given: APFExClassifier) -> None:
    """Refuse to fit with an argument that was not stored."""
    for value in given.get_params(deep=False).values():
        if isinstance(value, NotStored):
            value()


def _read_models(given: APFExClassifier) -> tuple[str, ...]:
    """Names of the models, one or several."""
    if callable(given.model):
        return ()
    named = (given.model,) if isinstance(given.model, str) else given.model
    known = ("mlp", "linear", "boosting")
    models = tuple(named) if isinstance(named, Sequence) else (named,)
    distinct = len({str(model) for model in models}) == len(models) > 0
    if not distinct or not all(model in known for model in models):
        raise ValueError(
            f"model must be of {list(known)}, a tuple of them, or a factory, got {given.model!r}."
        )
    if {"mlp", "linear"} <= set(models):
        raise ValueError(
            f"model must not name both 'mlp' and 'linear', got {given.model!r}: linear models are "
            "part of 'mlp' where they help."
        )
    if len(models) > 1 and given.learning_rate is not None:
        raise ValueError(
            f"learning_rate must be None for several models, got {given.learning_rate}: networks "
            "and trees learn at different rates."
        )
    return models


def _read_monotone(given: APFExClassifier, models: tuple[str, ...]) -> dict[str, int]:
    if not isinstance(given.monotone_constraints or {}, Mapping):
        raise ValueError(
            "monotone_constraints must map columns to -1, 0 or 1, got "
            f"{given.monotone_constraints!r}."
        )
    found = dict(given.monotone_constraints or {})
    wrong = {name: sign for name, sign in found.items() if sign not in (-1, 0, 1)}
    if wrong:
        raise ValueError(f"monotone_constraints must be of -1, 0 and 1, got {wrong}.")
    if any(found.values()) and models != ("boosting",):
        raise ValueError(
            f"monotone_constraints must be None unless model is 'boosting', got {found} with "
            f"model={given.model!r}."
        )
    return found


def _read_search(
    given: APFExClassifier, models: tuple[str, ...]
) -> Literal["postprocess", "inprocess"]:
    """Rules need models of our own; a factory or a start is trained as it is."""
    _check_init(given, models)
    reasons = {
        "init": given.init is not None,
        "a factory as model": callable(given.model),
        "monotone_constraints": any((given.monotone_constraints or {}).values()),
    }
    reason = next((what for what, holds in reasons.items() if holds), None)
    if given.search == "postprocess" and reason:
        raise ValueError(
            f"search must be 'inprocess' or 'auto' with {reason}, got 'postprocess': rules decide "
            "by models of their own, and by a guess of the group."
        )
    search = "inprocess" if reason or given.search == "inprocess" else "postprocess"
    if search == "inprocess":
        _check_members(given, models)
    elif given.validation == "cross" and given.bins == "tree" and models != ("boosting",):
        raise ValueError(
            "bins must not be 'tree' with validation='cross', got 'tree': they are made with the "
            "labels of all rows, and no row would be left that has not been seen. Use 'quantile'."
        )
    elif given.patience is not None:
        raise ValueError(
            f"patience must be None for rules, got {given.patience}: their models are trained "
            "to the end. Use search='inprocess'."
        )
    return search


def _check_init(given: APFExClassifier, models: tuple[str, ...]) -> None:
    if given.init is None:
        return
    if models == ("boosting",):
        if not hasattr(given.init, "inplace_predict") and not hasattr(given.init, "get_booster"):
            raise ValueError(
                "init must be a fitted XGBoost model for model='boosting', got "
                f"{type(given.init).__name__}."
            )
    elif not isinstance(given.init, torch.nn.Module):
        raise ValueError(
            f"init must be a fitted torch.nn.Module or None, got {type(given.init).__name__}; a "
            "fitted XGBoost model goes with model='boosting'."
        )


def _check_members(given: APFExClassifier, models: tuple[str, ...]) -> None:
    if len(models) > 1:
        raise ValueError(
            f"model must be a single one for members, got {given.model!r}; use "
            "search='postprocess', without init, to have several."
        )
    if given.group_thresholds:
        raise ValueError(
            "group_thresholds must be False for members, got True: only rules have them. "
            "Leave search, init and model at their defaults."
        )
    if given.validation == "cross":
        raise ValueError(
            "validation must be 'split' or 'auto' for members, got 'cross': every point is a "
            "model of its own, which would have to be trained for every fold."
        )


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
    for name, least in _LEAST.items():
        value = getattr(given, name)
        if not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")
    for name in ("epochs", "patience", "n_estimators", "max_depth"):
        value = getattr(given, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral)):
            raise ValueError(f"{name} must be None or an integer, got {value!r}.")
    if given.learning_rate is not None and not isinstance(given.learning_rate, Real):
        raise ValueError(f"learning_rate must be None or a number, got {given.learning_rate!r}.")
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
