"""The user's own fitted model: the columns that it takes, and whether it goes with the rows."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import narwhals as nw
import numpy as np
import torch
import xgboost
from torch import Tensor, nn
from xgboost import Booster

from apfex.front._rows import Rows
from apfex.front._settings import SearchSettings
from apfex.models import Trees, TreeSettings

_TOLERANCE = 1e-3
_OBJECTIVES = ("binary:logistic", "binary:logitraw", "multi:softprob", "multi:softmax")
"""Those whose margins are logits."""


@dataclass(frozen=True, eq=False)
class _NamedColumns:
    """Columns that are inputs as they stand, known by their names."""

    names: Sequence[str]

    @property
    def n_inputs(self) -> int:
        """As many as columns."""
        return len(self.names)

    @property
    def n_columns(self) -> set[int]:
        """Those that it knows."""
        return {len(self.names)}


@final
@dataclass(frozen=True, eq=False)
class InitColumns(_NamedColumns):
    """Columns as a fitted XGBoost model takes them: numbers, and codes of categories.

    Attributes
    ----------
    names : sequence of str
    levels : mapping from place to levels
        Of the columns that hold categories.

    Examples
    --------
    >>> InitColumns.of([[1.0, 2.0]]).names
    ['x0', 'x1']
    """

    levels: Mapping[int, Sequence[Any]]

    @staticmethod
    def of(X: Any) -> InitColumns:
        """Remember the categories of a table."""
        frame = as_frame(X)
        if frame is None:
            return InitColumns([f"x{place}" for place in range(np.shape(X)[1])], {})
        levels = {
            place: _levels(frame[name])
            for place, name in enumerate(frame.columns)
            if isinstance(frame[name].dtype, nw.Categorical | nw.Enum)
        }
        return InitColumns(frame.columns, levels)

    @property
    def feature_types(self) -> list[str]:
        """Quantity or category, "q" or "c", for each column."""
        return ["c" if place in self.levels else "q" for place in range(len(self.names))]

    def trees(self, settings: SearchSettings, n: int, seed: int) -> TreeSettings:
        """How to grow trees on n rows of these inputs."""
        return settings.trees(n, seed, self.names, self.feature_types)

    def transform(self, X: Any) -> np.ndarray:
        """Rows as float32 [n, d]; what is missing, or a level not seen before, is NaN."""
        frame = as_frame(X)
        columns = (
            list(np.asarray(X).T)
            if frame is None
            else [frame[name].to_numpy() for name in self._find(frame)]
        )
        try:
            parts = [
                _codes(column, self.levels[place]) if place in self.levels else np.float32(column)
                for place, column in enumerate(columns)
            ]
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"X must hold numbers and categories, as init takes them, got {error}; encode it "
                "as for init."
            ) from error
        return np.stack(parts, 1)

    def _find(self, frame: nw.DataFrame[Any]) -> Sequence[str]:
        """The columns by their names, in any order."""
        missing = [name for name in self.names if name not in frame.columns]
        new = [name for name in frame.columns if name not in self.names]
        if missing or new:
            raise ValueError(
                f"X must have the columns that fit was given, got one without {missing} and with "
                f"{new} instead; rename or drop them."
            )
        return self.names


@final
@dataclass(frozen=True, eq=False)
class NumericColumns(_NamedColumns):
    """Inputs of a network that was fitted elsewhere: numbers, unchanged.

    Attributes
    ----------
    names : sequence of str

    Examples
    --------
    >>> NumericColumns(("age", "income")).transform([[30, 1.5]])
    array([[30. ,  1.5]], dtype=float32)
    """

    @staticmethod
    def of(X: Any) -> NumericColumns:
        """Remember the columns of a table; "x0", "x1", ... where they have no names."""
        known: list[Any] = list(getattr(X, "columns", range(np.shape(X)[1])))
        if all(isinstance(name, str) for name in known):
            return NumericColumns(tuple(known))
        return NumericColumns(tuple(f"x{place}" for place in range(len(known))))

    def transform(self, X: Any) -> np.ndarray:
        """Rows as float32 [n, d]."""
        try:
            table = np.asarray(X, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"X must hold numbers, as init takes them, got {error}; encode it as for init."
            ) from error
        if not np.isfinite(table).all():
            raise ValueError(
                "X must be finite where init is given, got missing or infinite values; encode it "
                "as for init."
            )
        return table


def read_init_trees(init: Any, rows: Rows, inputs: InitColumns) -> Trees:
    """The trees of a fitted model, if they go with the rows."""
    booster = _booster(init)
    n_outputs = 1 if len(rows.classes) == 2 else len(rows.classes)
    known = getattr(init, "classes_", rows.classes)
    if list(known) != list(rows.classes):
        raise ValueError(
            f"init must know the classes {rows.classes.tolist()} of y, got "
            f"{np.asarray(known).tolist()}; encode y as for init."
        )
    if booster.num_features() != len(inputs.names):
        raise ValueError(
            f"init must take the {len(inputs.names)} columns of X, got a model of "
            f"{booster.num_features()}; give fit the columns that init was fitted to."
        )
    stopped = init is not booster and booster.attr("best_iteration") is not None
    trees = Trees(booster[: booster.best_iteration + 1] if stopped else booster.copy())
    _check_margins(init, booster, trees, rows, inputs, n_outputs)
    return trees


def _booster(init: Any) -> Booster:
    """Trees of a classifier, or the user's own; of early stopping only the former takes heed."""
    if not hasattr(init, "get_booster"):
        booster = init
    elif hasattr(init, "classes_") and init.__sklearn_is_fitted__():
        booster = init.get_booster()
    else:
        raise ValueError(
            f"init must be a fitted classifier or Booster, got {type(init).__name__} without "
            "classes. Clones, as GridSearchCV makes them, are not fitted: give model.get_booster()."
        )
    learner = json.loads(booster.save_config())["learner"]
    kind, objective = learner["gradient_booster"]["name"], learner["objective"]["name"]
    if kind not in ("gbtree", "dart"):
        raise ValueError(f"init must be made of trees, got {kind!r}.")
    if objective not in _OBJECTIVES:
        raise ValueError(
            f"init must have logits as margins, with an objective of {list(_OBJECTIVES)}, got "
            f"{objective!r}."
        )
    return booster


def _check_margins(
    init: Any, booster: Booster, trees: Trees, rows: Rows, inputs: InitColumns, n_outputs: int
) -> None:
    """Our way to read the table must give what the model itself says."""
    ours = trees(torch.from_numpy(inputs.transform(rows.X))).numpy()
    if ours.shape[1] != n_outputs:
        raise ValueError(
            f"init must have {n_outputs} scores for {len(rows.classes)} classes, got "
            f"{ours.shape[1]}."
        )
    theirs = _own_margins(init, booster, rows.X).reshape(ours.shape)
    if not np.allclose(ours, theirs, atol=_TOLERANCE, equal_nan=True):
        raise ValueError(
            "init must score X as it did when it was fitted, got margins that differ by up to "
            f"{np.nanmax(np.abs(ours - theirs)):.3g} from those by codes of the categories; give "
            "fit a table with the categories that init was fitted to."
        )


def _own_margins(init: Any, booster: Booster, X: Any) -> np.ndarray:
    try:
        if init is not booster:
            return np.asarray(init.predict(X, output_margin=True))
        data = xgboost.DMatrix(X, enable_categorical=True)
        return booster.predict(data, output_margin=True)
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "")
        raise ValueError(
            f"init must take X as it is, got one that fails on it ({reason}); give fit a table "
            "like that which init was fitted to."
        ) from error


def check_init_network(init: nn.Module, x: Tensor, n_classes: int) -> None:
    """Refuse a network of the user's that does not go with rows [n, d], and leave it as it is."""
    rows, n_outputs = x[:8], 1 if n_classes == 2 else n_classes
    found = _outputs(init, rows)
    shape = list(found.shape) if isinstance(found, Tensor) else None
    if shape == [len(rows), n_outputs] or (n_outputs == 1 and shape == [len(rows)]):
        return
    what, wanted = f"shape {shape} for {len(rows)} rows", "a logit for each class"
    if shape is None:
        what, wanted = f"a {type(found).__name__}", "the logits alone"
    elif n_outputs == 1:
        wanted = "one logit (of two, the second minus the first)"
    raise ValueError(
        f"init must return a tensor of logits of shape [n, {n_outputs}] for {n_classes} classes, "
        f"got {what}; wrap it in a module that returns {wanted}."
    )


def _outputs(init: nn.Module, rows: Tensor) -> Any:
    network = copy.deepcopy(init).to(rows.device).eval()
    try:
        with torch.no_grad():
            return network(rows)
    except Exception as error:
        raise ValueError(
            f"init must take the {rows.shape[1]} columns of X as float32, got one that fails on "
            f"them ({error}); give fit the columns that init was fitted to, encoded as for it."
        ) from error


def _levels(column: nw.Series[Any]) -> list[Any]:
    """Categories in the order of their codes; narwhals gives pandas' as they occur."""
    native = column.to_native()
    if nw.dependencies.is_pandas_series(native):
        return list(native.cat.categories)
    return column.cat.get_categories().to_list()


def _codes(column: np.ndarray, levels: Sequence[Any]) -> np.ndarray:
    place = {level: code for code, level in enumerate(levels)}
    return np.array([place.get(value, np.nan) for value in column.tolist()], dtype=np.float32)


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """A table of any library in narwhals' form; None for an array."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None
