"""What the counts of two groups say of the difference of their true rates."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import betaincinv
from scipy.stats import norm

from apfex.metrics._null import smoothed

Counted = tuple[np.ndarray, np.ndarray]
"""Successes and totals of groups."""
_BLOCK = 2**20  # pairs looked at in one go


def lower_of_pairs(
    high: Counted, low: Counted, *, critical: float | np.ndarray, alpha: float, n_groups: int
) -> np.ndarray:
    """Difference of two rates that the counts show at least, for each pair.

    Parameters
    ----------
    high, low : pairs of arrays that broadcast against each other
        Successes and totals of the group with the higher rate, and of the other.
    critical : float, or array that broadcasts
        Critical value of the parity test of all groups.
    alpha : float
        One minus the confidence, divided by the number of gaps that are tested together.
    n_groups : int
        All the groups that are compared, not only those that are given.

    Returns
    -------
    array of the broadcast shape
        The smaller of two bounds; negative where the counts do not show which rate is higher.

    Notes
    -----
    The first bound is that of the parity test, ``p_i - p_j - c (s_i + s_j)`` with smoothed rates.
    Its critical value belongs to groups of one rate; where rates differ and outcomes are rare, it
    is too small. The second bound is ``r_i - r_j - sqrt((r_i - l_i)^2 + (u_j - r_j)^2)`` with raw
    rates r and their limits l and u of Clopper and Pearson, joined in the way of Newcombe. With k
    groups one of them may be compared with k - 1 others, so the limits are those at
    ``alpha / 2 / (k - 1)``.

    Examples
    --------
    >>> high, low = (np.array([45]), np.array([100])), (np.array([30]), np.array([100]))
    >>> lower_of_pairs(high, low, critical=1.4, alpha=0.05, n_groups=2).round(3)
    array([0.009])
    """
    (p, s), (q, t) = smoothed(*high), smoothed(*low)
    at_parity = (p - critical * s) - (q + critical * t)
    pair_alpha = alpha / 2 / (n_groups - 1)
    below = _rate(high) - _lower_limit(high, pair_alpha)
    above = upper_limit(low, pair_alpha) - _rate(low)
    return np.minimum(at_parity, _rate(high) - _rate(low) - np.hypot(below, above))


def upper_of_pairs(high: Counted, low: Counted, *, alpha: float) -> np.ndarray:
    """Difference of two rates that the counts leave possible, for each pair.

    Parameters
    ----------
    high, low : pairs of arrays that broadcast against each other
        Successes and totals of the group with the higher rate, and of the other.
    alpha : float
        One minus the confidence.

    Returns
    -------
    array of the broadcast shape
        The larger of two bounds.

    Notes
    -----
    The first bound is ``p_i - p_j + z sqrt(s_i^2 + s_j^2)`` with smoothed rates, z = 2.576 at 95%.
    It is too small where a small group shows no outcome at all. The second bound joins the limits
    of Clopper and Pearson at ``alpha / 2``, as in :func:`lower_of_pairs`. The true gap belongs to
    one fixed pair, so that neither is corrected for the number of pairs.

    Examples
    --------
    >>> high, low = (np.array([45]), np.array([100])), (np.array([30]), np.array([100]))
    >>> upper_of_pairs(high, low, alpha=0.05).round(3)
    array([0.32])
    """
    (p, s), (q, t) = smoothed(*high), smoothed(*low)
    above = upper_limit(high, alpha / 2) - _rate(high)
    below = _rate(low) - _lower_limit(low, alpha / 2)
    joined = _rate(high) - _rate(low) + np.hypot(above, below)
    return np.maximum(p - q + _upper_quantile(alpha) * np.hypot(s, t), joined)


def lower_end(x: np.ndarray, n: np.ndarray, critical: float, alpha: float, n_groups: int) -> float:
    """Largest of :func:`lower_of_pairs` over the groups with counts [k], not below 0."""
    p, s = smoothed(x, n)

    def value(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        high, low = (x[i], n[i]), (x[j], n[j])
        return lower_of_pairs(high, low, critical=critical, alpha=alpha, n_groups=n_groups)

    return _largest_over_pairs(value, p - critical * s, -p - critical * s, 0.0)[0]


def surest_pair(
    x: np.ndarray, n: np.ndarray, *, critical: float, alpha: float
) -> tuple[float, int, int]:
    """The two groups, of those with counts [k], whose rates most surely lie apart.

    Returns
    -------
    bound, low, high : float, int, int
        The largest of :func:`lower_of_pairs`, and the places of the two groups, the one with the
        lower rate first.

    Examples
    --------
    >>> surest_pair(np.array([0, 30, 45]), np.array([3, 100, 100]), critical=1.4, alpha=0.05)[1:]
    (1, 2)
    """
    p, s = smoothed(x, n)

    def value(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        high, low = (x[i], n[i]), (x[j], n[j])
        return lower_of_pairs(high, low, critical=critical, alpha=alpha, n_groups=len(n))

    found = _largest_over_pairs(value, p - critical * s, -p - critical * s, -math.inf)
    bound, high, low = found
    return bound, low, high


def gap_of_limits(
    values: np.ndarray, joint: tuple[np.ndarray, np.ndarray], own: tuple[np.ndarray, np.ndarray]
) -> tuple[float, float]:
    """Interval of the gap between k groups, from intervals of the value of each.

    Parameters
    ----------
    values : array of shape [k]
        Of any metric, k at least 2.
    joint, own : pairs of arrays of shape [k]
        Lower and upper limits: at ``1 - alpha / m`` for m pairs of groups, because any pair may
        look apart where all are alike, and at ``1 - alpha``. NaN where the rows of a group do not
        tell.

    Returns
    -------
    lower, upper : float
        Joined in the way of Newcombe, as in :func:`lower_of_pairs` and :func:`upper_of_pairs`.
        Groups without limits leave the lower end to the others, and make the upper end NaN.

    Examples
    --------
    >>> limits = np.array([0.5, 0.7]), np.array([0.7, 0.9])
    >>> lower, upper = gap_of_limits(np.array([0.6, 0.8]), limits, limits)
    >>> round(lower, 3), round(upper, 3)
    (0.059, 0.341)
    """
    known = ~(np.isnan(joint[0]) | np.isnan(joint[1]))
    v, below, above = values[known], (values - joint[0])[known], (joint[1] - values)[known]

    def least(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return v[i] - v[j] - np.hypot(below[i], above[j])

    root = math.sqrt(2)  # a root of two squares is at least their sum by this
    lower = 0.0
    if len(v) > 1:
        lower = _largest_over_pairs(least, v - below / root, -v - above / root, 0.0)[0]
    down, up = values - own[0], own[1] - values
    if np.isnan(down).any() or np.isnan(up).any():
        return lower, math.nan

    def most(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return values[i] - values[j] + np.hypot(up[i], down[j])

    return lower, _largest_over_pairs(most, values + up, down - values, 0.0)[0]


def upper_end(x: np.ndarray, n: np.ndarray, alpha: float) -> float:
    """Largest of :func:`upper_of_pairs` over the groups with counts [k], not above 1."""
    (p, s), z = smoothed(x, n), _upper_quantile(alpha)

    def value(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return upper_of_pairs((x[i], n[i]), (x[j], n[j]), alpha=alpha)

    # A root of two squares is at most the sum of what is squared.
    high = np.maximum(p + z * s, upper_limit((x, n), alpha / 2))
    low = np.maximum(z * s - p, -_lower_limit((x, n), alpha / 2))
    return min(1.0, _largest_over_pairs(value, high, low, -math.inf)[0])


def _upper_quantile(alpha: float) -> float:
    """Standard errors that the first bound of :func:`upper_of_pairs` adds."""
    return float(norm.ppf(1 - alpha / 10))


def _lower_limit(counted: Counted, alpha: float) -> np.ndarray:
    """Rate at which so many successes, or more, have a chance of ``alpha`` (Clopper, Pearson)."""
    successes, totals = counted
    some = successes > 0
    limit = betaincinv(np.where(some, successes, 1.0), totals - successes + 1.0, alpha)
    return np.where(some, limit, 0.0)


def upper_limit(counted: Counted, alpha: float) -> np.ndarray:
    """Rate at which so few successes, or fewer, have a chance of ``alpha`` (Clopper, Pearson).

    Examples
    --------
    >>> upper_limit((np.array([0, 5]), np.array([10, 10])), 0.025).round(3)
    array([0.308, 0.813])
    """
    successes, totals = counted
    return 1 - _lower_limit((totals - successes, totals), alpha)


def _largest_over_pairs(
    value: Callable[[np.ndarray, np.ndarray], np.ndarray],
    high: np.ndarray,
    low: np.ndarray,
    least: float,
) -> tuple[float, int, int]:
    """Largest value of two different groups, or ``least``, without a k x k matrix; and the pair.

    Parameters
    ----------
    value : callable
        Of the places of the higher and of the lower group, which broadcast.
    high, low : arrays of shape [k]
        Their sum is nowhere below the value of a pair: only groups that could still lead are
        paired up.
    least : float

    Returns
    -------
    value, higher, lower : float, int, int
        The places of the pair; -1 where no value is above ``least``.
    """

    def best_of(i: np.ndarray, j: np.ndarray) -> tuple[float, int, int]:
        pairs = np.where(i[:, None] == j, -np.inf, value(i[:, None], j))
        row, column = np.unravel_index(int(pairs.argmax()), pairs.shape)
        return float(pairs[row, column]), int(i[row]), int(j[column])

    best = max(
        (least, -1, -1),
        best_of(_two_largest(high), _two_largest(low)),
        key=lambda one: one[0],
    )
    rows = np.flatnonzero(high + low.max() > best[0])
    columns = np.flatnonzero(low + high.max() > best[0])
    size = max(1, _BLOCK // max(1, len(columns)))
    for start in range(0, len(rows), size):
        best = max(best, best_of(rows[start : start + size], columns), key=lambda one: one[0])
    return best


def _two_largest(values: np.ndarray) -> np.ndarray:
    return np.argpartition(values, len(values) - 2)[-2:]


def _rate(counted: Counted) -> np.ndarray:
    return counted[0] / counted[1]
