"""What a user asks for, checked: the arguments of ``APFExClassifier`` as one value."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_random_state

from apfex.arguments import meant, require_flags, require_kind, require_numbers, require_whole
from apfex.estimator._user_model import check_estimator, check_init, is_estimator
from apfex.front import (
    Criteria,
    RowFacts,
    Rows,
    Scoring,
    SearchSettings,
    is_xgboost,
    scorer_of,
)
from apfex.models import thread_count
from apfex.persistence import NotStored
from apfex.strategies import check_strategies, read_strategies
from apfex.streams import StreamSettings

if TYPE_CHECKING:
    from apfex.estimator._classifier import APFExClassifier

_CHOICES = {
    "grouping": ("intersectional", "attributes"),
    "bins": ("auto", "tree", "quantile", None),
    "search": ("auto", "postprocess", "inprocess"),
    "validation": ("auto", "split", "cross"),
}
_LEAST = {"n_points": 1, "n_members": 2, "batch_size": 1}
_MOST, _MOST_THREADS, _MOST_LAYERS = 2**31 - 1, 4_096, 1_000
_MEMBERS = {"postprocess": 26, "inprocess": 16}
_POINTS = 16  # for each criterion


def read_settings(given: APFExClassifier) -> SearchSettings:
    """Check the arguments of a classifier."""
    _check_stored(given)
    _check_choices(given)
    criteria = Criteria.of(given.criteria)
    monotone = _read_monotone(given)
    hidden = _read_hidden(given.hidden)
    search = _read_search(given, monotone)
    models = _read_models(given, search)
    _check_search(given, models, search, monotone)
    settings = SearchSettings(
        criteria=criteria,
        bounds=read_bounds(given.max_gap, criteria.names),
        models=models,
        factory=None if models else given.model,
        estimator=given.model if is_estimator(given.model) else None,
        hidden=() if "linear" in models else hidden,
        scoring=_read_scoring(given),
        max_error_increase=read_increase(given.max_error_increase),
        n_threads=1,  # until the rows are known
        search=search,
        init=given.init,
        strategies=read_strategies(given.strategy),
        group_thresholds=given.group_thresholds,
        n_points=given.n_points or _POINTS * max(1, len(criteria.names)),
        n_members=_MEMBERS[search] if given.n_members is None else given.n_members,
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


def settings_for_rows(
    settings: SearchSettings,
    rows: Rows | RowFacts,
    favorable: int,
    n_jobs: int | None,
    class_weight: str | Mapping[Any, float] | None = None,
) -> SearchSettings:
    """Criteria of the favorable label, by its code; none, with a warning, without groups."""
    weight = _class_weight_for(class_weight, rows)
    scoring = replace(_scoring_for(settings.scoring, rows.classes, favorable), class_weight=weight)
    threads = thread_count(n_jobs, rows.n_rows)
    settings = replace(settings, scoring=scoring, n_threads=threads)
    criteria = settings.criteria.for_label(favorable, len(rows.classes))
    n_gaps = len(criteria.rates) * len(rows.groupings)  # none without groups
    check_strategies(settings.strategies, 1 + n_gaps)
    if rows.crossing is None:
        warnings.warn(
            "sensitive_features is None and sensitive names no columns: the front is a single "
            "plain model, fair to nobody in particular.",
            stacklevel=3,
        )
        return replace(settings, criteria=Criteria(()), bounds={}, group_thresholds=False)
    return replace(settings, criteria=criteria)


def _read_scoring(given: APFExClassifier) -> Scoring:
    """What points are ranked by; a scorer is bound to the classes later."""
    name, costs, rate = given.scoring, given.cost_matrix, given.selection_rate
    ours = {"accuracy": "error", "balanced_accuracy": "balanced_error"}
    if costs is not None and name != "accuracy":
        raise ValueError(
            f"cost_matrix must be None with scoring={name!r}, got one: costs rank the points by "
            "themselves; leave scoring at 'accuracy'."
        )
    _check_class_weight(given)
    if rate is not None and not (isinstance(rate, Real) and 0 < rate < 1):
        raise ValueError(f"selection_rate must be None or between 0 and 1, got {rate!r}.")
    rate = None if rate is None else float(rate)
    if costs is not None:
        return Scoring("cost", _read_costs(costs), rate)
    if isinstance(name, str) and name in ours:
        return Scoring(ours[name], None, rate)
    from sklearn.metrics import get_scorer_names

    if not isinstance(name, str) or name not in get_scorer_names():
        raise ValueError(
            f"scoring must be 'accuracy', 'balanced_accuracy', or the name of a scorer of "
            f"scikit-learn that uses decisions, such as 'f1', got {name!r}."
            f"{meant(name, ['accuracy', 'balanced_accuracy', *get_scorer_names()])}"
        )
    return Scoring(name, None, rate)


def _check_class_weight(given: APFExClassifier) -> None:
    weights = given.class_weight
    if weights is None:
        return
    if isinstance(weights, Mapping):
        wrong = {
            label: weight
            for label, weight in weights.items()
            if not (isinstance(weight, Real) and 0 < float(weight) < np.inf)
        }
        if wrong or not weights:
            found = wrong or dict(weights)
            raise ValueError(f"class_weight must map labels to numbers above 0, got {found}.")
    elif not (isinstance(weights, str) and weights == "balanced"):
        raise ValueError(
            "class_weight must be None, 'balanced', or a mapping from labels to weights, got "
            f"{weights!r}."
        )
    if given.cost_matrix is not None or given.scoring == "balanced_accuracy":
        other = "cost_matrix" if given.cost_matrix is not None else "scoring='balanced_accuracy'"
        raise ValueError(
            f"class_weight must be None with {other}, got {weights!r}: both say what an error on a "
            "label costs; give one of the two."
        )


def _class_weight_for(
    given: str | Mapping[Any, float] | None, rows: Rows | RowFacts
) -> np.ndarray | None:
    """Weight of each class [c]; one that is not named counts 1, as in scikit-learn."""
    if given is None:
        return None
    c, labels = len(rows.classes), rows.classes.tolist()
    if isinstance(given, Mapping):
        strange = [label for label in given if label not in labels]
        if strange:
            raise ValueError(f"class_weight must name labels of {labels}, got {strange}.")
        return np.array([float(given.get(label, 1.0)) for label in labels])
    counts = rows.label_totals
    return counts.sum() / (c * counts)


def _scoring_for(scoring: Scoring, classes: np.ndarray, favorable: int) -> Scoring:
    """The scoring of these classes, checked."""
    c = len(classes)
    if scoring.costs is not None and scoring.costs.shape != (c, c):
        raise ValueError(
            f"cost_matrix must be {c} x {c}, a row for each label and a column for each decision "
            f"in the order {classes.tolist()}, got {scoring.costs.shape}."
        )
    if scoring.selection_rate is not None and c != 2:
        raise ValueError(
            f"selection_rate must be None unless there are two classes, got "
            f"{scoring.selection_rate} with {c}."
        )
    if scoring.name in ("error", "balanced_error", "cost"):
        return scoring
    scorer, first = scorer_of(scoring.name, c, favorable), np.arange(c)
    try:
        scorer(first, first, None)
    except AttributeError as error:
        raise ValueError(
            f"scoring must name a scorer that uses decisions, got {scoring.name!r}, which uses "
            "scores or probabilities: those are the same at every point."
        ) from error
    except Exception as error:
        raise ValueError(
            f"scoring must name a scorer that uses decisions and takes {c} classes, got "
            f"{scoring.name!r}: {error}"
        ) from error
    return replace(scoring, name=f"1 - {scoring.name}", scorer=scorer)


def _read_costs(given: Any) -> np.ndarray:
    try:
        costs = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"cost_matrix must be a matrix of numbers, got {given!r}.") from error
    square = costs.ndim == 2 and costs.shape[0] == costs.shape[1]
    if not square or not np.isfinite(costs).all() or (costs < 0).any():
        raise ValueError(
            "cost_matrix must be square, a row for each label and a column for each decision, of "
            f"numbers from 0 on, got {costs.tolist()}."
        )
    if not (costs.max(1) > costs.min(1)).all():
        raise ValueError(
            "cost_matrix must tell decisions apart: in each row some must cost more than others, "
            f"got {costs.tolist()}."
        )
    return costs


def read_increase(given: float | None) -> float | None:
    if given is not None and not (isinstance(given, Real) and given >= 0):
        raise ValueError(f"max_error_increase must be None or at least 0, got {given!r}.")
    return None if given is None else float(given)


def _check_stored(given: APFExClassifier) -> None:
    """Refuse to fit with an argument that was not stored."""
    for value in given.get_params(deep=False).values():
        if isinstance(value, NotStored):
            value()


def _read_models(
    given: APFExClassifier, search: Literal["postprocess", "inprocess"]
) -> tuple[str, ...]:
    """Names of the models, one or several; trees tell the group beside a model of the user's."""
    if is_estimator(given.model):
        check_estimator(given)
        return ("boosting",)
    if callable(given.model):
        return ()
    if given.init is not None and search == "postprocess":
        return ("boosting",)
    if isinstance(given.model, str) and given.model == "auto":
        return _read_auto(given, search)
    named = (given.model,) if isinstance(given.model, str) else given.model
    known = ("mlp", "linear", "boosting")
    models = tuple(named) if isinstance(named, Sequence) else (named,)
    distinct = len({str(model) for model in models}) == len(models) > 0
    if not distinct or not all(model in known for model in models):
        raise ValueError(
            f"model must be 'auto', of {list(known)}, a tuple of them, a classifier of "
            f"scikit-learn's form, or a factory, got {given.model!r}.{meant(given.model, known)}"
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


def _read_auto(
    given: APFExClassifier, search: Literal["postprocess", "inprocess"]
) -> tuple[str, ...]:
    """The one model of members; of rules the table tells."""
    if is_xgboost(given.init) or any((given.monotone_constraints or {}).values()):
        return ("boosting",)
    if search == "inprocess":
        return ("mlp",)
    if given.learning_rate is not None:
        raise ValueError(
            f"learning_rate must be None for model='auto', got {given.learning_rate}: networks and "
            "trees learn at different rates; name one model."
        )
    return ("auto",)


def _read_monotone(given: APFExClassifier) -> dict[str, int]:
    if not isinstance(given.monotone_constraints or {}, Mapping):
        raise ValueError(
            "monotone_constraints must map columns to -1, 0 or 1, got "
            f"{given.monotone_constraints!r}."
        )
    found = dict(given.monotone_constraints or {})
    wrong = {name: sign for name, sign in found.items() if sign not in (-1, 0, 1)}
    if wrong:
        raise ValueError(f"monotone_constraints must be of -1, 0 and 1, got {wrong}.")
    return found


def _read_search(
    given: APFExClassifier, monotone: Mapping[str, int]
) -> Literal["postprocess", "inprocess"]:
    """Rules decide by probabilities of the label; a factory is trained as it is."""
    reasons = {
        "a factory as model": callable(given.model) and not is_estimator(given.model),
        "monotone_constraints": any(monotone.values()),
    }
    reason = next((what for what, holds in reasons.items() if holds), None)
    if given.search == "postprocess" and reason:
        raise ValueError(
            f"search must be 'inprocess' or 'auto' with {reason}, got 'postprocess': rules decide "
            "by models of their own, and by a guess of the group."
        )
    search = "inprocess" if reason or given.search == "inprocess" else "postprocess"
    check_init(given, search)
    return search


def _check_search(
    given: APFExClassifier, models: tuple[str, ...], search: str, monotone: Mapping[str, int]
) -> None:
    """Refuse arguments that the search does not have."""
    if any(monotone.values()) and (models != ("boosting",) or is_estimator(given.model)):
        raise ValueError(
            "monotone_constraints must be None unless model is 'auto' or 'boosting', got "
            f"{dict(monotone)} with model={given.model!r}."
        )
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


def _check_members(given: APFExClassifier, models: tuple[str, ...]) -> None:
    for name in ("cost_matrix", "selection_rate"):
        if getattr(given, name) is not None:
            raise ValueError(
                f"{name} must be None for members, got {getattr(given, name)!r}: only rules are "
                "fitted by it. Use search='postprocess', class_weight or scoring."
            )
    if len(models) > 1:
        raise ValueError(
            f"model must be a single one for members, got {given.model!r}; use "
            "search='postprocess' to have several."
        )
    if given.group_thresholds:
        raise ValueError(
            "group_thresholds must be False for members, got True: only rules have them. "
            "Leave search at its default, and give no factory as model."
        )
    if given.validation == "cross":
        raise ValueError(
            "validation must be 'split' or 'auto' for members, got 'cross': every point is a "
            "model of its own, which would have to be trained for every fold."
        )


def read_bounds(max_gap: float | Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    """Bound of each criterion; a number is for all of them."""
    given: dict[str, Any] = dict.fromkeys(names, max_gap)
    if isinstance(max_gap, Mapping):
        given = {Criteria.short(str(name)): bound for name, bound in max_gap.items()}
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise ValueError(
                f"max_gap must name criteria of {list(names)}, got {unknown}."
                f"{meant(unknown[0], names)}"
            )
    for name, bound in given.items():
        if isinstance(bound, bool | np.bool_) or not isinstance(bound, Real):
            raise ValueError(
                "max_gap must be a number from 0 to 1, or a mapping from criteria to such numbers, "
                f"got {bound!r} for {name!r}; give 0.05, or {{{name!r}: 0.05}}."
            )
        if not 0 <= float(bound) <= 1:
            raise ValueError(
                f"max_gap must be from 0 to 1, got {bound} for {name!r}; 0.05 is 5 points, and 1 "
                "is no limit."
            )
    return {name: float(bound) for name, bound in given.items()}


def _check_choices(given: APFExClassifier) -> None:
    for name, allowed in _CHOICES.items():
        if getattr(given, name) not in allowed:
            raise ValueError(
                f"{name} must be one of {list(allowed)}, got {getattr(given, name)!r}."
                f"{meant(getattr(given, name), [one for one in allowed if one])}"
            )
    for name, least in _LEAST.items():
        value = getattr(given, name)
        if value is None and name != "batch_size":
            continue
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")
    for name in ("epochs", "patience", "n_estimators", "max_depth"):
        value = getattr(given, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral)):
            raise ValueError(f"{name} must be None or an integer, got {value!r}.")
    for name in (*_LEAST, "epochs", "patience", "n_estimators", "max_depth"):
        value = getattr(given, name)
        if value is not None and value > _MOST:
            raise ValueError(f"{name} must be at most {_MOST:,}, got {value}.")
    if given.learning_rate is not None and not isinstance(given.learning_rate, Real):
        raise ValueError(f"learning_rate must be None or a number, got {given.learning_rate!r}.")
    require_flags(
        include_sensitive=given.include_sensitive, group_thresholds=given.group_thresholds
    )
    require_numbers(validation_fraction=given.validation_fraction, weight_decay=given.weight_decay)
    if not 0 < given.validation_fraction < 1:
        raise ValueError(
            f"validation_fraction must be between 0 and 1, got {given.validation_fraction}."
        )
    _check_label(given.favorable_label)
    _check_work(given)
    require_kind(
        "streaming", given.streaming, (StreamSettings, type(None)), "StreamSettings or None"
    )


def _check_label(label: Any) -> None:
    if isinstance(label, list | tuple | set | Mapping | np.ndarray):
        raise TypeError(f"favorable_label must be one label, got {label!r}.")


def _check_work(given: APFExClassifier) -> None:
    """Threads, the seed, and what is told."""
    require_kind("verbose", given.verbose, (bool, Integral), "True, False or a whole number")
    if given.n_jobs is not None:
        require_whole(n_jobs=given.n_jobs)
        if given.n_jobs == 0:
            raise ValueError("n_jobs must be a number of threads, or -1 for all, got 0.")
        if abs(given.n_jobs) > _MOST_THREADS:
            raise ValueError(
                f"n_jobs must be at most {_MOST_THREADS:,} threads, or -1 for all, got "
                f"{given.n_jobs}."
            )
    try:
        check_random_state(given.random_state)
    except ValueError as error:
        raise ValueError(
            "random_state must be None, a whole number from 0 to 2**32 - 1 or a RandomState, got "
            f"{given.random_state!r}."
        ) from error


def _read_hidden(hidden: Any) -> tuple[int, ...]:
    known = isinstance(hidden, Integral | list | tuple) and not isinstance(hidden, bool)
    widths: tuple[Any, ...] = (
        tuple([hidden] if isinstance(hidden, Integral) else hidden) if known else (0,)
    )
    if not all(isinstance(width, Integral) and int(width) >= 1 for width in widths):
        raise ValueError(f"hidden must be widths of at least 1, got {hidden!r}.")
    if len(widths) > _MOST_LAYERS or max(widths, default=1) > _MOST:
        raise ValueError(
            f"hidden must be at most {_MOST_LAYERS:,} widths of at most {_MOST:,}, got "
            f"{len(widths):,} up to {max(widths)}."
        )
    return widths


def _read_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device must be 'auto' or a device of torch, got {name!r}.") from error
    if found.type == "meta":
        raise ValueError(f"device must be one that computes, got {name!r}, which only has shapes.")
    try:
        torch.empty(1, device=found)
    except (AssertionError, RuntimeError, NotImplementedError) as error:
        raise ValueError(
            f"device must be one that is there, got {name!r}: {_why_not(found)}; use 'auto' or "
            "'cpu'."
        ) from error
    return found


def _why_not(device: torch.device) -> str:
    """Why a device cannot be used, in words."""
    if device.type != "cuda":
        return f"this torch ({torch.__version__}) cannot use it on this machine"
    if not torch.backends.cuda.is_built():
        return f"this torch ({torch.__version__}) is built without CUDA"
    n = torch.cuda.device_count()
    return "no CUDA device is found" if not n else f"there are {n}, from cuda:0 to cuda:{n - 1}"
