"""From the rates of k groups to one number: mean, largest or smoothed difference of pairs.

Each form returns its value *and* its slope by the rates. The arrays hold a handful of numbers, on
which a numpy call costs a tenth of a torch call, so on a CPU they are numpy's; on a GPU they stay
there. The functions are written for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from apfex.rates import Rate

Aggregate = Literal["mean", "smooth_mean", "max", "smooth_max", "rms"]
Array = Any
"""A float64 numpy array or tensor of shape [..., k]."""

WIDTH = 1e-3
"""Half-width of the rounded part of the smooth absolute value, see ``smooth_abs``."""
TEMPERATURE = 0.02
"""Of the smooth maximum, see ``smooth_max``."""
_TINY = 1e-12
"""Keeps the slope of the root mean square finite at parity."""
MOST_CROSSED = 32
"""Up to this many groups the k x k differences are taken as they are; beyond, prefix sums."""


def small(tensor: Tensor) -> Array:
    """A tensor of few numbers in float64: as a numpy array if it lives on the CPU."""
    tensor = tensor.detach().double()
    return tensor.numpy() if tensor.device.type == "cpu" else tensor


def gap_and_slopes(
    above: Array, below: Array, aggregate: Aggregate, min_count: float
) -> tuple[Array, Array, Array]:
    """Gap of the rates ``above / below``, and its slopes by both.

    Parameters
    ----------
    above, below : arrays of shape [..., k]
    aggregate : {"smooth_mean", "mean", "max", "smooth_max", "rms"}
    min_count : float
        A group with a smaller denominator is left out.

    Returns
    -------
    gap : array of shape [...]
        ``inf``, with slopes of 0, where fewer than two groups are left: not estimable.
    by_above, by_below : arrays of shape [..., k]
    """
    xp: Any = torch if isinstance(above, Tensor) else np
    known = below >= min_count
    if xp is np and below.shape[-1] >= 2 and known.all():
        return _all_known(above, below, known, aggregate)
    count = (known + 0.0 * below).sum(-1)[..., None]  # in float64, for either library
    safe = xp.where(known, below, 1.0)
    rates = xp.where(known, above / safe, 0.0)
    gap, slope = _AGGREGATES[aggregate](xp, rates, known, count)
    by_above = xp.where(known & (count >= 2), slope / safe, 0.0)
    return xp.where(count[..., 0] >= 2, gap, xp.inf), by_above, -by_above * rates


def smooth_mean_of_few(
    counts: Sequence[Sequence[float]], rate: Rate, least: float
) -> tuple[float, list[float]]:
    """Smooth mean difference of a rate over the pairs of few groups, number by number.

    For a handful of groups this takes a quarter of the time of the forms for arrays.

    Parameters
    ----------
    counts : k rows of 4
        Of ``soft_counts``.
    rate : Rate
    least : float
        A group with a smaller denominator is left out.

    Returns
    -------
    gap : float
        0 where fewer than two groups are left.
    slopes : 2 k numbers
        By the selected negatives and positives of each group.
    """
    n0, n1, n2, n3 = rate.numerator
    d0, d1, d2, d3 = rate.denominator
    known, slopes, total, selected = [], [0.0] * (2 * len(counts)), 0.0, 0.0
    for group, (a, b, c, d) in enumerate(counts):
        selected += a + b
        below = d0 * a + d1 * b + d2 * c + d3 * d
        if below >= least:
            known.append((2 * group, (n0 * a + n1 * b + n2 * c + n3 * d) / below, below))
    if selected != selected:  # NaN scores, which must not look like empty groups
        return selected, slopes
    heights = [0.0] * len(known)
    for i, (_, v, _) in enumerate(known):
        for j in range(i):
            difference = v - known[j][1]
            clipped = max(-1.0, min(1.0, difference / WIDTH))
            total += clipped * (difference - WIDTH / 2 * clipped)
            heights[i] += clipped
            heights[j] -= clipped
    pairs = len(known) * (len(known) - 1) / 2 or 1.0
    for height, (cell, v, below) in zip(heights, known, strict=True):
        worth = height / pairs / below
        slopes[cell] = worth * (n0 - v * d0)
        slopes[cell + 1] = worth * (n1 - v * d1)
    return total / pairs, slopes


def _all_known(
    above: Array, below: Array, known: Array, aggregate: Aggregate
) -> tuple[Array, Array, Array]:
    """The same where no group is left out, as in most batches, without the masks."""
    rates = above / below
    count = np.full((*below.shape[:-1], 1), float(below.shape[-1]))
    gap, slope = _AGGREGATES[aggregate](np, rates, known, count)
    by_above = slope / below
    return gap, by_above, -by_above * rates


def _mean(xp: ModuleType, v: Array, known: Array, count: Array) -> tuple[Array, Array]:
    """Sorted form: of q numbers the i-th smallest is added 2i - q + 1 times."""
    rank = xp.where(known, v, xp.inf).argsort(-1).argsort(-1)
    slope = xp.where(known, 2.0 * rank - count + 1, 0.0) / _n_pairs(xp, count)
    return (slope * v).sum(-1), slope


def _smooth_mean(xp: ModuleType, v: Array, known: Array, count: Array) -> tuple[Array, Array]:
    if v.shape[-1] <= MOST_CROSSED:
        total, slope = _crossed(xp, v, known)
    else:
        total, slope = _prefix_sums(xp, v, known, count)
    pairs = _n_pairs(xp, count)
    return total / pairs[..., 0], slope / pairs


def _crossed(xp: ModuleType, v: Array, known: Array) -> tuple[Array, Array]:
    """All k x k differences d: with c = clip(d / width) the slope of row i is sum_j c[i, j].

    The Huber form is ``c d - width c^2 / 2``, and the sum of ``c d`` is twice that of v * slope.
    """
    clipped = xp.clip((v[..., :, None] - v[..., None, :]) * (1 / WIDTH), -1, 1)
    clipped = clipped * (known[..., :, None] & known[..., None, :])
    slope = clipped.sum(-1)
    return (v * slope).sum(-1) - (clipped * clipped).sum(-1).sum(-1) * (WIDTH / 4), slope


def _prefix_sums(xp: ModuleType, v: Array, known: Array, count: Array) -> tuple[Array, Array]:
    """The same from the sorted values: neighbours within the width, and all the others.

    With v sorted, the neighbours of row i are ``first <= j < last``. They add
    ``(v_i - v_j)^2 / (2 width)``, those below add ``v_i - v_j - width / 2``. Centring keeps the
    squares small, so that float64 loses nothing that matters.
    """
    v, known, count = (torch.as_tensor(array) for array in (v, known, count))
    count = count.long()
    centre = v.sum(-1, keepdim=True) / count.clamp(min=1)
    # Groups left out are put far to the right, where they are nobody's neighbour.
    outside = 4.0 + torch.arange(v.shape[-1], device=v.device, dtype=v.dtype)
    s, order = torch.where(known, v - centre, outside).contiguous().sort(-1)
    first = torch.searchsorted(s, s - WIDTH, right=True)
    last = torch.minimum(torch.searchsorted(s, s + WIDTH), count)
    zero = s.new_zeros((*s.shape[:-1], 1))
    sums = torch.cat([zero, s.cumsum(-1)], -1)
    squares = torch.cat([zero, (s * s).cumsum(-1)], -1)
    below = sums.gather(-1, first)
    near_count, near_sum = last - first, sums.gather(-1, last) - below
    near_squares = squares.gather(-1, last) - squares.gather(-1, first)
    near = near_count * s * s - 2 * s * near_sum + near_squares
    height = near / (4 * WIDTH) + first * (s - WIDTH / 2) - below
    slope = first - (count - last) + (near_count * s - near_sum) / WIDTH
    unsorted = torch.zeros_like(s).scatter_(-1, order, slope)
    counted = torch.arange(v.shape[-1], device=v.device) < count
    total = torch.where(counted, height, 0.0).sum(-1)
    return (total, unsorted) if xp is torch else (total.numpy(), unsorted.numpy())


def _max(xp: ModuleType, v: Array, known: Array, count: Array) -> tuple[Array, Array]:
    """Largest difference; groups that tie share the slope."""
    high = xp.amax(xp.where(known, v, -xp.inf), -1)
    low = xp.amin(xp.where(known, v, xp.inf), -1)
    top, bottom = ((v == end[..., None]) & known for end in (high, low))
    slope = 1.0 * top / _at_least_one(xp, top) - 1.0 * bottom / _at_least_one(xp, bottom)
    return xp.where(count[..., 0] >= 2, high - low, 0.0), slope


def _smooth_max(xp: ModuleType, v: Array, known: Array, count: Array) -> tuple[Array, Array]:
    """Temperature * log-mean-exp of the rates plus that of their negatives."""
    total, slope = 0.0, 0.0
    for sign in (1.0, -1.0):
        heights = xp.where(known, sign * v / TEMPERATURE, -1e300)
        top = xp.amax(heights, -1)[..., None]
        powers = xp.exp(heights - top) * known
        total_power = xp.where(count > 0, powers.sum(-1)[..., None], 1.0)
        number = xp.where(count > 0, count, 1)
        total = total + TEMPERATURE * (top + xp.log(total_power / number))[..., 0]
        slope = slope + sign * powers / total_power
    return total, slope


def _rms(xp: ModuleType, v: Array, known: Array, count: Array) -> tuple[Array, Array]:
    """Root mean square distance of the rates from their mean."""
    number = xp.where(count > 0, count, 1.0)
    distance = xp.where(known, v - v.sum(-1)[..., None] / number, 0.0)
    spread = xp.sqrt((distance * distance).sum(-1)[..., None] / number + _TINY)
    return spread[..., 0] - _TINY**0.5, distance / (number * spread)


def _n_pairs(xp: ModuleType, count: Array) -> Array:
    return xp.where(count >= 2, count * (count - 1) / 2, 1.0)


def _at_least_one(xp: ModuleType, flags: Array) -> Array:
    number = flags.sum(-1)[..., None]
    return xp.where(number > 0, number, 1)


_AGGREGATES: dict[Aggregate, Callable[..., tuple[Array, Array]]] = {
    "mean": _mean,
    "smooth_mean": _smooth_mean,
    "max": _max,
    "smooth_max": _smooth_max,
    "rms": _rms,
}
