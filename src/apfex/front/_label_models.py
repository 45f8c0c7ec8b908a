"""A user's model of the label: any classifier, network, trees or function, as probabilities."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, final

import numpy as np
import torch
from torch import nn

from apfex.front._init_model import (
    InitColumns,
    NumericColumns,
    check_init_network,
    read_init_trees,
)
from apfex.front._rows import Rows

_CHUNK = 2**14
_ROUNDING = 1e-3
"""By how much the probabilities of a row may miss a sum of one."""
_SURE, _FAR = 1 - 1e-6, 0.2
"""A probability that leaves nothing open, and shares of labels that no model of them would have."""


class LabelModel(Protocol):
    """Something that knows the probabilities of the label."""

    @property
    def name(self) -> str:
        """What it is, for messages."""
        ...

    def probabilities(self, X: Any) -> np.ndarray:
        """Probabilities of each class, float64 [n, c]."""
        ...

    def decisions(self, X: Any) -> np.ndarray | None:
        """Codes of classes [n], where those are not always the likelier ones."""
        ...


@final
@dataclass(frozen=True, eq=False)
class EstimatorModel:
    """A fitted classifier in the way of scikit-learn.

    Attributes
    ----------
    estimator : object with ``predict_proba``
    places : tuple of int
        The place of each of its classes among all.
    n_classes : int
    argument : {"model", "init"}
        What the user gave it as.
    decides : bool
        Whether its ``predict`` is not always the likelier label.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> dummy = DummyClassifier().fit([[0], [0], [0], [0]], [0, 1, 1, 1])
    >>> EstimatorModel(dummy, (0, 1), 2, "init").probabilities([[0]])
    array([[0.25, 0.75]])
    """

    estimator: Any
    places: tuple[int, ...]
    n_classes: int
    argument: Literal["model", "init"]
    decides: bool = False

    @property
    def name(self) -> str:
        """Its class."""
        return type(self.estimator).__name__

    def probabilities(self, X: Any) -> np.ndarray:
        """Probabilities of each class; none of those that it does not know."""
        found = _call(self.argument, self.name, self.estimator.predict_proba, X)
        known = _check_probabilities(found, len(X), len(self.places), self.argument, self.name)
        every = np.zeros((len(X), self.n_classes))
        every[:, self.places] = known
        return every

    def decisions(self, X: Any) -> np.ndarray | None:
        """Its own decisions, where they are needed."""
        return self.predict(X) if self.decides else None

    def predict(self, X: Any) -> np.ndarray:
        """Codes of what it predicts."""
        decided = np.asarray(_call(self.argument, self.name, self.estimator.predict, X)).ravel()
        found = np.zeros(len(decided), dtype=np.int64)
        for place, label in zip(self.places, self.estimator.classes_, strict=True):
            found[decided == label] = place
        return found


@final
@dataclass(frozen=True, eq=False)
class FunctionModel:
    """A function from the table to probabilities or log-odds.

    Attributes
    ----------
    function : callable
    gives : {"probabilities", "scores"}
        What its values were for the rows of the fit.
    n_classes : int

    Examples
    --------
    >>> model = FunctionModel(lambda X: np.array([0.25] * len(X)), "probabilities", 2)
    >>> model.probabilities([[1.0]])
    array([[0.75, 0.25]])
    """

    function: Callable[[Any], Any]
    gives: Literal["probabilities", "scores"]
    n_classes: int

    @property
    def name(self) -> str:
        """Its own, or "function"."""
        return getattr(self.function, "__name__", "function")

    def probabilities(self, X: Any) -> np.ndarray:
        """Probabilities of each class."""
        found = _values(self.function, self.name, X, self.n_classes)
        if self.gives == "scores":
            return _softmax(found)
        if found.ndim == 1:
            found = np.stack([1 - found, found], 1)
        return _check_probabilities(found, len(X), self.n_classes, "init", self.name)

    def decisions(self, X: Any) -> None:
        """It decides for the likelier label."""


@final
@dataclass(frozen=True, eq=False)
class LogitsModel:
    """A network or trees with logits as outputs.

    Attributes
    ----------
    module : nn.Module
        On the CPU, in evaluation mode.
    columns : NumericColumns or InitColumns
        How it takes a table.
    name : str
        Class of the user's model.

    Examples
    --------
    >>> model = LogitsModel(nn.Identity(), NumericColumns(("a",)), "Identity")
    >>> model.probabilities([[0.0]])
    array([[0.5, 0.5]])
    """

    module: nn.Module
    columns: NumericColumns | InitColumns
    name: str

    def probabilities(self, X: Any) -> np.ndarray:
        """Probabilities of each class."""
        x = torch.from_numpy(self.columns.transform(X))
        with torch.no_grad():
            logits = torch.cat([self.module(part).flatten(1) for part in x.split(_CHUNK)])
        values = logits.double().numpy()
        return _softmax(values[:, 0] if values.shape[1] == 1 else values)

    def decisions(self, X: Any) -> None:
        """It decides for the likelier label."""


def read_init(init: Any, rows: Rows) -> LabelModel:
    """The user's fitted model, if it goes with the rows; it is not changed."""
    if isinstance(init, nn.Module):
        numbers = NumericColumns.of(rows.X)
        check_init_network(init, torch.from_numpy(numbers.transform(rows.X)), len(rows.classes))
        return LogitsModel(copy.deepcopy(init).cpu().eval(), numbers, type(init).__name__)
    if is_xgboost(init):
        columns = InitColumns.of(rows.X)
        return LogitsModel(read_init_trees(init, rows, columns), columns, type(init).__name__)
    own = _copied(init)
    if hasattr(init, "predict_proba"):
        return read_estimator(own, rows)
    return _read_function(own, rows)


def _copied(init: Any) -> Any:
    """A copy, so that no front changes when the model is fitted anew; itself if there is none."""
    try:
        return copy.deepcopy(init)
    except Exception:  # what holds a lock, a connection or a file
        return init


def is_xgboost(init: Any) -> bool:
    """Whether a model is a Booster, or a model around one."""
    return hasattr(init, "inplace_predict") or hasattr(init, "get_booster")


def read_estimator(init: Any, rows: Rows) -> EstimatorModel:
    """A fitted classifier that knows the classes of the rows."""
    known = np.asarray(getattr(init, "classes_", rows.classes)).tolist()
    wanted = rows.classes.tolist()
    if len(known) != len(wanted) or set(known) != set(wanted):
        raise ValueError(
            f"init must know the classes {wanted} of y, got {known}; encode y as for init, and "
            "give fit rows of all its classes."
        )
    model = EstimatorModel(init, tuple(map(wanted.index, known)), len(wanted), "init")
    likelier = model.probabilities(rows.X).argmax(1)
    if not hasattr(init, "predict") or not hasattr(init, "classes_"):
        return model
    own = bool((model.predict(rows.X) != likelier).any())
    return EstimatorModel(init, model.places, len(wanted), "init", own)


def _read_function(init: Callable[[Any], Any], rows: Rows) -> FunctionModel:
    """A function, and whether it gives probabilities or scores."""
    c, name = len(rows.classes), getattr(init, "__name__", "function")
    found = _values(init, name, rows.X, c)
    is_share = bool((found >= 0).all() and (found <= 1).all())
    sums = found.ndim == 1 or bool((np.abs(found.sum(1) - 1) < _ROUNDING).all())
    if is_share and sums:
        return FunctionModel(init, "probabilities", c)
    _check_log_odds(found, rows, name)
    return FunctionModel(init, "scores", c)


def _check_log_odds(scores: np.ndarray, rows: Rows, name: str) -> None:
    """Refuse scores that cannot be meant as log-odds: percentages, points, distances.

    Those of a rare label may all be below 0, but then few rows have it.
    """
    p, weight = _softmax(scores), rows.sample_weight
    shares = np.bincount(rows.y, weight, len(rows.classes))
    odd = np.abs(np.average(p, axis=0, weights=weight) - shares / shares.sum()).max()
    problem = None
    if np.median(p.max(1)) > _SURE:
        problem = "of which most are sure of a class beyond doubt"
    elif (p >= p.max(1, keepdims=True)).all(0).any() and odd > _FAR:
        problem = "which all speak for one class, though labels do not"
    if problem is not None:
        raise ValueError(
            "init must return probabilities from 0 to 1, or log-odds (positive where the second "
            f"class is likelier; of several classes logits), got scores from {scores.min():g} to "
            f"{scores.max():g} from {name}, {problem}; divide percentages by 100, and turn other "
            "scores into probabilities, for instance by CalibratedClassifierCV."
        )


def _values(function: Callable[[Any], Any], name: str, X: Any, n_classes: int) -> np.ndarray:
    """Finite values [n] of the second of two classes, or [n, c]."""
    returned = _call("init", name, function, X)
    try:
        found = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"init must return numbers, got {type(returned).__name__} from {name} ({error})."
        ) from error
    if n_classes == 2 and found.shape == (len(X), 1):
        found = found[:, 0]
    if found.shape != (len(X), n_classes) and not (n_classes == 2 and found.shape == (len(X),)):
        alone = ", or [n] for the second class" if n_classes == 2 else ""
        raise ValueError(
            f"init must return an array of shape [n, {n_classes}], a value for each class{alone}, "
            f"got shape {list(found.shape)} from {name} for {len(X)} rows."
        )
    _check_finite(found, "init", name)
    return found


def _check_finite(found: np.ndarray, argument: str, name: str) -> None:
    missing = int((~np.isfinite(found.reshape(len(found), -1))).any(1).sum())
    if missing:
        raise ValueError(
            f"{argument} must return finite numbers, got NaN or infinity from {name} for "
            f"{missing} of {len(found)} rows."
        )


def _check_probabilities(
    returned: Any, n: int, n_classes: int, argument: str, name: str
) -> np.ndarray:
    """Probabilities [n, c] that sum to one."""
    found = np.asarray(returned, dtype=np.float64)
    if found.shape != (n, n_classes):
        raise ValueError(
            f"{argument} must return probabilities of shape [n, {n_classes}], one for each class, "
            f"got shape {list(found.shape)} from {name} for {n} rows."
        )
    _check_finite(found, argument, name)
    if n and ((found < 0).any() or np.abs(found.sum(1) - 1).max() > _ROUNDING):
        raise ValueError(
            f"{argument} must return probabilities that sum to one, got values from "
            f"{found.min():g} to {found.max():g} with sums from {found.sum(1).min():g} to "
            f"{found.sum(1).max():g} from {name}."
        )
    return found


def _call(argument: str, name: str, function: Callable[[Any], Any], X: Any) -> Any:
    try:
        return function(X)
    except Exception as error:
        raise ValueError(
            f"{argument} must take X as it is, got {name}, which fails on it ({first_line(error)})"
            f"; give a table like that which {argument} was fitted to."
        ) from error


def first_line(error: Exception) -> str:
    """What an error says, in short."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def _softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities [n, c] by logits [n, c], or by log-odds [n] of the second of two classes."""
    values = torch.tensor(logits)
    if values.ndim == 1:
        values = torch.stack([torch.zeros_like(values), values], 1)
    return torch.softmax(values, 1).numpy()
