"""Dominance and hypervolume of points [n, m]; smaller is better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard, overload

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from torch import Tensor


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
        Copies of a non-dominated point are all marked.

    Notes
    -----
    Computed by moocore.

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
    mask = np.ones(len(points), dtype=bool)
    if points.size:
        import moocore

        mask = moocore.is_nondominated(points, keep_weakly=True)
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


def to_numpy(values: Any) -> np.ndarray:
    if _is_tensor(values):
        values = values.detach().cpu().double().numpy()
    return np.asarray(values, dtype=np.float64)


def _is_tensor(values: Any) -> TypeGuard[Tensor]:
    return hasattr(values, "detach")  # without an import of torch
