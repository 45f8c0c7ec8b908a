"""Sensitive features and weights, checked at the edge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from apfex.groups import Groups, make_groups


def sensitive_columns(
    X: Any,
    sensitive: Sequence[str] | None,
    sensitive_features: Any,
    include_sensitive: bool,
    predicting: bool = False,
) -> tuple[Any, Any]:
    """Sensitive features, and the table of the model's inputs.

    With ``sensitive`` the columns are taken from ``X``, and out of it unless they are inputs.
    """
    if sensitive is None:
        if include_sensitive and sensitive_features is not None and not predicting:
            raise ValueError(
                "include_sensitive must be False where sensitive_features are passed to fit, as "
                "predict would not have them; name columns of X in sensitive instead."
            )
        return sensitive_features, X
    if sensitive_features is not None:
        raise ValueError(
            "sensitive_features must be None where sensitive names columns of X, got both."
        )
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    if not hasattr(X, "columns"):
        raise ValueError(f"X must be a table with the columns {names} of sensitive, got an array.")
    missing = [name for name in names if name not in list(X.columns)]
    if missing:
        raise ValueError(
            f"sensitive must name columns of X, got {missing}; X has {list(map(str, X.columns))}."
        )
    if include_sensitive:
        return X[names], X
    kept = [name for name in X.columns if name not in names]
    if not kept:
        raise ValueError("X must have a column that is not sensitive, got none.")
    return X[names], X[kept]


def read_groupings(
    columns: Any, n: int, X: Any, grouping: str
) -> tuple[Groups | None, list[Groups]]:
    """The crossing, and the groupings whose gaps count."""
    if columns is None:
        return None, []
    index, other = getattr(columns, "index", None), getattr(X, "index", None)
    comparable = hasattr(index, "equals") and hasattr(other, "equals")
    crossing = make_groups(columns)
    if len(crossing.codes) != n:
        raise ValueError(
            f"sensitive_features must have one row for each of the {n} rows of X, got "
            f"{len(crossing.codes)}."
        )
    if comparable and not index.equals(other):  # type: ignore[union-attr]
        raise ValueError(
            "sensitive_features must have the index of X, got another; reset both indexes if the "
            "rows are in the same order."
        )
    if len(crossing) < 2:
        raise ValueError(
            f"sensitive_features must have at least two groups, got one: {crossing.names[0]!r}."
        )
    if grouping == "intersectional":
        return crossing, [crossing]
    parents = [crossing.parent(attribute) for attribute in crossing.attributes]
    return crossing, [parent for parent in parents if len(parent) > 1]


def read_weights(sample_weight: Any, n: int) -> np.ndarray | None:
    """Weights of the rows in float64."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weight.shape}.")
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError("sample_weight must be finite, non-negative and not all zero.")
    return weight
