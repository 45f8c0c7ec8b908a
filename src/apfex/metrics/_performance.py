"""Performance, overall and of the worst-off group."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from apfex.metrics._group_rates import GroupRates
from apfex.metrics._inputs import (
    check_length,
    encode,
    read_column,
    read_counted_weight,
    read_inputs,
)
from apfex.metrics._not_estimable import warn_left_out
from apfex.metrics._rate_table import check_choices
from apfex.metrics._triviality import class_recalls
from apfex.rates import count_rows
from apfex.tables import check_indexes


def accuracy(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Share of rows whose decision is right, for labels of any number of classes.

    Examples
    --------
    >>> accuracy(["a", "b", "c", "c"], ["a", "b", "c", "a"])
    0.75
    """
    y, decided, _, weight = _read(y_true, y_pred, sample_weight)
    right = (y == decided).double()
    return float(right.mean() if weight is None else right @ weight / weight.sum())


def balanced_accuracy(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Mean over the classes of the share of their rows whose decision is right.

    A class that does not occur in ``y_true`` (or has no weight there) is left out.

    Examples
    --------
    >>> balanced_accuracy([0, 0, 0, 1], [0, 0, 0, 0])
    0.5
    """
    y, decided, n_classes, weight = _read(y_true, y_pred, sample_weight)
    return float(class_recalls(decided, y, n_classes, weight).nanmean())


def worst_group_accuracy(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    min_count: float = 1,
) -> float:
    """Accuracy of the group that fares worst, over the cells of the crossing.

    Groups of fewer than ``min_count`` rows are left out, and a :class:`NotEstimableWarning` names
    them; NaN where none is left.

    Examples
    --------
    >>> worst_group_accuracy([0, 1, 0, 1], [0, 1, 1, 1], sensitive_features=["F", "F", "M", "M"])
    0.5
    """
    check_choices("accuracy", "intersectional", min_count)
    data = read_inputs(y_true, y_pred, sensitive_features, sample_weight, None, symmetric=True)
    if data.y is None:
        raise ValueError("y_true must be given for the accuracy of groups, got None.")
    # Right or wrong are labels of their own: classes need not be told apart.
    right = (data.y == data.decided).astype(np.int64)
    counts = count_rows(np.ones_like(right), right, data.groups, data.weight)
    table = GroupRates.of(counts, "accuracy", min_count, effective=False)
    warn_left_out([table], min_count, 2, needed=1)
    known = table.counted_rates[table.counted]
    return float(known.min()) if len(known) else float("nan")


def _read(
    y_true: Any, y_pred: Any, sample_weight: Any
) -> tuple[Tensor, Tensor, int, Tensor | None]:
    """Codes of the labels and of the decisions [n], how many classes there are, weights [n]."""
    check_indexes(y_true=y_true, y_pred=y_pred, sample_weight=sample_weight)
    truth, decided = read_column("y_true", y_true), read_column("y_pred", y_pred)
    check_length("y_pred", len(decided), "y_true", len(truth))
    codes, y, classes = encode(decided, truth)
    weight = read_counted_weight(sample_weight, len(truth))
    assert y is not None
    weights = None if weight is None else torch.from_numpy(weight)
    return torch.from_numpy(y), torch.from_numpy(codes), len(classes), weights
