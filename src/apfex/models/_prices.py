"""Prices of group rates: the exact dual of a search for rules, for all members together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from apfex.rates import RATES, RateName

_LEAST_DENSITY = 0.5
"""Of rows by score at the threshold, by which steps are measured: few rows must not make leaps."""
_RESTART = 10
"""Steps after which the momentum begins anew."""
_MOST = 20.0
"""The highest price of a bound: one that nobody can meet must not drown the error."""
_HALVINGS = 30
_TINY = 1e-30


@final
class Prices:
    """What it is worth to decide for a member of each group, so that rates come together.

    The least error plus weighted gaps, over *all* decisions, is a saddle: prices go up for groups
    whose rate is low and down for those whose rate is high, within what the weight of the gap
    allows, and decisions follow the prices. In the prices alone the problem is convex, its slope
    is the rate itself, and its solution is the optimum of the linear programme that has a variable
    for every row (LinearPost, Xian and Zhao 2024), for all members in one pass.

    Parameters
    ----------
    like : Tensor
        Of the device and dtype of the prices.
    shape : b, j
        Members, and classes that are decided for (1 of two).
    rates : sequence of r names
    parents : sequence of a int64 Tensors of shape [k]
        For each grouping the group that a group of the crossing belongs to.

    Notes
    -----
    Each step is a proximal gradient step with momentum (Beck and Teboulle 2009) in units of how
    many rows of a group are near the threshold, which bounds the curvature: prices of a weighted
    gap are projected to those that sum to zero and of which the positive ones sum to at most the
    weight; of a bounded gap, they stay where they are while the rates are within the bound.
    """

    def __init__(
        self,
        like: Tensor,
        shape: tuple[int, int],
        rates: Sequence[RateName],
        parents: Sequence[Tensor],
    ) -> None:
        b, j = shape
        self._parents = list(parents)
        sizes = [int(parent.max()) + 1 for parent in parents]
        self._values = [like.new_zeros(b, j, len(rates), size) for size in sizes]
        self._ahead, self._momentum, self._steps = list(self._values), 1.0, 0
        self._numerators = like.new_tensor([RATES[rate].numerator for rate in rates])
        self._denominators = like.new_tensor([RATES[rate].denominator for rate in rates])
        self._slopes = [like.new_zeros(b, j, len(rates), size, 2) for size in sizes]

    @property
    def of_gaps(self) -> Tensor:
        """What each gap is worth [b, a * r]: the sum of its positive prices, over classes."""
        each = [value.clamp_min(0).sum((1, 3)) for value in self._values]
        return torch.cat(each, 1) if each else self._numerators.new_zeros(0, 0)

    def moves(self, *, ahead: bool = False) -> Tensor:
        """What prices add to a decision for each group [b, j, k, 2]: at other labels, at the own.

        ``ahead``: where the momentum points, which is where the next step wants the decisions.
        """
        total: Tensor | None = None
        for values, slopes, parent in zip(
            self._ahead if ahead else self._values, self._slopes, self._parents, strict=True
        ):
            worth = torch.einsum("bjrg,bjrgl->bjgl", values, slopes)[:, :, parent]
            total = worth if total is None else total + worth
        assert total is not None
        return total

    def restart(self) -> None:
        """Forget the momentum: what is asked for has changed."""
        self._ahead, self._momentum, self._steps = list(self._values), 1.0, 0

    def step(
        self, counts: Sequence[Tensor], near: Sequence[Tensor], weights: Tensor, bounds: Tensor
    ) -> None:
        """Move the prices by what decisions at :meth:`moves` came to.

        Parameters
        ----------
        counts : sequence of a Tensors of shape [b, j, groups, 4]
            As of :meth:`RuleProblem.counts`.
        near : the same, of shape [b, j, groups, 2]
            How much decisions for group and label change with their score.
        weights : Tensor of shape [b, a * r]
            Of the gaps beside the error.
        bounds : Tensor of shape [b, a * r]
            Largest gaps; ``inf`` for a gap that has none.
        """
        r = len(self._numerators)
        later = (1 + (1 + 4 * self._momentum**2) ** 0.5) / 2
        share = (self._momentum - 1) / later
        for place, (found, close) in enumerate(zip(counts, near, strict=True)):
            own = slice(place * r, place * r + r)
            limits = [part[:, own].to(found)[:, None, :, None] for part in (weights, bounds)]
            rates, slopes = self._rates(found)
            curvature = (close.unsqueeze(2) * slopes.square()).sum(-1)  # [b, j, r, groups]
            least = _LEAST_DENSITY * slopes.abs().amax(-1)
            curvature = len(counts) * r * torch.maximum(curvature, least)
            pace = torch.where(curvature > 0, 1 / curvature.clamp_min(_TINY), 0.0)
            reached = self._ahead[place] * curvature - rates
            before = self._values[place]
            self._values[place] = now = _settle(reached, pace, *limits)
            self._ahead[place] = now + share * (now - before)
            self._slopes[place] = slopes
        self._momentum, self._steps = later, self._steps + 1
        if self._steps % _RESTART == 0:
            self._momentum = 1.0

    def _rates(self, counts: Tensor) -> tuple[Tensor, Tensor]:
        """Rates [b, j, r, groups], and their slopes by the selected of each label [..., 2]."""
        above, below = (
            torch.einsum("bjgl,rl->bjrg", counts, parts)
            for parts in (self._numerators, self._denominators)
        )
        known = below > _TINY
        below = torch.where(known, below, 1.0)
        rates = torch.where(known, above / below, 0.0)
        by_numerator = self._numerators[:, None, :2]
        by_denominator = rates.unsqueeze(-1) * self._denominators[:, None, :2]
        slopes = (by_numerator - by_denominator) / below.unsqueeze(-1)
        return rates, torch.where(known.unsqueeze(-1), slopes, 0.0)


def _settle(reached: Tensor, pace: Tensor, weights: Tensor, bounds: Tensor) -> Tensor:
    """Prices [..., g] nearest to ``reached`` times ``pace`` that the aim allows.

    All sum to zero. Without a bound, the positive ones sum to at most the weight; with one, prices
    are zero for all groups whose ``reached`` is within half of it from the middle.
    """
    middle = (pace * reached).sum(-1, keepdim=True) / pace.sum(-1, keepdim=True).clamp_min(_TINY)
    free = bounds.isinf()
    highest = torch.maximum(middle, _threshold(reached, pace, weights))
    lowest = torch.minimum(middle, -_threshold(-reached, pace, weights))
    if not bool(free.all()):
        middle = _middle(reached, pace, bounds)
        highest = torch.where(free, highest, middle + bounds / 2)
        lowest = torch.where(free, lowest, middle - bounds / 2)
    found = pace * ((reached - highest).clamp_min(0) - (lowest - reached).clamp_min(0))
    total = found.clamp_min(0).sum(-1, keepdim=True)
    return found * (_MOST / total.clamp_min(_MOST))


def _threshold(reached: Tensor, pace: Tensor, total: Tensor) -> Tensor:
    """Where what is above it, times the pace, sums to a total: [..., 1]."""
    ranked, order = reached.sort(-1, descending=True)
    paces = pace.expand_as(reached).gather(-1, order)
    sums, widths = (paces * ranked).cumsum(-1), paces.cumsum(-1)
    each = (sums - total) / widths.clamp_min(_TINY)
    return torch.where(widths > 0, each, -torch.inf).amax(-1, keepdim=True)


def _middle(reached: Tensor, pace: Tensor, bounds: Tensor) -> Tensor:
    """Where as much is above the middle by half of the bound as below it, times the pace."""
    half = bounds.nan_to_num(posinf=0.0) / 2
    low, high = reached.amin(-1, keepdim=True), reached.amax(-1, keepdim=True)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = (reached - middle - half).clamp_min(0) - (middle - half - reached).clamp_min(0)
        rises = (pace * above).sum(-1, keepdim=True) > 0
        low, high = torch.where(rises, middle, low), torch.where(rises, high, middle)
    return (low + high) / 2
