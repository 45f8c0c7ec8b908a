"""Confidence intervals over repeated splits of the same rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats


def corrected_interval(
    values: Sequence[float], overlap: float, confidence: float = 0.95
) -> tuple[float, float, float]:
    """Mean and interval of one value per split, where splits share rows.

    ``overlap`` is the number of test rows over that of training rows of a split: the variance of
    the mean of J values is taken as (1/J + overlap) times their variance (Nadeau and Bengio 2003,
    "Inference for the generalization error"); 0 for independent tables.
    """
    found = np.asarray(values, dtype=np.float64)
    middle = float(found.mean())
    if len(found) < 2:
        return middle, -math.inf, math.inf
    spread = float(found.std(ddof=1)) * math.sqrt(1 / len(found) + overlap)
    half = float(stats.t.ppf((1 + confidence) / 2, len(found) - 1)) * spread
    return middle, middle - half, middle + half


def overlap_of_pooled_folds(n_folds: int) -> float:
    """The overlap of values that pool the folds of a cross-validation, one value per repeat.

    For single folds it is 1 / (n_folds - 1), and there are n_folds of them in a repeat (Bouckaert
    and Frank 2004). A pooled value varies n_folds times less than that of a fold, as far as folds
    are independent, so the term is n_folds times as large beside it.
    """
    return n_folds / (n_folds - 1)


def ratio(
    ours: dict[int, float], theirs: dict[int, float], overlap: float
) -> tuple[float, float, float] | None:
    """Paired ratio over common seeds, its interval, or None where there is no logarithm."""
    seeds = sorted(ours.keys() & theirs.keys())
    if not seeds or min(min(ours[s], theirs[s]) for s in seeds) <= 0:
        return None
    logs = [math.log(ours[seed] / theirs[seed]) for seed in seeds]
    middle, low, high = corrected_interval(logs, overlap)
    return math.exp(middle), math.exp(low), math.exp(min(high, 700.0))
