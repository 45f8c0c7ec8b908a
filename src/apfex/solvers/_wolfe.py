"""The shortest vector in a hull by Wolfe's walk from face to face, where rounding spoils others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_EPSILON = float(np.finfo(np.float64).eps)
_LIFTS = (0.0, 1.0, 4.0)
"""What is added to the squares of unit vectors, in units of m eps: as much as rounding may have
taken. Gradients that are sums of others have one best combination then."""
_TINY = 1e-300


def walk_to_shortest(gramian: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mend weights [m] that are not those of the shortest vector, by a Gramian of no zeros.

    Parameters
    ----------
    gramian : float64 array of shape [m, m]
    weights : float64 array of shape [m]
        Where to start, on the simplex.

    Returns
    -------
    float64 array of shape [m]
        The first with ``kkt_residual`` of at most 1, or the best that was seen.

    Notes
    -----
    Wolfe (1976): the nearest point of the plane through the gradients that have a weight, or where
    that lies outside of their hull, the face where it is left; then the gradient joins that
    breaks the condition of the optimum most. Gradients are scaled to unit length, and the sum of
    the weights is a border of the system: squares of lengths that differ by many orders of
    magnitude are never added.

    Examples
    --------
    >>> walk_to_shortest(np.diag([1.0, 3.0]), np.array([1.0, 0.0]))
    array([0.75, 0.25])
    """
    found, least = weights, residual_of(gramian, weights)
    shortest = np.eye(len(weights))[np.diagonal(gramian).argmin()]
    for lift in _LIFTS:
        for start in (weights, shortest):
            for reached in _walk(gramian, start, lift * len(weights) * _EPSILON):
                residual = residual_of(gramian, reached)
                if residual < least:
                    found, least = reached, residual
                if least <= 1:
                    return found
    return found


def residual_of(gramian: np.ndarray, weights: np.ndarray) -> float:
    """``kkt_residual`` of one problem."""
    return float(_excess(gramian, weights).max())


def _excess(gramian: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What each gradient breaks the condition by, in units of what rounding allows."""
    products, sizes = gramian @ weights, np.abs(gramian) @ weights
    value = weights @ products
    rounding = 8 * len(weights) * _EPSILON * (sizes + weights @ sizes)
    return (value - products) / np.maximum(1e-8 * abs(value) + rounding, _TINY)


def _walk(gramian: np.ndarray, start: np.ndarray, lift: float) -> Iterator[np.ndarray]:
    """Yield the weights at every corner of the way."""
    m, lengths = len(start), np.sqrt(np.diagonal(gramian))
    cosines = (gramian / lengths[:, None] / lengths).clip(-1, 1)
    np.fill_diagonal(cosines, 1 + lift)
    ratios = lengths.min() / lengths
    weights, free, refused, entered = start, start > 0, np.zeros(m, bool), -1
    for _ in range(6 * m):
        trial = _nearest(cosines, ratios, free)
        if trial is None or (entered >= 0 and not trial[entered] > 0):
            # it lies in the plane of the others, as far as numbers tell; or one of them does
            out = entered if entered >= 0 else int(np.where(free, weights, np.inf).argmin())
            refused[out], free[out] = True, False
            if not free.any():
                return
            weights = np.where(free, weights, 0.0) / weights[free].sum()
        elif (leaving := free & (trial <= 0)).any():
            shares = np.full(m, np.inf)
            shares[leaving] = weights[leaving] / np.maximum((weights - trial)[leaving], _TINY)
            share = min(1.0, shares.min())
            weights = np.where(free, weights + share * (trial - weights), 0.0).clip(0)
            free &= ~(shares <= shares.min())
            weights = np.where(free, weights, 0.0) / weights[free].sum()
            entered = -1
            continue
        else:
            weights, refused = trial, np.zeros(m, bool)
        yield weights
        wanted = np.where(free | refused, -np.inf, _excess(gramian, weights))
        entered = int(wanted.argmax())
        if not wanted[entered] > 1:
            return
        free[entered] = True


def _nearest(cosines: np.ndarray, ratios: np.ndarray, free: np.ndarray) -> np.ndarray | None:
    """Weights [m] of the point of the free ones' plane that is nearest to zero; None if any is."""
    chosen = np.flatnonzero(free)
    k = len(chosen)
    bordered, right = np.zeros((k + 1, k + 1)), np.zeros(k + 1)
    bordered[:k, :k] = cosines[np.ix_(chosen, chosen)]
    bordered[:k, k] = bordered[k, :k] = ratios[chosen]
    right[k] = 1.0
    try:
        solution = np.linalg.solve(bordered, right)
        solution = solution + np.linalg.solve(bordered, right - bordered @ solution)
    except np.linalg.LinAlgError:
        return None
    found = np.zeros(len(free))
    found[chosen] = ratios[chosen] * solution[:k]
    total = found.sum()
    return found / total if np.isfinite(found).all() and total > 0 else None
