"""Rows of two classes with their groups, checked at the edge, in two parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from apfex.groups import Groups, make_groups
from apfex.tables import TableEncoder, check_indexes, stratified_sample


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """Labels 0 or 1, groups and weights of n rows."""

    X: Any
    y: np.ndarray
    groups: Groups | None
    sample_weight: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Rows:
        """Some of the rows."""
        weight = self.sample_weight
        return Rows(
            _safe_indexing(self.X, rows),
            self.y[rows],
            None if self.groups is None else self.groups.take(rows),
            None if weight is None else weight[rows],
        )

    @property
    def attributes(self) -> list[Groups]:
        """The groups of each attribute on its own."""
        groups = self.groups
        return [] if groups is None else [groups.parent(name) for name in groups.attributes]

    @property
    def groupings(self) -> list[Groups]:
        """The attributes, then the cells of their crossing where there are several."""
        several = self.groups is not None and len(self.groups.attributes) > 1
        return [*self.attributes, self.groups] if several and self.groups else self.attributes

    @property
    def weight(self) -> np.ndarray:
        """Weights, or ones."""
        return np.ones(len(self.y)) if self.sample_weight is None else self.sample_weight


@final
@dataclass(frozen=True, eq=False)
class Parts:
    """Rows to learn from, rows to choose by, and what the labels are called."""

    training: Rows
    validation: Rows
    classes: np.ndarray


def read_parts(
    estimator: Any,
    X: Any,
    y: Any,
    sensitive_features: Any,
    sample_weight: Any,
    validation: Any,
    fraction: float,
    seed: int,
) -> Parts:
    """Check all that ``fit`` is given, and split it unless validation rows came with it."""
    rows, classes = read_rows(estimator, X, y, sensitive_features, sample_weight)
    if validation is None:
        if not 0 < fraction < 1:
            raise ValueError(f"validation_fraction must lie between 0 and 1, got {fraction!r}.")
        training, chosen = split(rows, fraction, seed)
        return Parts(rows.take(training), rows.take(chosen), classes)
    return Parts(rows, _read_validation(estimator, validation, rows, classes), classes)


def read_rows(
    estimator: Any, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
) -> tuple[Rows, np.ndarray]:
    """Rows of two classes, and the classes."""
    X = read_table(estimator, X, reset=True)
    check_indexes(X=X, y=y, sensitive_features=sensitive_features)
    labels = _read_labels(estimator, X, y)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) != 2:
        raise ValueError(
            f"y must hold two classes, got {len(classes)} class{'es' * (len(classes) != 1)}: "
            f"{classes[:5].tolist()}. Only binary classification is supported."
        )
    groups = None if sensitive_features is None else _read_groups(sensitive_features, len(codes))
    rows = Rows(X, codes, groups, None)
    if sample_weight is None:
        return rows, classes
    weight = _check_sample_weight(sample_weight, codes, dtype=np.float64, ensure_non_negative=True)
    counted = Rows(X, codes, groups, weight).take(np.flatnonzero(weight))
    if len(np.unique(counted.y)) < 2:
        raise ValueError(
            "sample_weight must leave rows of both classes, got one class with positive weight."
        )
    assert counted.sample_weight is not None
    scaled = counted.sample_weight / counted.sample_weight.mean()
    return Rows(counted.X, counted.y, counted.groups, scaled), classes


def read_table(estimator: Any, X: Any, *, reset: bool) -> Any:
    """A frame as it is, anything else as a finite array [n, d]."""
    if not hasattr(X, "columns"):
        mixed = np.asarray(X).dtype.kind in "OUS" if not hasattr(X, "toarray") else False
        return validate_data(estimator, X, reset=reset, dtype=None if mixed else np.float64)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    if len(X) == 0:
        raise ValueError("X must have rows, got 0 sample(s) while a minimum of 1 is required.")
    return X


def fit_encoder(rows: Rows) -> TableEncoder:
    """Numbers standardised, an input for every level that the rows have."""
    encoder = TableEncoder(min_count=1).fit(rows.X)
    if not encoder.n_features_out_:
        raise ValueError(f"X must have a column that varies, got none: {encoder.dropped_}.")
    return encoder


def require_groups(rows: Rows, method: str, *, most_attributes: int | None = None) -> Groups:
    """The groups, or an error that names who needs them."""
    if rows.groups is None:
        raise ValueError(
            f"sensitive_features must be given to fit for {method}, got None; pass the column "
            "whose groups are to be treated alike."
        )
    found = len(rows.groups.attributes)
    if most_attributes is not None and found > most_attributes:
        raise ValueError(
            f"sensitive_features must be {most_attributes} attribute for {method}, got {found}: "
            f"{list(rows.groups.attributes)}; fit once for each of them."
        )
    return rows.groups


def require_two_values(rows: Rows, method: str, remedy: str) -> None:
    """Refuse attributes that do not have exactly two values."""
    for groups in rows.attributes:
        if len(groups) != 2:
            raise ValueError(
                f"sensitive_features must be two-valued for {method}, got {len(groups)} values of "
                f"{groups.attributes[0]!r}; {remedy}."
            )


def split(rows: Rows, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and validation rows, even within each label and group.

    Every label has rows in both parts, and so has every group of two rows or more if it can be.
    """
    n = len(rows.y)
    groups = np.zeros(n, np.int64) if rows.groups is None else rows.groups.codes
    fewest = np.bincount(rows.y).min()
    if fewest < 2:
        raise ValueError(
            "y must have two rows of each class, one to learn from and one to choose by, got "
            f"{fewest} of one class in n_samples={n}."
        )
    strata = rows.y * (groups.max() + 1) + groups
    chosen = stratified_sample(strata, fraction, seed, both=(groups, rows.y))
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def _read_labels(estimator: Any, X: Any, y: Any) -> np.ndarray:
    if y is None:
        raise ValueError(
            f"y must be given: {type(estimator).__name__} requires y to be passed, but the target "
            "y is None."
        )
    labels = column_or_1d(y, warn=True)
    check_array(labels, ensure_2d=False, dtype=None, input_name="y")  # pyright: ignore[reportArgumentType]
    check_classification_targets(labels)
    check_consistent_length(X, labels)
    if type_of_target(labels) == "multiclass":
        raise ValueError(
            f"y must hold two classes, got {len(np.unique(labels))}. Only binary classification "
            "is supported."
        )
    return labels


def _read_groups(sensitive_features: Any, n: int) -> Groups:
    groups = make_groups(sensitive_features)
    if len(groups.codes) != n:
        raise ValueError(
            f"sensitive_features must have one row for each of the {n} rows of X, got "
            f"{len(groups.codes)}."
        )
    if len(groups) < 2:
        raise ValueError(
            f"sensitive_features must have at least two groups, got one: {groups.names[0]!r}."
        )
    return groups


def _read_validation(estimator: Any, validation: Any, rows: Rows, classes: np.ndarray) -> Rows:
    """Validation rows, whose groups are those of the training rows."""
    wanted = 2 if rows.groups is None else 3
    if not isinstance(validation, tuple) or len(validation) != wanted:
        what = "(X, y)" if wanted == 2 else "(X, y, sensitive_features)"
        found = f"{len(validation)} parts" if isinstance(validation, tuple) else type(validation)
        raise ValueError(f"validation must be a tuple {what}, got {found}.")
    X = read_table(estimator, validation[0], reset=False)
    labels = _read_labels(estimator, X, validation[1])
    unknown = sorted(set(labels.tolist()) - set(classes.tolist()), key=str)
    if unknown or len(np.unique(labels)) < 2:
        raise ValueError(
            f"validation must hold labels of both classes {classes.tolist()}, and no others, got "
            f"{unknown or np.unique(labels).tolist()}."
        )
    codes = np.searchsorted(classes, labels)
    if rows.groups is None:
        return Rows(X, codes, None)
    groups = encode_groups(rows.groups, validation[2], len(codes))
    if (groups.codes < 0).any():
        raise ValueError(
            "validation must hold groups that the training rows have, got "
            f"{int((groups.codes < 0).sum())} rows of others; merge levels."
        )
    return Rows(X, codes, groups)


def encode_groups(known: Groups, sensitive_features: Any, n: int) -> Groups:
    """Groups of n new rows among those known, -1 for others (a warning counts them)."""
    codes = known.encode(sensitive_features)
    if len(codes) != n:
        raise ValueError(
            f"sensitive_features must have one row for each of the {n} rows of X, got {len(codes)}."
        )
    return replace(known, codes=codes)
