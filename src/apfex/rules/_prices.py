"""Prices of group rates: the exact dual of a search for rules, for all members together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from apfex.rates import RATES, RateName
from apfex.rules._problem import MIN_SHARE, spread_to_groups

_LEAST_DENSITY = 0.5
"""Share of a group per unit of score at the threshold that steps count with at least: where few
rows are near it, prices must not leap."""
_RESTART = 10
"""Steps after which the momentum begins anew."""
_MOST = 20.0
"""The highest price of a bound: one that nobody can meet must not drown the error."""
_TINY = 1e-30


@final
class Prices:
    """What it is worth to decide for a member of each group, so that rates come together.

    The least error within bounds on the gaps, over *all* decisions, is a saddle: prices go up for
    groups whose rate is low and down for those whose rate is high, as long as they are further
    apart than the bound, and decisions follow the prices. In the prices alone the problem is
    convex, its slope is the rate itself, and its solution is the optimum of the linear programme
    that has a variable for every row (LinearPost, Xian and Zhao 2024), for all members in one pass.

    Parameters
    ----------
    like : Tensor
        Of the device and dtype of the prices.
    shape : b, j
        Members, and classes that are decided for (1 of two).
    rates : sequence of r names
    parents : sequence of a int64 Tensors of shape [k]
        For each grouping the group that a group of the crossing belongs to; -1: to none.

    Notes
    -----
    Each step is a proximal gradient step with momentum (Beck and Teboulle 2009) in units of how
    many rows of a group are near the threshold, which bounds the curvature. Prices of a gap sum to
    zero; those of groups that keep within the bound fall to zero. Rates that are no sums of
    decisions (``ppv``) are priced by their slopes.

    Examples
    --------
    >>> counts = torch.tensor([[[[0.1, 0.1, 0.3, 0.2], [0.0, 0.1, 0.3, 0.2]]]])  # rates .4 and .2
    >>> prices = Prices(counts, (1, 1), ("dp",), [torch.arange(2)])
    >>> prices.step([counts], [torch.ones(1, 1, 2, 2)], torch.tensor([[0.1]]))
    >>> prices.moves()[0, 0].sign()  # decisions for the first group are worth less
    tensor([[-1., -1.],
            [ 1.,  1.]])
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
        return torch.cat([value.clamp_min(0).sum((1, 3)) for value in self._values], 1)

    def moves(self, *, ahead: bool = False) -> Tensor:
        """What prices add to a decision for each group [b, j, k, 2]: at other labels, at the own.

        ``ahead``: where the momentum points, which is where the next step wants the decisions.
        """
        every = self._ahead if ahead else self._values
        each = [
            spread_to_groups((values.unsqueeze(-1) * slopes).sum(2), parent, 2)
            for values, slopes, parent in zip(every, self._slopes, self._parents, strict=True)
        ]
        return torch.stack(each).sum(0)

    def restart(self) -> None:
        """Forget the momentum: what is asked for has changed."""
        self._ahead, self._momentum, self._steps = list(self._values), 1.0, 0

    def step(self, counts: Sequence[Tensor], near: Sequence[Tensor], bounds: Tensor) -> None:
        """Move the prices by what decisions ahead (:meth:`moves`) came to.

        Parameters
        ----------
        counts : sequence of a Tensors of shape [b, j, groups, 4]
            As of :meth:`RuleProblem.counts`.
        near : the same, of shape [b, j, groups, 2]
            As of :meth:`RuleProblem.near`.
        bounds : Tensor of shape [b, a * r]
            Largest gaps, in each class; ``inf`` for a gap that has none, whose prices are zero.
        """
        r = len(self._numerators)
        later = (1 + (1 + 4 * self._momentum**2) ** 0.5) / 2
        share = (self._momentum - 1) / later
        for place, (found, close) in enumerate(zip(counts, near, strict=True)):
            own = slice(place * r, place * r + r)
            bound = bounds[:, None, own, None].to(found)
            rates, slopes = self._rates(found)
            curvature = (close.unsqueeze(2) * slopes.square()).sum(-1)  # [b, j, r, groups]
            least = _LEAST_DENSITY * slopes.abs().amax(-1)
            curvature = len(counts) * r * torch.maximum(curvature, least)
            pace = torch.where(curvature > 0, 1 / curvature.clamp_min(_TINY), 0.0)
            reached = self._ahead[place] * curvature - rates
            before = self._values[place]
            self._values[place] = now = _settle(reached, pace, bound)
            self._ahead[place] = now + share * (now - before)
            self._slopes[place] = slopes
        self._momentum, self._steps = later, self._steps + 1
        if self._steps % _RESTART == 0:
            self._momentum = 1.0

    def _rates(self, counts: Tensor) -> tuple[Tensor, Tensor]:
        """Rates [b, j, r, groups], and their slopes by the selected of each label [..., 2]."""
        above, below = ((counts @ part.T).mT for part in (self._numerators, self._denominators))
        known = below >= MIN_SHARE
        below = torch.where(known, below, 1.0)
        rates = torch.where(known, above / below, 0.0)
        by_numerator = self._numerators[:, None, :2]
        by_denominator = rates.unsqueeze(-1) * self._denominators[:, None, :2]
        slopes = (by_numerator - by_denominator) / below.unsqueeze(-1)
        return rates, torch.where(known.unsqueeze(-1), slopes, 0.0)


def _settle(reached: Tensor, pace: Tensor, bounds: Tensor) -> Tensor:
    """Prices [..., g] nearest to ``reached`` times ``pace`` that the bound allows.

    Squares of what they are moved by count over the pace. All sum to zero; they are zero for groups
    whose ``reached`` is within half of the bound from the middle, and others give way by as much.
    """
    middle = _middle(reached, pace, bounds.nan_to_num(posinf=0.0) / 2)
    lowest, highest = middle - bounds / 2, middle + bounds / 2
    found = pace * ((reached - highest).clamp_min(0) - (lowest - reached).clamp_min(0))
    total = found.clamp_min(0).sum(-1, keepdim=True)
    return found * (_MOST / total.clamp_min(_MOST))


def _middle(reached: Tensor, pace: Tensor, half: Tensor) -> Tensor:
    """Where as much is more than half of a bound above it as below it, times the pace: [..., 1].

    What is above less what is below falls with the middle, linearly from knot to knot.
    """
    knots, order = torch.cat([reached - half, reached + half], -1).sort(-1)
    rises = torch.cat([pace, -pace], -1).gather(-1, order).cumsum(-1)[..., :-1]
    slopes = rises - pace.sum(-1, keepdim=True)
    first = (pace * (reached - half - knots[..., :1])).sum(-1, keepdim=True)
    balance = torch.cat([first, first + (slopes * knots.diff(dim=-1)).cumsum(-1)], -1)
    place = (balance > 0).sum(-1, keepdim=True).sub(1).clamp(0, knots.shape[-1] - 2)
    (low, above), (high, below) = (
        (knots.gather(-1, at), balance.gather(-1, at)) for at in (place, place + 1)
    )
    return low + (high - low) * (above / (above - below).clamp_min(_TINY)).clamp(0, 1)
