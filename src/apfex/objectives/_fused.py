"""Built-in losses of binary scores in one node of the graph: one pass, and all gradients with it.

A loss that is a gap plus shares of task losses has a gradient in closed form: each row has that of
its cell (group and label), times the slope of its soft decision. On a CPU a call costs more than
what it computes on a few thousand rows, so this is numpy; elsewhere the plain definitions serve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, final

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from apfex.objectives._gaps import ONCE_ONLY, few_gaps, needs_gradient
from apfex.objectives._pairs import MOST_CROSSED, Aggregate, smooth_mean_of_few
from apfex.rates import RATES, GroupIndex, RateName
from apfex.relaxations import ccr_step, identity_step, tanh_step

if TYPE_CHECKING:
    from apfex.objectives._batch import Batch

Spot = tuple[int, int]
"""Number of a grouping, and of a rate."""
_FEW = 256
"""Pairs up to which gaps are taken in plain Python, number by number."""


@final
@dataclass(frozen=True)
class Step:
    """A relaxed step whose slope is known; the masked form drops decisions up to one half."""

    form: Literal["tanh", "ccr", "identity"] = "tanh"
    steepness: float = 5.0
    masked: bool = False

    def decide(self, p: Tensor) -> Tensor:
        """Soft decisions for probabilities."""
        if self.form == "identity":
            return identity_step(p)
        decisions = ccr_step(p) if self.form == "ccr" else tanh_step(p, steepness=self.steepness)
        return torch.where(decisions > 0.5, decisions, 0.0) if self.masked else decisions

    def slopes(self, p: np.ndarray, decisions: np.ndarray) -> np.ndarray:
        """Slopes of the decisions by the scores whose probabilities p are."""
        by_score = p * (1 - p)
        if self.form == "tanh":
            by_score *= decisions * (1 - decisions)
            by_score *= 2 * self.steepness
        elif self.form == "ccr":
            by_score *= 2 * ((p >= 0.25) & (p <= 0.75))
        return by_score


@final
@dataclass(frozen=True)
class Gap:
    """Gap of one rate over all pairs of groups; gaps of one form are computed together."""

    rate: RateName
    form: tuple[Step, Aggregate, float]
    """Step, aggregate and least count."""


@final
@dataclass(frozen=True)
class Recipe:
    """A loss as a gap, if any, plus shares of losses that are means over rows.

    Attributes
    ----------
    gap : Gap or None
    shares : three numbers
        Of the cross-entropy, the squared error, and the squared probability.
    """

    gap: Gap | None = None
    shares: tuple[float, float, float] = (0.0, 0.0, 0.0)


def has_codes(index: GroupIndex | None) -> bool:
    """Whether groups, if there are any, are ones that numpy can read."""
    return index is None or (index.codes is not None and index.codes.device.type == "cpu")


def can_fuse(batch: Batch) -> bool:
    """Whether a batch is one that numpy can read as it is, and no worker has a part of it."""
    scores = batch.scores
    return (
        scores.ndim == 1
        and batch.team is None
        and type(scores) is Tensor
        and scores.device.type == batch.y.device.type == "cpu"
        and scores.dtype in (torch.float32, torch.float64)
        and not needs_gradient(batch.sample_weight)
        and not torch.compiler.is_compiling()
    )


def fused_losses(
    batch: Batch, recipes: Sequence[Recipe], indexes: Sequence[GroupIndex | None]
) -> Tensor:
    """Losses [m] of a batch of binary scores, whose gradients are known when they are."""
    return _Fused.apply(batch.scores, batch, recipes, indexes)  # pyright: ignore[reportReturnType]


def fused_loss(batch: Batch, recipe: Recipe, index: GroupIndex | None) -> Tensor:
    """One such loss, a scalar."""
    return _Fused.apply(batch.scores, batch, recipe, index)  # pyright: ignore[reportReturnType]


def known_gradients(losses: Tensor, scores: Tensor) -> Tensor | None:
    """Gradients [m, n] of fused losses [m] by the very scores [n] they were computed from.

    None where that is not what these two are, or where a hook wants to see a backward pass.
    """
    node: Any = losses.grad_fn
    if not isinstance(node, _Fused._backward_cls):  # pyright: ignore
        return None
    if scores.ndim != 1 or node.next_functions[0] != (scores.grad_fn, scores.output_nr):
        return None
    if losses._backward_hooks or scores._backward_hooks or scores.retains_grad:
        return None
    (rows,) = node.saved_tensors
    return rows


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, batch: Batch, recipes: Any, indexes: Any) -> Tensor:
        alone = isinstance(recipes, Recipe)
        if alone:
            recipes, indexes = [recipes], [indexes]
        rows = _Pass(scores, batch.y, batch.sample_weight)
        values, gradients = rows.evaluate(recipes, indexes, ctx.needs_input_grad[0])
        if gradients is not None:
            ctx.save_for_backward(torch.from_numpy(gradients[0] if alone else gradients))
        return scores.new_tensor(values[0] if alone else values)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None, None]:
        if torch.is_grad_enabled():
            raise RuntimeError(ONCE_ONLY)
        (rows,) = ctx.saved_tensors
        gradient = grad_outputs[0]
        by_scores = gradient * rows if rows.ndim == 1 else gradient @ rows
        return by_scores, None, None, None


class _Part(NamedTuple):
    """A gap of one batch: which loss it is of, and where its gradient goes."""

    position: int
    recipe: Recipe
    rate: RateName
    groups: GroupIndex
    row: Any


class _Pass:
    """One pass over a batch; what several losses need of it is computed once."""

    def __init__(self, scores: Tensor, y: Tensor, weight: Tensor | None) -> None:
        self.scores, self.y, self.weight = scores, y, weight
        self.n = len(scores)
        self.codes = y.long().numpy()
        self.labels = y.to(scores.dtype)
        self.probabilities = torch.sigmoid(scores)
        self.p = self.probabilities.numpy()
        self.w = None if weight is None else weight.numpy()

    def evaluate(
        self,
        recipes: Sequence[Recipe],
        indexes: Sequence[GroupIndex | None],
        with_gradients: bool,
    ) -> tuple[list[float], np.ndarray | None]:
        """Values of the losses, and their gradients [m, n] by the scores where asked for."""
        gradients = np.empty((len(recipes), self.n), self.p.dtype) if with_gradients else None
        values = [0.0] * len(recipes)
        families: dict[Any, list[_Part]] = {}
        for position, (recipe, index) in enumerate(zip(recipes, indexes, strict=True)):
            row = None if gradients is None else gradients[position]
            if recipe.gap is None or index is None:
                if row is not None:
                    row[:] = self._mean_gradient(recipe.shares)
            else:
                k = index.n_groups  # many groups are taken on their own, without padding
                family = families.setdefault((recipe.gap.form, k if k > MOST_CROSSED else 0), [])
                family.append(_Part(position, recipe, recipe.gap.rate, index, row))
            values[position] = self._means(recipe.shares)
        for (form, _), parts in families.items():
            for part, value in zip(parts, self._gaps(form, parts), strict=True):
                values[part.position] += value
        return values, gradients

    def _gaps(self, form: tuple[Step, Aggregate, float], parts: Sequence[_Part]) -> list[float]:
        """Gaps of one form; the gradient of each loss is written into its row."""
        step, aggregate, least = form
        rates: tuple[RateName, ...] = tuple(dict.fromkeys(part.rate for part in parts))
        indexes = {id(part.groups): part.groups for part in parts}
        places = {key: place for place, key in enumerate(indexes)}
        cells = [self._cells(index) for index in indexes.values()]
        decisions = step.decide(self.probabilities).numpy()
        counts = self._counts(decisions, list(indexes.values()), cells)
        least = least if self.w is None else least * float(self.w.mean())
        spots = [(places[id(part.groups)], rates.index(part.rate)) for part in parts]
        values, tables = _values_and_tables(counts, rates, spots, aggregate, least)
        if parts[0].row is not None:
            by_score = step.slopes(self.p, decisions)
            if self.w is not None:
                by_score *= self.w
            for part, spot in zip(parts, spots, strict=True):
                # rows of no group have cell -1: the last entry of a table
                table = tables[spot].astype(self.p.dtype)
                row = np.take(table, cells[spot[0]], out=part.row, mode="wrap")
                row *= by_score
                if any(part.recipe.shares):
                    row += self._mean_gradient(part.recipe.shares)
        return [values[spot] for spot in spots]

    def _cells(self, index: GroupIndex) -> np.ndarray:
        """Number of each row's group and label, and -1 for rows without a group."""
        assert index.codes is not None
        codes = index.codes.numpy()
        cells = codes + codes
        cells += self.codes
        if index.has_outsiders:
            cells[codes < 0] = -1
        return cells

    def _counts(
        self, decisions: np.ndarray, indexes: Sequence[GroupIndex], cells: Sequence[np.ndarray]
    ) -> np.ndarray:
        """Soft counts [g, k, 4] of each grouping, as of ``soft_counts``, with empty groups."""
        most = max(index.n_groups for index in indexes)
        counts = np.zeros((len(indexes), 2, 2 * most))
        selected = decisions if self.w is None else decisions * self.w
        selected = selected.astype(np.float64)
        for own, index, place in zip(counts, indexes, cells, strict=True):
            size = 2 * index.n_groups
            weights = self.w
            chosen = selected
            if index.has_outsiders:
                inside = place >= 0
                place, chosen = place[inside], selected[inside]
                weights = None if weights is None else weights[inside]
            own[0, :size] = np.bincount(place, chosen, size)
            own[1, :size] = np.bincount(place, weights, size)
        return counts.reshape(-1, 2, most, 2).swapaxes(1, 2).reshape(-1, most, 4)

    @cached_property
    def _share(self) -> Any:
        """What each row counts in a mean."""
        return 1 / self.n if self.w is None else self.w / self.w.sum()

    @cached_property
    def _cross_entropy(self) -> float:
        if self.w is None:
            return float(F.binary_cross_entropy_with_logits(self.scores, self.labels))
        losses = F.binary_cross_entropy_with_logits(self.scores, self.labels, reduction="none")
        return float((losses.numpy() * self._share).sum())

    def _means(self, shares: tuple[float, float, float]) -> float:
        cross_entropy, squared_error, squared_probability = shares
        total = cross_entropy * self._cross_entropy if cross_entropy else 0.0
        if squared_error:
            total += squared_error * float(
                ((self.p - self.labels.numpy()) ** 2 * self._share).sum()
            )
        if squared_probability:
            total += squared_probability * float((self.p * self.p * self._share).sum())
        return total

    def _mean_gradient(self, shares: tuple[float, float, float]) -> np.ndarray:
        """Gradient of the weighted means by the scores."""
        cross_entropy, squared_error, squared_probability = shares
        error = self.p - self.labels.numpy()
        total = cross_entropy * error
        if squared_error or squared_probability:
            outer = squared_error * error + squared_probability * self.p
            total += 2 * outer * self.p * (1 - self.p)
        total *= self._share
        return total


def _values_and_tables(
    counts: np.ndarray,
    rates: tuple[RateName, ...],
    spots: Sequence[Spot],
    aggregate: Aggregate,
    least: float,
) -> tuple[dict[Spot, float], dict[Spot, np.ndarray]]:
    """Gaps at (grouping, rate), and what a selected row of each cell adds to each of them.

    The last entry of a table is 0, for rows of no group.
    """
    values, tables = {}, {}
    if aggregate == "smooth_mean" and len(spots) * counts.shape[1] ** 2 <= _FEW:
        rows = counts.tolist()
        for g, r in spots:
            values[g, r], table = smooth_mean_of_few(rows[g], RATES[rates[r]], least)
            tables[g, r] = np.array([*table, 0.0])
        return values, tables
    gaps, slopes = few_gaps(counts, rates, aggregate, least)
    for g, r in spots:
        values[g, r] = 0.0 if gaps[g, r] == np.inf else float(gaps[g, r])
        tables[g, r] = np.append(slopes[g, r, :, :2], 0.0)
    return values, tables
