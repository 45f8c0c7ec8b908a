"""Metrics of two labels that confusion counts tell: value and standard error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from apfex.rates import quotient

_STEP = 1e-6
"""Share of all weight by which a count is moved to see what that does to a metric."""


def f1(cells: np.ndarray) -> np.ndarray:
    """Harmonic mean of precision and recall; 0 where there is neither, as scikit-learn has it.

    Examples
    --------
    >>> f1(np.array([[1.0, 2.0, 1.0, 5.0]]))
    array([0.66666667])
    """
    false_positive, hits, misses, _ = np.moveaxis(cells, -1, 0)
    below = 2 * hits + false_positive + misses
    return np.nan_to_num(quotient(2 * hits, below))


def balanced_accuracy(cells: np.ndarray) -> np.ndarray:
    """Mean share of rows that are decided rightly over the labels that occur."""
    false_positive, hits, misses, rest = np.moveaxis(cells, -1, 0)
    recalls = np.stack([quotient(hits, hits + misses), quotient(rest, rest + false_positive)])
    known = ~np.isnan(recalls)
    return quotient(np.where(known, recalls, 0).sum(0), known.sum(0))


def matthews(cells: np.ndarray) -> np.ndarray:
    """Correlation of labels and decisions; 0 where one of them is constant."""
    false_positive, hits, misses, rest = np.moveaxis(cells, -1, 0)
    shared = hits * rest - false_positive * misses
    selected, labelled = hits + false_positive, hits + misses
    others = (rest + false_positive) * (rest + misses)
    spread = np.sqrt(np.maximum(selected * labelled * others, 0))
    return np.nan_to_num(quotient(shared, spread))


COUNTED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "balanced_accuracy_score": balanced_accuracy,
    "f1_score": f1,
    "matthews_corrcoef": matthews,
}
"""By the names of scikit-learn's functions; from [k, 4] false positives, hits, misses, the rest."""


def counted_metric(
    name: str, sums: np.ndarray, squares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Values [k] and standard errors [k] from sums of weights and of squared weights [k, 4].

    Notes
    -----
    The columns are those of confusion counts. The error is that of the infinitesimal jackknife:
    a metric moves by ``w_i g_c`` for a row of weight ``w_i`` in cell ``c``, where ``g_c`` is its
    derivative by the sum of that cell, so that the variance is ``sum_c g_c^2 sum_i w_i^2``.

    Examples
    --------
    >>> counts = np.array([[1.0, 2.0, 6.0, 3.0]])
    >>> value, error = counted_metric("f1_score", counts, counts)
    >>> value.round(3).tolist(), error.round(3).tolist()
    ([0.667], [0.222])
    """
    metric, cells, own = COUNTED[name], _cells(sums), _cells(squares)
    total = cells.sum(-1)
    step = _STEP * np.where(total > 0, total, 1)
    variance = np.zeros(len(cells))
    for cell in range(4):
        moved = np.zeros_like(cells)
        moved[:, cell] = np.minimum(step, np.where(cells[:, cell] > 0, cells[:, cell], step))
        slope = (metric(cells + moved) - metric(cells - moved)) / (2 * moved[:, cell])
        variance += np.where(own[:, cell] > 0, slope**2 * own[:, cell], 0)
    return np.where(total > 0, metric(cells), np.nan), np.sqrt(variance)


def _cells(counts: np.ndarray) -> np.ndarray:
    """False positives, hits, misses and the rest."""
    false_positive, hits, negatives, positives = np.moveaxis(counts.astype(np.float64), -1, 0)
    misses, rest = np.maximum(positives - hits, 0), np.maximum(negatives - false_positive, 0)
    return np.stack([false_positive, hits, misses, rest], -1)
