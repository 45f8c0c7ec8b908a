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
    """Values [b, m] of cross-entropy and m - 1 terms, and slopes [b, m, n] by the scores."""

    values: Tensor
    slopes: Tensor


@final
@dataclass(frozen=True, eq=False)
class _Family:
    """Losses that share soft decisions and a grouping: of which rows, and where they go."""

    first: Term
    rates: tuple[RateName, ...]
    rows: Tensor | slice
    """Of the scores; a slice where it is all of them."""
    places: Tensor
    """Row and rate of each loss [2, l], among those of the family."""
    losses: Tensor
    """Where each loss goes [l], among all b m of them."""
    task_weights: Tensor

    @staticmethod
    def of(listed: Sequence[tuple[int, int, Term]], n_rows: int) -> _Family:
        """From (loss, row of the scores, term)."""
        rows = list(dict.fromkeys(row for _, row, _ in listed))
        rates: tuple[RateName, ...] = tuple(dict.fromkeys(term.rate for *_, term in listed))
        places = [(rows.index(row), rates.index(term.rate)) for _, row, term in listed]
        return _Family(
            listed[0][2],
            rates,
            slice(None) if rows == list(range(n_rows)) else torch.tensor(rows),
            torch.tensor(places).T,
            torch.tensor([loss for loss, *_ in listed]),
            torch.tensor([[term.task_weight] for *_, term in listed]),
        )


@final
class LossList:
    """The losses of b members: the cross-entropy and m - 1 terms of each.

    Parameters
    ----------
    terms : b sequences of m - 1 terms
    own_scores : bool
        Whether each loss looks at scores of its own, [m, b, n], instead of those of its member,
        [1, b, n].
    """

    def __init__(self, terms: Sequence[Sequence[Term]], own_scores: bool = False) -> None:
        self._b, self._m = len(terms), 1 + len(terms[0])
        self._own = own_scores
        found: dict[tuple, list[tuple[int, int, Term]]] = {}
        for member, own in enumerate(terms):
            for slot, term in enumerate(own, start=1):
                loss, row = member * self._m + slot, member
                key = (term.form, term.relaxation, term.steepness, term.attribute)
                row += slot * self._b if own_scores else 0
                found.setdefault(key, []).append((loss, row, term))
        n_rows = self._b * (self._m if own_scores else 1)
        self._families = [_Family.of(listed, n_rows) for listed in found.values()]

    def evaluate(self, scores: Tensor, batch: LossBatch) -> Losses:
        """Values and slopes for scores [q, b, n]."""
        b, m, n = self._b, self._m, scores.shape[-1]
        scores = scores.flatten(0, 1)
        y = batch.y.to(scores.dtype)
        weight = torch.ones_like(y) if batch.sample_weight is None else batch.sample_weight
        share = weight / weight.sum()
        p = torch.sigmoid(scores)
        entropy = F.softplus(scores).mul_(share).sum(-1) - scores @ (share * y)
        entropy_slope = (p - y) * share
        values, slopes = scores.new_empty(b * m), scores.new_empty(b * m, n)
        values[::m], slopes[::m] = entropy[:b], entropy_slope[:b]
        if self._families:
            bend = p * (1 - p)
            square = ((p - y).square() * share).sum(-1)
            task = {"pairs": (entropy, entropy_slope)}
            other = (square, 2 * entropy_slope * bend)
            for family in self._families:
                own_task = task.get(family.first.form, other)
                _fill(values, slopes, family, p, bend, own_task, batch)
        return Losses(values.view(b, m), slopes.view(b, m, n))


def _fill(
    values: Tensor,
    slopes: Tensor,
    family: _Family,
    p: Tensor,
    bend: Tensor,
    task: tuple[Tensor, Tensor],
    batch: LossBatch,
) -> None:
    """Write the values [b m] and slopes [b m, n] of a family."""
    rows, (places, rates) = family.rows, family.places
    first = family.first
    decisions, bend = _soft_decisions(
        p[rows], bend[rows], first.form, first.relaxation, first.steepness
    )
    gaps, table = _gaps(family, decisions, batch)
    cells = batch.indexes[first.attribute].cells(batch.y)
    found = table[places, rates].index_select(-1, cells) * bend[places]
    if batch.sample_weight is not None:
        found = found * batch.sample_weight
    value, slope = task[0][rows][places], task[1][rows][places]
    weights = family.task_weights.to(p.dtype)
    values[family.losses] = gaps[places, rates] + weights[:, 0] * value
    slopes[family.losses] = found.addcmul_(weights, slope)


def _gaps(family: _Family, decisions: Tensor, batch: LossBatch) -> tuple[Tensor, Tensor]:
    """Gaps [rows, rates], and a table [rows, rates, 2 k] of slopes by cells of group and label."""
    index, weight = batch.indexes[family.first.attribute], batch.sample_weight
    aggregate: Aggregate = "smooth_mean" if family.first.form == "pairs" else "mean"
    least = 1e-3 if weight is None else 1e-3 * float(weight.mean())
    counts = soft_counts(decisions, batch.y, index, weight)
    gaps, by_counts = gaps_of_counts(counts, family.rates, aggregate, least)
    gaps = torch.where(gaps.isinf(), 0.0, gaps)  # fewer than two groups in the batch
    return gaps, by_counts[..., :2].flatten(-2)


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
