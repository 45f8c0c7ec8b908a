"""From the rates of k groups to one number: mean, largest or smoothed difference of pairs.

Each form is a function of rates that returns value *and* slope, so that the graph holds one node
instead of some thirty on tensors of k numbers, whose bookkeeping would cost more than the maths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from apfex.rates import RateSums
from apfex.relaxations import smooth_max

Aggregate = Literal["mean", "smooth_mean", "max", "smooth_max"]

WIDTH = 1e-3
"""Half-width of the rounded part of the smooth absolute value, see ``smooth_abs``."""
TEMPERATURE = 0.02
"""Of the smooth maximum, see ``smooth_max``."""
_MOST_CROSSED = 32
"""Up to this many groups the k x k differences are taken as they are; beyond, prefix sums."""


def pairwise_gap(
    sums: RateSums, aggregate: Aggregate = "smooth_mean", min_mass: float = 1e-3
) -> Tensor:
    """Difference of group rates over all unordered pairs.

    Parameters
    ----------
    sums : RateSums of shape [..., k]
    aggregate : {"smooth_mean", "mean", "max", "smooth_max"}
        Mean of :func:`~apfex.relaxations.smooth_abs` of the differences, the same with ``|.|``,
        the largest difference, or a smooth largest
        (:func:`~apfex.relaxations.smooth_max` of the rates plus that of their negatives).
    min_mass : float
        A group with a smaller denominator is left out.

    Returns
    -------
    Tensor of shape [...]
        0, with a gradient of 0, where fewer than two groups are left. Time O(k log k). It can be
        differentiated once.

    Examples
    --------
    >>> sums = RateSums(torch.tensor([1.0, 4.0, 7.0]), torch.tensor([10.0, 10.0, 10.0]))
    >>> pairwise_gap(sums, "max")
    tensor(0.6000)
    >>> pairwise_gap(sums, "mean")
    tensor(0.4000)
    """
    return _Gap.apply(sums.numerator, sums.denominator, _AGGREGATES[aggregate], min_mass)


class _Gap(torch.autograd.Function):
    """The gap of rates [..., k]; its slope is computed with its value."""

    @staticmethod
    def forward(
        ctx: Any, above: Tensor, below: Tensor, aggregate: Callable, min_mass: float
    ) -> Tensor:
        known = below >= min_mass
        count = known.sum(-1, keepdim=True)
        rates = torch.where(known, above / below, 0.0).double()
        total, slope = aggregate(rates, known, count)
        paired = known & (count >= 2)
        per_row = torch.where(paired, slope / below, 0.0).to(above.dtype)
        ctx.save_for_backward(per_row, rates)
        return torch.where(paired.any(-1), total, 0.0).to(above.dtype)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        per_row, rates = ctx.saved_tensors
        to_above = grad_outputs[0].unsqueeze(-1) * per_row
        to_below = -to_above * rates.to(to_above.dtype) if ctx.needs_input_grad[1] else None
        return to_above, to_below, None, None


def _mean(v: Tensor, known: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Sorted form: of q numbers the i-th smallest is added 2i - q + 1 times."""
    order = torch.where(known, v, torch.inf).argsort(-1)
    rank = torch.empty_like(order).scatter_(
        -1, order, torch.arange(v.shape[-1], device=v.device).expand_as(order)
    )
    slope = torch.where(known, 2 * rank - count + 1, 0) / _n_pairs(count)
    return (slope * v).sum(-1), slope


def _smooth_mean(v: Tensor, known: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    if v.shape[-1] <= _MOST_CROSSED:
        total, slope = _crossed(v, known)
    else:
        total, slope = _prefix_sums(v, known, count)
    pairs = _n_pairs(count)
    return total / pairs.squeeze(-1), slope / pairs


def _crossed(v: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """All k x k differences d: with c = clip(d / width) the slope of row i is sum_j c[i, j].

    The Huber form is ``c d - width c^2 / 2``, and the sum of ``c d`` is twice that of v * slope.
    """
    clipped = ((v.unsqueeze(-1) - v.unsqueeze(-2)) * (1 / WIDTH)).clamp(-1, 1)
    clipped = clipped * (known.unsqueeze(-1) & known.unsqueeze(-2))
    slope = clipped.sum(-1)
    return (v * slope).sum(-1) - clipped.square().sum((-2, -1)) * (WIDTH / 4), slope


def _prefix_sums(v: Tensor, known: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """The same from the sorted values: neighbours within the width, and all the others.

    With v sorted, the neighbours of row i are ``first <= j < last``. They add
    ``(v_i - v_j)^2 / (2 width)``, those below add ``v_i - v_j - width / 2``. Centring keeps the
    squares small, so that float64 loses nothing that matters.
    """
    centre = v.sum(-1, keepdim=True) / count.clamp(min=1)
    # Groups left out are put far to the right, where they are nobody's neighbour.
    outside = 4.0 + torch.arange(v.shape[-1], device=v.device, dtype=v.dtype)
    s, order = torch.where(known, v - centre, outside).sort(-1)
    counted = torch.arange(v.shape[-1], device=v.device) < count
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
    return torch.where(counted, height, 0.0).sum(-1), unsorted


def _max(v: Tensor, known: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG001
    """Largest difference; groups that tie share the slope."""
    high = torch.where(known, v, -torch.inf).amax(-1, keepdim=True)
    low = torch.where(known, v, torch.inf).amin(-1, keepdim=True)
    top, bottom = ((v == high) & known).double(), ((v == low) & known).double()
    slope = top / top.sum(-1, keepdim=True) - bottom / bottom.sum(-1, keepdim=True)
    return (high - low).squeeze(-1), slope


def _smooth_max(v: Tensor, known: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG001
    total, slope = torch.zeros_like(v[..., 0]), torch.zeros_like(v)
    for sign in (1.0, -1.0):
        total = total + smooth_max(sign * v, TEMPERATURE, where=known)
        weights = torch.where(known, sign * v / TEMPERATURE, -torch.inf).softmax(-1)
        slope = slope + sign * weights
    return total, slope


def _n_pairs(count: Tensor) -> Tensor:
    return (count * (count - 1)).double().clamp(min=2) / 2


_AGGREGATES: dict[Aggregate, Callable] = {
    "mean": _mean,
    "smooth_mean": _smooth_mean,
    "max": _max,
    "smooth_max": _smooth_max,
}
