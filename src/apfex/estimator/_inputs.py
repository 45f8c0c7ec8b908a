"""Rows of every accepted form, checked at the edge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from apfex.front import Rows
from apfex.groups import Groups, make_groups
from apfex.metrics import check_spelling, check_values, one_dimensional, read_weight
from apfex.tables import check_indexes, in_memory, matrix_of, read_table, unmasked


def read_features(X: Any) -> Any:
    """A frame as it is, anything else as an array; sparse matrices are refused."""
    if scipy.sparse.issparse(X):
        raise TypeError("X must be dense, got a sparse matrix; convert it with X.toarray().")
    X = in_memory("X", X)
    if not hasattr(X, "columns"):
        return matrix_of("X", X)
    names = [str(name) for name in X.columns] if not hasattr(X, "collect") else []
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"Column names of X must be unique, got {repeated} more than once; rename or drop one."
        )
    return X


def read_rows(
    X: Any,
    y: Any,
    sensitive_features: Any,
    sample_weight: Any,
    *,
    sensitive: Sequence[str] | str | None,
    include_sensitive: bool,
    grouping: str,
) -> Rows:
    """Check all that ``fit`` is given. Rows of weight zero are left out, as if not there."""
    check_indexes(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
    labels = read_labels(y, len(X))
    columns, X = split_columns(X, sensitive, sensitive_features, include_sensitive)
    crossing = None if columns is None else read_groups(columns, len(labels))
    weight = read_weights(sample_weight, len(labels))
    if weight is not None and not weight.all():
        rows = np.flatnonzero(weight)
        X, labels, weight = _safe_indexing(X, rows), labels[rows], weight[rows]
        crossing = None if crossing is None else crossing.take(rows, drop_empty=True)
    read_table(X)  # refuses columns that cannot be read, by their rows in the whole table
    classes, codes = encode_classes(labels)
    groupings = groupings_of(crossing, len(labels), grouping)
    return Rows(X, codes, classes, crossing, groupings, weight)


def split_columns(
    X: Any, sensitive: Sequence[str] | str | None, sensitive_features: Any, include_sensitive: bool
) -> tuple[Any, Any]:
    """Sensitive features, and the table of the model's inputs.

    With ``sensitive`` the columns are taken from ``X``, and out of it unless they are inputs.
    """
    if sensitive is None:
        if include_sensitive and sensitive_features is not None:
            raise ValueError(
                "include_sensitive must be False where sensitive_features are passed to fit, as "
                "predict would not have them; name columns of X in sensitive instead."
            )
        return sensitive_features, X
    if sensitive_features is not None:
        raise ValueError(
            "sensitive_features must be None where sensitive names columns of X, got both."
        )
    names = column_names(sensitive)
    if not hasattr(X, "columns"):
        raise ValueError(f"X must be a table with the columns {names} of sensitive, got an array.")
    missing = [name for name in names if name not in list(X.columns)]
    if missing or not names:
        raise ValueError(
            f"sensitive must name columns of X, got {missing or names}; X has "
            f"{[str(name) for name in X.columns]}."
        )
    kept = list(X.columns) if include_sensitive else _without(X, names)
    if not kept:
        raise ValueError("X must have a column that is not sensitive, got none.")
    return X[names], X[kept]


def drop_sensitive(X: Any, sensitive: Sequence[str] | str) -> Any:
    """The model's inputs among the columns of new rows; sensitive ones need not be there."""
    if not hasattr(X, "columns"):
        raise ValueError("X must be a table, as it was in fit, got an array.")
    return X[_without(X, column_names(sensitive))]


def column_names(sensitive: Sequence[str] | str | None) -> list[str]:
    """Names of sensitive columns, in an order; none where they come on their own."""
    if sensitive is None:
        return []
    if isinstance(sensitive, str):
        return [sensitive]
    unfit = isinstance(sensitive, bytes | Set | Mapping | Iterator)
    if unfit or not isinstance(sensitive, Iterable) or getattr(sensitive, "ndim", 1) != 1:
        raise TypeError(
            "sensitive must be the name of a column of X, or a list of several, got "
            f"{type(sensitive).__name__}."
        )
    return list(sensitive)


def _without(X: Any, names: Sequence[str]) -> list[str]:
    return [name for name in X.columns if name not in names]


def read_groups(columns: Any, n: int) -> Groups:
    """The crossing, a group for each of n rows, two groups at least."""
    crossing = make_groups(columns)
    if len(crossing.codes) != n:
        raise ValueError(
            f"sensitive_features must have one row for each of the {n} rows of X, got "
            f"{len(crossing.codes)}."
        )
    outside = int((crossing.codes < 0).sum())
    if outside:
        raise ValueError(
            f"sensitive_features must give every row a group, got {outside} rows with code -1."
        )
    return crossing


def read_groups_at_predict(
    known: Groups | None,
    X: Any,
    sensitive_features: Any,
    sensitive: Sequence[str] | str | None,
    include_sensitive: bool,
) -> np.ndarray | None:
    """Groups of new rows where thresholds differ by ``known`` ones; -1: ``fit`` has not seen it."""
    if known is None:
        if sensitive_features is not None:
            raise ValueError(
                "sensitive_features must be None at predict unless group_thresholds=True, got "
                "some: this model decides without them."
            )
        return None
    check_indexes(X=X, sensitive_features=sensitive_features)
    columns, _ = split_columns(X, sensitive, sensitive_features, include_sensitive)
    if columns is None:
        raise ValueError(
            "sensitive_features must be given at predict with group_thresholds=True, got None."
        )
    codes = known.encode(columns)
    if len(codes) != len(X):
        raise ValueError(
            f"sensitive_features must have one row for each of the {len(X)} rows of X, got "
            f"{len(codes)}."
        )
    return codes


def read_groups_if_there(
    X: Any,
    sensitive_features: Any,
    sensitive: Sequence[str] | str | None,
    include_sensitive: bool,
) -> Groups | None:
    """The crossing of new rows; None where neither they nor ``X`` have sensitive features."""
    there = list(getattr(X, "columns", ()))
    if not all(name in there for name in column_names(sensitive)):
        return None
    columns, _ = split_columns(X, sensitive, sensitive_features, include_sensitive)
    return None if columns is None else read_groups(columns, len(X))


def read_labels(y: Any, n: int) -> np.ndarray:
    """Labels as an array [n] without missing values."""
    if y is None:
        raise ValueError(
            "y must be given: APFExClassifier requires y to be passed, but the target y is None."
        )
    labels = _single_column(in_memory("y", y))
    if not len(labels):
        raise ValueError("y must have at least one row, got 0.")
    missing = int(np.sum(pd.isna(labels)))
    if missing:
        raise ValueError(
            f"y must not have missing values, got {missing} in {len(labels)} rows (NaN or None); "
            "drop these rows or give them a label of their own."
        )
    check_labels(labels)
    if len(labels) != n:
        raise ValueError(f"y must have one label for each of the {n} rows of X, got {len(labels)}.")
    return labels


def _single_column(y: Any) -> np.ndarray:
    """Labels [n]; a matrix of one column with a warning, as everywhere in scikit-learn."""
    if scipy.sparse.issparse(y):
        raise TypeError("y must be dense, got a sparse matrix; convert it: y.toarray().ravel().")
    if isinstance(y, list | tuple) and not any(isinstance(one, list | tuple) for one in y[:1]):
        return one_dimensional("y", y) if y else np.empty(0)
    values = unmasked(y) if hasattr(y, "__array_function__") else y
    try:
        shape = np.shape(values)
    except ValueError as error:
        raise ValueError(
            "y must hold one label per row, got rows of different lengths; pass a column of single "
            "values."
        ) from error
    if len(shape) == 0:
        raise TypeError(
            f"y must be a list, an array, a tensor or a series of labels, got {type(y).__name__}."
        )
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
        raise ValueError(
            f"y should be a 1d array, got {len(shape)} dimensions, shape {shape}; pass the one "
            "column to predict."
        )
    if getattr(values, "dtype", None) is not None:
        check_values("y", np.ravel(values))  # first: scikit-learn prints the whole column
    return column_or_1d(values, warn=True)


def check_labels(labels: np.ndarray) -> None:
    """Refuse labels [n] that are spelled in two ways, or that are no classes."""
    check_values("y", labels)
    if labels.dtype.kind in "OU":
        distinct = pd.unique(labels).tolist()
        check_spelling("y", distinct)
        _check_order(distinct)
    infinite = np.isinf(labels) if labels.dtype.kind == "f" else np.zeros(1, dtype=bool)
    if infinite.any():
        raise ValueError(
            f"y must hold classes, got infinity in {infinite.sum()} of {len(labels)} rows; drop "
            "these rows or give them a label of their own."
        )
    kind = type_of_target(labels)
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"y must hold classes, got {_other_than_classes(labels)} (Unknown label type: {kind}); "
            "turn numbers into classes first, for instance `y > 0.5`, and other values into text."
        )


def _check_order(labels: Sequence[Any]) -> None:
    """Refuse labels that cannot be sorted, as classes are."""
    try:
        sorted(labels)
    except TypeError as error:
        raise TypeError(
            f"y must hold labels that can be sorted, got {_types_of(labels)}; write them alike, as "
            "by astype(str)."
        ) from error


def _other_than_classes(labels: np.ndarray) -> str:
    if labels.dtype.kind == "f":
        return f"the number {labels[labels != np.floor(labels)][0]:g}"
    return _types_of(labels.tolist())


def _types_of(labels: Sequence[Any]) -> str:
    kinds = sorted({type(value).__name__ for value in labels})
    return f"values of type {' and '.join(kinds[:3])}"


def read_codes(y: Any, n: int, classes: np.ndarray) -> np.ndarray:
    """Labels of new rows as codes into the classes that were learned."""
    labels = read_labels(y, n)
    unknown = sorted(set(labels.tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise ValueError(f"y must hold labels of {classes.tolist()}, got {unknown}.")
    return np.searchsorted(classes, labels)


def read_weights(sample_weight: Any, n: int) -> np.ndarray | None:
    """Weights of the rows in float64, one on average: only their ratios matter."""
    weight = read_weight(sample_weight, n, "X")
    if weight is None:
        return None
    weight = weight / weight.max()
    return weight / weight[weight > 0].mean()


def class_code(classes: np.ndarray, label: Any) -> int:
    """Place of the favorable label among the classes; the last by default."""
    if label is None:
        return len(classes) - 1
    places = np.flatnonzero(classes == label)
    if not places.size:
        raise ValueError(f"favorable_label must be one of {classes.tolist()}, got {label!r}.")
    return int(places[0])


def encode_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes, sorted, and the place of each label among them."""
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes in rows with weight, got one class: "
            f"{classes.tolist()}."
        )
    return classes, codes


def groupings_of(crossing: Groups | None, n: int, grouping: str) -> list[Groups]:
    """The groupings of n rows whose gaps count."""
    if crossing is None:
        return []
    if len(crossing) < 2:
        raise ValueError(
            f"sensitive_features must have at least two groups, got one: {crossing.names[0]!r}."
        )
    if 2 * len(crossing) > n:
        raise ValueError(
            f"sensitive_features must form at most one group for every two rows, got "
            f"{len(crossing)} groups in {n} rows; use fewer attributes or merge levels."
        )
    if grouping == "intersectional":
        return [crossing]
    parents = [crossing.parent(attribute) for attribute in crossing.attributes]
    return [parent for parent in parents if len(parent) > 1]
