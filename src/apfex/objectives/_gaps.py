"""Soft gaps: from soft decisions to the difference of group rates, as one node of the graph.

Groups and labels split the rows into cells; a rate depends on the decisions only through their sum
in each cell. So one pass over the rows serves all rates of a grouping, and the gradient of a row
is looked up in a table with an entry per cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from apfex.distributed import Workers
from apfex.objectives._pairs import Aggregate, Array, gap_and_slopes, small
from apfex.rates import RATES, GroupIndex, RateName, soft_counts

ONCE_ONLY = "Fairness losses can be differentiated once only, got create_graph=True."


def soft_gaps(
    rates: Sequence[RateName],
    decisions: Tensor,
    labels: Tensor,
    index: GroupIndex,
    sample_weight: Tensor | None,
    aggregate: Aggregate,
    min_count: float,
    team: Workers | None = None,
    mean_weight: float | None = None,
) -> Tensor:
    """Gap of each rate over all pairs of groups.

    Parameters
    ----------
    rates : r names
    decisions : Tensor of shape [..., n], or [..., c, n]
        Soft decisions; gradients flow back into them, once.
    labels : Tensor of shape [n], or [c, n]
        0 or 1.
    index : GroupIndex
        Gradients flow into memberships, too.
    sample_weight : Tensor of shape [n], optional
    aggregate : {"smooth_mean", "mean", "max", "smooth_max", "rms"}
    min_count : float
        A group with a smaller denominator, in rows of mean weight, is left out of all pairs.
    team : Workers, optional
        Those that have the other rows: counts are added up over them before rates are taken.
    mean_weight : float, optional
        Of the rows of all of them.

    Returns
    -------
    Tensor of shape [..., r], or [..., c, r]
        ``inf``, with a gradient of 0, where fewer than two groups are left.
    """
    if needs_gradient(sample_weight):
        raise ValueError(
            "sample_weight must not need a gradient in a loss of gaps, which has none by weights, "
            "got one that does; give sample_weight.detach()."
        )
    if sample_weight is not None:
        min_count *= float(sample_weight.mean()) if mean_weight is None else mean_weight
    plan = _Plan(tuple(rates), labels, index, sample_weight, aggregate, min_count, team)
    return _SoftGaps.apply(decisions, index.memberships, plan)


def needs_gradient(sample_weight: Tensor | None) -> bool:
    """Whether weights are to be learned, which only the definition of a mean can do."""
    return sample_weight is not None and sample_weight.requires_grad and torch.is_grad_enabled()


def over_classes(gaps: Tensor, aggregate: Aggregate) -> Tensor:
    """Gaps [r] of one class, or mean (largest) gaps over the classes of [c, r] that can be told.

    A gap that is not estimable is left out, and is 0 where nothing is left.
    """
    told = ~gaps.isinf()
    counted = torch.where(told, gaps, 0.0)
    if gaps.ndim == 1:
        return counted
    if aggregate in ("max", "smooth_max"):
        return counted.amax(0)
    return counted.sum(0) / told.sum(0).clamp(min=1)


@dataclass(frozen=True, eq=False)
class _Plan:
    rates: tuple[RateName, ...]
    labels: Tensor
    index: GroupIndex
    sample_weight: Tensor | None
    aggregate: Aggregate
    min_count: float
    team: Workers | None


class _SoftGaps(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, decisions: Tensor, memberships: Tensor | None, plan: _Plan) -> Tensor:
        counts = soft_counts(decisions, plan.labels, plan.index, plan.sample_weight)
        counts = counts if plan.team is None else plan.team.sum(counts)
        gaps, slopes = gaps_of_counts(counts, plan.rates, plan.aggregate, plan.min_count)
        ctx.plan = plan
        ctx.save_for_backward(decisions, memberships, slopes)
        return gaps

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        if torch.is_grad_enabled():
            raise RuntimeError(ONCE_ONLY)
        decisions, memberships, slopes = ctx.saved_tensors
        # [..., k, 4]: how much each count of each group is worth
        table = (grad_outputs[0][..., None, None] * slopes).sum(-3)
        plan: _Plan = ctx.plan
        if plan.team is not None:
            table = table * plan.team.size  # gradients are averaged over workers, see all_sum
        if memberships is None:
            return _look_up(table[..., :2], plan), None, None
        return *_through_memberships(table, decisions, memberships, plan), None


def gaps_of_counts(
    counts: Tensor, rates: tuple[RateName, ...], aggregate: Aggregate, min_count: float = 1e-3
) -> tuple[Tensor, Tensor]:
    """Gaps of rates and their slopes by the counts.

    Parameters
    ----------
    counts : Tensor of shape [..., k, 4]
        Of :func:`~apfex.rates.soft_counts`.
    rates : r names
    aggregate : as for :class:`FairnessLoss`
    min_count : float

    Returns
    -------
    gaps : Tensor of shape [..., r]
        ``inf``, with slopes of 0, where fewer than two groups are left.
    slopes : Tensor of shape [..., r, k, 4]

    Examples
    --------
    >>> counts = torch.tensor([[1.0, 0.0, 4.0, 0.0], [3.0, 0.0, 4.0, 0.0]])
    >>> gaps, slopes = gaps_of_counts(counts, ("dp",), "max")
    >>> gaps
    tensor([0.5000])
    """
    gaps, slopes = few_gaps(small(counts), rates, aggregate, min_count)
    return _like(gaps, counts), _like(slopes, counts)


def few_gaps(
    few: Array, rates: tuple[RateName, ...], aggregate: Aggregate, min_count: float
) -> tuple[Array, Array]:
    """The same from and to float64 arrays, of numpy on a CPU."""
    coefficients = _coefficients(rates)  # [4, 2 r]
    # NaN scores must give NaN gaps, instead of groups that seem to be empty.
    poison = 0.0 * few.sum((-1, -2))[..., None]
    if isinstance(few, Tensor):
        few, coefficients = few.nan_to_num(), _coefficients_on(rates, few.device)
    elif np.isnan(poison).any():
        few = np.nan_to_num(few)
    sums = (few @ coefficients).swapaxes(-1, -2)  # [..., 2 r, k]
    r = len(rates)
    gaps, *slopes = gap_and_slopes(sums[..., :r, :], sums[..., r:, :], aggregate, min_count)
    numerators, denominators = coefficients.T[:r, None], coefficients.T[r:, None]
    by_counts = slopes[0][..., None] * numerators + slopes[1][..., None] * denominators
    return gaps + poison, by_counts


@cache
def _coefficients(rates: tuple[RateName, ...]) -> np.ndarray:
    rows = [RATES[rate].numerator for rate in rates] + [RATES[rate].denominator for rate in rates]
    return np.array(rows, dtype=np.float64).T


@cache
def _coefficients_on(rates: tuple[RateName, ...], device: torch.device) -> Tensor:
    """On a GPU; nothing is sent there while a step is recorded."""
    return torch.from_numpy(_coefficients(rates)).to(device)


def _look_up(table: Tensor, plan: _Plan) -> Tensor:
    """Gradient of each row: the entry of its cell, times its weight."""
    if plan.index.has_outsiders:
        table = torch.nn.functional.pad(table, (0, 0, 0, 1))
    flat, cells = table.flatten(-2), plan.index.cells(plan.labels)
    if cells.ndim == 1:
        gradient = flat.index_select(-1, cells)
    else:
        gradient = flat.gather(-1, cells.expand(*flat.shape[:-1], cells.shape[-1]))
    return gradient if plan.sample_weight is None else gradient * plan.sample_weight


def _through_memberships(
    table: Tensor, decisions: Tensor, memberships: Tensor, plan: _Plan
) -> tuple[Tensor, Tensor]:
    """Gradients by decisions [..., n] and by memberships [n, k]."""
    is_positive = plan.labels.bool().unsqueeze(-1)
    # [..., n, k]: worth of a selected row, and of a row, in each group, given its label
    selected = torch.where(is_positive, table[..., None, :, 1], table[..., None, :, 0])
    counted = torch.where(is_positive, table[..., None, :, 3], table[..., None, :, 2])
    if plan.sample_weight is not None:
        selected, counted = (
            part * plan.sample_weight.unsqueeze(-1) for part in (selected, counted)
        )
    by_decisions = (selected * memberships.to(selected.dtype)).sum(-1)
    by_memberships = selected * decisions.unsqueeze(-1) + counted
    extra = by_memberships.ndim - memberships.ndim
    return by_decisions, by_memberships.sum(tuple(range(extra))) if extra else by_memberships


def _like(array: Array, tensor: Tensor) -> Tensor:
    return torch.as_tensor(array, device=tensor.device).to(tensor.dtype)
