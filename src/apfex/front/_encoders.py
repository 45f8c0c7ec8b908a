"""From tables to the inputs of models: an encoder for every kind of model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Protocol, final

import narwhals as nw
import numpy as np
import torch
from torch import Tensor

from apfex.front._rows import Rows
from apfex.front._settings import SearchSettings
from apfex.models import (
    ColumnsLearner,
    JointLearner,
    TreeLearner,
    TreeSettings,
    import_xgboost,
    network_learners,
)
from apfex.tables import TableEncoder


class Encoder(Protocol):
    """Turns a table into the inputs of models."""

    @property
    def n_inputs(self) -> int:
        """Inputs of the models."""
        ...

    @property
    def n_columns(self) -> set[int]:
        """How many columns of a table it takes; parts that disagree are all there."""
        ...

    def transform(self, X: Any) -> np.ndarray:
        """Rows as float32 [n, d]."""
        ...


@final
@dataclass(frozen=True, eq=False)
class TableEncoders:
    """A table as the inputs of one family of models beside those of another.

    Attributes
    ----------
    encoders : mapping from family to fitted TableEncoder
        "networks", "trees", or both.

    Examples
    --------
    >>> encoders = TableEncoders({"trees": TableEncoder(categories="codes").fit([[1.0], [2.0]])})
    >>> encoders.n_inputs, encoders.feature_types
    (1, ['q'])
    """

    encoders: Mapping[str, TableEncoder]

    @staticmethod
    def fit(X: Any, y: np.ndarray, settings: SearchSettings, n: int) -> TableEncoders:
        """Fit an encoder for each family; trees take categories and missing values as they are."""
        encoders = {}
        if settings.has_networks:
            encoders["networks"] = TableEncoder(bins=settings.bins_for(n)).fit(X, y)
        if settings.has_trees:
            import_xgboost()
            encoders["trees"] = TableEncoder(categories="codes").fit(X)
        return TableEncoders(encoders)

    def transform(self, X: Any) -> np.ndarray:
        """Rows as float32 [n, d]."""
        return np.hstack([encoder.transform(X) for encoder in self.encoders.values()])

    @property
    def n_columns(self) -> set[int]:
        """How many columns each encoder takes."""
        return {encoder.n_features_in_ for encoder in self.encoders.values()}

    @property
    def names(self) -> list[str]:
        """Of the inputs of trees."""
        return [str(name) for name in self.encoders["trees"].get_feature_names_out()]

    @property
    def feature_types(self) -> list[str]:
        """Of the inputs of trees: "q" or "c"."""
        return self.encoders["trees"].feature_types_

    def trees(self, settings: SearchSettings, n: int, seed: int) -> TreeSettings:
        """How to grow trees on n rows of these inputs."""
        constant = {str(name) for name in self.encoders["trees"].dropped_}
        return settings.trees(n, seed, self.names, self.feature_types, constant)

    @property
    def n_inputs(self) -> int:
        """Columns of all families."""
        return sum(encoder.n_features_out_ for encoder in self.encoders.values())

    def kinds(self, settings: SearchSettings, n: int, seed: int) -> list[JointLearner]:
        """Learners of joint models to train on n rows, each on its own inputs."""
        widths = [encoder.n_features_out_ for encoder in self.encoders.values()]
        places = pairwise(accumulate(widths, initial=0))
        found: list[JointLearner] = []
        for family, place in zip(self.encoders, places, strict=True):
            made: list[JointLearner]
            if family == "networks":
                made = [*network_learners(settings.hidden, settings.training(n, seed))]
            else:
                trees = self.trees(settings, n, seed)
                made = [TreeLearner(trees, self.feature_types, settings.n_folds)]
            found += made if len(widths) == 1 else [ColumnsLearner(kind, *place) for kind in made]
        return found


@final
@dataclass(frozen=True, eq=False)
class InitColumns:
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

    names: Sequence[str]
    levels: Mapping[int, Sequence[Any]]

    @staticmethod
    def of(X: Any) -> InitColumns:
        """Remember the categories of a table."""
        frame = _as_frame(X)
        if frame is None:
            return InitColumns([f"x{place}" for place in range(np.shape(X)[1])], {})
        levels = {
            place: _levels(frame[name])
            for place, name in enumerate(frame.columns)
            if isinstance(frame[name].dtype, nw.Categorical | nw.Enum)
        }
        return InitColumns(frame.columns, levels)

    @property
    def n_inputs(self) -> int:
        """As many as columns."""
        return len(self.names)

    @property
    def n_columns(self) -> set[int]:
        """Those that it knows."""
        return {len(self.names)}

    @property
    def feature_types(self) -> list[str]:
        """Quantity or category, "q" or "c", for each column."""
        return ["c" if place in self.levels else "q" for place in range(len(self.names))]

    def trees(self, settings: SearchSettings, n: int, seed: int) -> TreeSettings:
        """How to grow trees on n rows of these inputs."""
        return settings.trees(n, seed, self.names, self.feature_types)

    def transform(self, X: Any) -> np.ndarray:
        """Rows as float32 [n, d]; what is missing, or a level not seen before, is NaN."""
        frame = _as_frame(X)
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
@dataclass(frozen=True)
class NumericColumns:
    """Inputs of a network that was fitted elsewhere: numbers, unchanged.

    Attributes
    ----------
    names : tuple of str

    Examples
    --------
    >>> NumericColumns(("age", "income")).transform([[30, 1.5]])
    array([[30. ,  1.5]], dtype=float32)
    """

    names: tuple[str, ...]

    @staticmethod
    def of(X: Any) -> NumericColumns:
        """Remember the columns of a table; "x0", "x1", ... where they have no names."""
        known: list[Any] = list(getattr(X, "columns", range(np.shape(X)[1])))
        if all(isinstance(name, str) for name in known):
            return NumericColumns(tuple(known))
        return NumericColumns(tuple(f"x{place}" for place in range(len(known))))

    @property
    def n_inputs(self) -> int:
        """As many as columns."""
        return len(self.names)

    @property
    def n_columns(self) -> set[int]:
        """Those that it knows."""
        return {len(self.names)}

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


def fit_encoders(rows: Rows, part: np.ndarray, settings: SearchSettings) -> TableEncoders:
    """Fit the encoders to some of the rows."""
    encoders = TableEncoders.fit(rows.take(part), rows.y[part], settings, len(rows.y))
    if not encoders.n_inputs:
        dropped = next(iter(encoders.encoders.values())).dropped_
        raise ValueError(f"X must have a column that varies, got none: {dropped}.")
    return encoders


def encode(encoder: Encoder, rows: Rows, part: np.ndarray, settings: SearchSettings) -> Tensor:
    """Inputs of some of the rows, on the device."""
    return torch.from_numpy(encoder.transform(rows.take(part))).to(settings.device)


def _levels(column: nw.Series[Any]) -> list[Any]:
    """Categories in the order of their codes; narwhals gives pandas' as they occur."""
    native = column.to_native()
    if nw.dependencies.is_pandas_series(native):
        return list(native.cat.categories)
    return column.cat.get_categories().to_list()


def _codes(column: np.ndarray, levels: Sequence[Any]) -> np.ndarray:
    place = {level: code for code, level in enumerate(levels)}
    return np.array([place.get(value, np.nan) for value in column.tolist()], dtype=np.float32)


def _as_frame(X: Any) -> nw.DataFrame[Any] | None:
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None
