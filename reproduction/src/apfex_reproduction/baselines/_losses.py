"""Losses of all members and their slopes by the scores, without a graph.

The numbers are those of :class:`~apfex.objectives.CrossEntropy`, ``DPLoss``, ``TPRLoss`` and
``FairnessLoss``, which a test holds them to. Confusion counts of all members come from one pass
over the rows, and the gradient of a row is looked up in a table with an entry per group and label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import torch
import torch.nn.functional as F
from torch import Tensor

from apfex.objectives import Aggregate, gaps_of_counts
from apfex.rates import GroupIndex, RateName, soft_counts
from apfex.relaxations import ccr_step, tanh_step

Form = Literal["plain", "masked", "pairs"]
"""Padh's losses, the same as the published code has them, or the ones over all pairs."""
Relaxation = Literal["tanh", "ccr", "identity"]
"""What stands for a hard decision."""
TASK_WEIGHT = 0.1
"""Share of the squared error (Padh) or the cross-entropy (all pairs) in a fairness loss."""
_CCR_WIDTH = 0.25
_STEEPNESS = {("masked", "dp"): 3.0}
"""Of the tanh step; 5 for all others."""


@final
@dataclass(frozen=True)
class Term:
    """A fairness loss: a rate, the grouping whose groups are compared, and how."""

    rate: RateName
    attribute: int
    form: Form = "plain"
    relaxation: Relaxation = "tanh"
    task_weight: float = TASK_WEIGHT

    @property
    def steepness(self) -> float:
        """Of the tanh step."""
        return _STEEPNESS.get((self.form, self.rate), 5.0)


@final
@dataclass(frozen=True, eq=False)
class LossBatch:
    """Labels [n], groups of each attribute, and weights [n], of a batch."""

    y: Tensor
    indexes: Sequence[GroupIndex]
    sample_weight: Tensor | None


@final
@dataclass(frozen=True, eq=False)
class Losses:
    """Values [..., m] of cross-entropy and m - 1 terms, and slopes [..., m, n] by the scores."""

    values: Tensor
    slopes: Tensor


def evaluate(terms: Sequence[Term], scores: Tensor, batch: LossBatch) -> Losses:
    """Cross-entropy and fairness losses of scores [..., n]."""
    y = batch.y.to(scores.dtype)
    weight = torch.ones_like(y) if batch.sample_weight is None else batch.sample_weight
    share = weight / weight.sum()
    p = torch.sigmoid(scores)
    entropy = F.softplus(scores).mul_(share).sum(-1) - scores @ (share * y)
    entropy_slope = (p - y) * share
    values, slopes = [entropy], [entropy_slope]
    if terms:
        bend = p * (1 - p)
        square_slope = 2 * entropy_slope * bend
        square = ((p - y).square() * share).sum(-1)
        gaps = _gaps(terms, p, bend, batch)
        for term, (gap, slope) in zip(terms, gaps, strict=True):
            pairs = term.form == "pairs"
            values.append(gap + term.task_weight * (entropy if pairs else square))
            slopes.append(slope + term.task_weight * (entropy_slope if pairs else square_slope))
    return Losses(torch.stack(values, -1), torch.stack(slopes, -2))


def _gaps(
    terms: Sequence[Term], p: Tensor, bend: Tensor, batch: LossBatch
) -> list[tuple[Tensor, Tensor]]:
    """Gap [...] of each term, and its slope [..., n] by the scores."""
    found: dict[Term, tuple[Tensor, Tensor]] = {}
    steps: dict[tuple[Form, Relaxation, float], tuple[Tensor, Tensor]] = {}
    for first in terms:
        if first in found:
            continue
        key = (first.form, first.relaxation, first.steepness)
        family = [
            term
            for term in dict.fromkeys(terms)
            if (term.form, term.relaxation, term.steepness) == key
            and term.attribute == first.attribute
        ]
        if key not in steps:
            steps[key] = _soft_decisions(p, bend, *key)
        found |= _family_gaps(family, *steps[key], batch)
    return [found[term] for term in terms]


def _soft_decisions(
    p: Tensor, bend: Tensor, form: Form, relaxation: Relaxation, steepness: float
) -> tuple[Tensor, Tensor]:
    """Soft decisions and their slopes by the scores; ``bend`` is that of the probabilities."""
    if relaxation == "identity":
        return p, bend
    if relaxation == "ccr":
        inside = (p - 0.5).abs() <= _CCR_WIDTH
        return ccr_step(p, width=_CCR_WIDTH), inside * bend / (2 * _CCR_WIDTH)
    decisions = tanh_step(p, steepness=steepness)
    slope = 2 * steepness * decisions * (1 - decisions) * bend
    if form == "masked":
        counted = decisions > 0.5
        return torch.where(counted, decisions, 0.0), torch.where(counted, slope, 0.0)
    return decisions, slope


def _family_gaps(
    family: Sequence[Term], decisions: Tensor, bend: Tensor, batch: LossBatch
) -> dict[Term, tuple[Tensor, Tensor]]:
    index, weight = batch.indexes[family[0].attribute], batch.sample_weight
    aggregate: Aggregate = "smooth_mean" if family[0].form == "pairs" else "mean"
    least = 1e-3 if weight is None else 1e-3 * float(weight.mean())
    counts = soft_counts(decisions, batch.y, index, weight)
    gaps, by_counts = gaps_of_counts(counts, tuple(term.rate for term in family), aggregate, least)
    gaps = torch.where(gaps.isinf(), 0.0, gaps)  # fewer than two groups in the batch
    table = by_counts[..., :2].flatten(-2)  # [..., r, 2 k]
    slopes = table.index_select(-1, index.cells(batch.y)) * bend.unsqueeze(-2)
    if weight is not None:
        slopes = slopes * weight
    return {term: (gaps[..., place], slopes[..., place, :]) for place, term in enumerate(family)}
