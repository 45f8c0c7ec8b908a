"""Dominance and hypervolume of points [n, m]; smaller is better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard, overload

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from torch import Tensor

_BLOCK = 2**21  # numbers in one block of comparisons


def dominates(a: ArrayLike | Tensor, b: ArrayLike | Tensor) -> bool:
    """Whether a is no worse than b in every objective, and better in one.

    Parameters
    ----------
    a, b : numbers of shape [m]

    Examples
    --------
    >>> dominates([0.1, 0.5], [0.2, 0.5]), dominates([0.1, 0.5], [0.1, 0.5])
    (True, False)
    """
    first, second = to_numpy(a), to_numpy(b)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(
            f"a and b must be two points of one length, got shapes {list(first.shape)} and "
            f"{list(second.shape)}."
        )
    return bool((first <= second).all() and (first < second).any())


@overload
def non_dominated(values: Tensor) -> Tensor: ...
@overload
def non_dominated(values: ArrayLike) -> np.ndarray: ...
def non_dominated(values: ArrayLike | Tensor) -> np.ndarray | Tensor:
    """Which points no other point dominates.

    Parameters
    ----------
    values : numbers of shape [n, m]
        Without NaN.

    Returns
    -------
    boolean array of shape [n], or Tensor for a Tensor
        Copies of a non-dominated point are all marked. O(n log n) for one or two objectives;
        beyond, every point is compared with the front so far, in blocks of bounded memory.

    Examples
    --------
    >>> non_dominated(np.array([[0.1, 0.9], [0.5, 0.5], [0.6, 0.5], [0.5, 0.5]]))
    array([ True,  True, False,  True])
    """
    points = to_numpy(values)
    if points.ndim != 2 or np.isnan(points).any():
        raise ValueError(
            f"values must have shape [n, m] and no NaN, got shape {list(points.shape)} with "
            f"{int(np.isnan(points).sum())} NaN."
        )
    mask = _mask(points) if points.size else np.ones(len(points), dtype=bool)
    if not _is_tensor(values):
        return mask
    import torch

    return torch.from_numpy(mask).to(values.device)


def hypervolume(values: ArrayLike | Tensor, reference: ArrayLike) -> float:
    """Volume that the points dominate, up to a reference point.

    Parameters
    ----------
    values : numbers of shape [n, m]
    reference : numbers of shape [m]
        The worst value that counts in each objective. Points that are not better than it in
        every objective contribute nothing.

    Notes
    -----
    Computed by moocore.

    Examples
    --------
    >>> hypervolume([[0.25, 0.75], [0.5, 0.5]], reference=[1.0, 1.0])
    0.3125
    """
    points, limit = to_numpy(values), np.asarray(reference, dtype=np.float64)
    if limit.ndim != 1 or not np.isfinite(limit).all():
        raise ValueError(f"reference must be m finite numbers, got {reference!r}.")
    if points.size == 0:
        return 0.0
    if points.ndim != 2 or points.shape[1] != len(limit):
        raise ValueError(
            f"values must have shape [n, {len(limit)}], one column per entry of reference, got "
            f"{list(points.shape)}."
        )
    if np.isnan(points).any():
        raise ValueError(f"values must have no NaN, got {int(np.isnan(points).sum())}.")
    inside = points[(points < limit).all(axis=1)]
    if len(inside) == 0:
        return 0.0
    if len(limit) == 1:
        return float(limit[0] - inside.min())
    import moocore

    return float(moocore.hypervolume(inside, ref=limit))


def _mask(points: np.ndarray) -> np.ndarray:
    """Go through distinct points in lexicographic order: whatever dominates comes earlier."""
    distinct, inverse = np.unique(points, axis=0, return_inverse=True)
    kept = _kept_of_two(distinct) if distinct.shape[1] <= 2 else _kept_of_many(distinct)
    return kept[inverse.ravel()]


def _kept_of_two(distinct: np.ndarray) -> np.ndarray:
    last = distinct[:, -1]
    before = np.minimum.accumulate(np.concatenate([[np.inf], last[:-1]]))
    return (last < before) | (np.arange(len(last)) == 0)  # the first also where it is infinite


def _kept_of_many(distinct: np.ndarray) -> np.ndarray:
    n, m = distinct.shape
    kept = np.zeros(n, dtype=bool)
    start = 0
    while start < n:
        front = distinct[:start][kept[:start]]
        size = max(1, min(256, _BLOCK // (m * (len(front) + 256))))
        block = distinct[start : start + size]
        rivals = np.concatenate([front, block])
        no_worse = (rivals[:, None] <= block).all(axis=-1)  # itself included
        kept[start : start + size] = np.sum(no_worse, axis=0) == 1
        start += size
    return kept


def to_numpy(values: Any) -> np.ndarray:
    if _is_tensor(values):
        values = values.detach().cpu().double().numpy()
    return np.asarray(values, dtype=np.float64)


def _is_tensor(values: Any) -> TypeGuard[Tensor]:
    return hasattr(values, "detach")  # without an import of torch
