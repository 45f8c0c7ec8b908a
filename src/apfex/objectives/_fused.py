"""Built-in losses of binary scores in one node of the graph: one pass, and all gradients with it.

A loss that is a gap plus shares of task losses has a gradient in closed form: each row has that of
its cell (group and label), times the slope of its soft decision. On a CPU a call costs more than
what it computes on a few thousand rows, so this is numpy; elsewhere the plain definitions serve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from apfex.objectives._gaps import few_gaps
from apfex.objectives._pairs import MOST_CROSSED, Aggregate
from apfex.rates import GroupIndex, RateName
from apfex.relaxations import ccr_step, identity_step, tanh_step

if TYPE_CHECKING:
    from apfex.objectives._base import Batch

ONCE_ONLY = "Fairness losses can be differentiated once only, got create_graph=True."


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
@dataclass(frozen=True, eq=False)
class Gap:
    """Gap of one rate over all pairs of groups."""

    rate: RateName
    step: Step
    aggregate: Aggregate
    min_count: float
    index: GroupIndex

    @property
    def family(self) -> tuple[Any, ...]:
        """Gaps of one family are computed together; groupings of many groups on their own."""
        k = self.index.n_groups
        return self.step, self.aggregate, self.min_count, k if k > MOST_CROSSED else 0


@final
@dataclass(frozen=True, eq=False)
class Recipe:
    """A loss as a gap, if any, plus shares of losses that are means over rows."""

    gap: Gap | None = None
    cross_entropy: float = 0.0
    squared_error: float = 0.0
    squared_probability: float = 0.0

    @property
    def shares(self) -> tuple[float, float, float]:
        """Shares of the three means."""
        return self.cross_entropy, self.squared_error, self.squared_probability


def can_fuse(batch: Batch) -> bool:
    """Whether a batch is one that numpy can read as it is."""
    scores = batch.scores
    return (
        scores.ndim == 1
        and type(scores) is Tensor
        and scores.device.type == batch.y.device.type == "cpu"
        and scores.dtype in (torch.float32, torch.float64)
        and not torch.compiler.is_compiling()
    )


def fused_losses(batch: Batch, recipes: Sequence[Recipe]) -> Tensor:
    """Losses [m] of a batch of binary scores, whose gradients are known when they are."""
    return _Fused.apply(batch.scores, batch, recipes)  # pyright: ignore[reportReturnType]


def fused_loss(batch: Batch, recipe: Recipe) -> Tensor:
    """One such loss, a scalar."""
    return _Fused.apply(batch.scores, batch, recipe)  # pyright: ignore[reportReturnType]


def known_gradients(losses: Tensor, scores: Tensor) -> Tensor | None:
    """Gradients [m, n] of fused losses [m] by the very scores [n] they were computed from.

    None where that is not what these two are, or where a hook wants to see a backward pass.
    """
    node: Any = losses.grad_fn
    if not isinstance(node, _Fused._backward_cls):  # pyright: ignore
        return None
    edge = torch.autograd.graph.get_gradient_edge(scores)
    if node.next_functions[0] != (edge.node, edge.output_nr) or scores.ndim != 1:
        return None
    if losses._backward_hooks or scores._backward_hooks or scores.retains_grad:
        return None
    (rows,) = node.saved_tensors
    return rows


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, batch: Batch, recipes: Any) -> Tensor:
        alone = isinstance(recipes, Recipe)
        rows = _Pass(scores, batch.y, batch.sample_weight)
        values, gradients = rows.evaluate([recipes] if alone else recipes, ctx.needs_input_grad[0])
        if gradients is not None:
            ctx.save_for_backward(torch.from_numpy(gradients[0] if alone else gradients))
        return scores.new_tensor(values[0] if alone else values)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None]:
        if torch.is_grad_enabled():
            raise RuntimeError(ONCE_ONLY)
        (rows,) = ctx.saved_tensors
        gradient = grad_outputs[0]
        return gradient * rows if rows.ndim == 1 else gradient @ rows, None, None


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
        self, recipes: Sequence[Recipe], with_gradients: bool
    ) -> tuple[list[float], np.ndarray | None]:
        """Values of the losses, and their gradients [m, n] by the scores where asked for."""
        gradients = np.empty((len(recipes), self.n), self.p.dtype) if with_gradients else None
        values = [0.0] * len(recipes)
        families: dict[tuple[Any, ...], list[int]] = {}
        for position, recipe in enumerate(recipes):
            if recipe.gap is not None:
                families.setdefault(recipe.gap.family, []).append(position)
            elif gradients is not None:
                gradients[position] = 0.0
        for positions in families.values():
            gaps = [gap for gap in (recipes[k].gap for k in positions) if gap is not None]
            rows = None if gradients is None else [gradients[k] for k in positions]
            for position, value in zip(positions, self._gaps(gaps, rows), strict=True):
                values[position] = value
        for position, recipe in enumerate(recipes):
            if any(recipe.shares):
                values[position] += self._means(recipe.shares)
                if gradients is not None:
                    gradients[position] += self._mean_gradient(recipe.shares)
        return values, gradients

    def _gaps(self, gaps: Sequence[Gap], rows: Sequence[np.ndarray] | None) -> list[float]:
        """Gaps of one family; the gradient of each is written into its row."""
        first = gaps[0]
        rates = tuple(dict.fromkeys(gap.rate for gap in gaps))
        indexes = {id(gap.index): gap.index for gap in gaps}
        places = {key: place for place, key in enumerate(indexes)}
        cells = [self._cells(index) for index in indexes.values()]
        decisions = first.step.decide(self.probabilities).numpy()
        counts = self._counts(decisions, list(indexes.values()), cells)
        least = first.min_count if self.w is None else first.min_count * float(self.w.mean())
        values, slopes = few_gaps(counts, rates, first.aggregate, least)
        if rows is not None:
            by_score = first.step.slopes(self.p, decisions)
            if self.w is not None:
                by_score *= self.w
            tables = _tables(slopes, self.p.dtype)
            for gap, row in zip(gaps, rows, strict=True):
                place = places[id(gap.index)]
                table = tables[place, rates.index(gap.rate)]
                np.take(table, cells[place], out=row, mode="wrap")  # outsiders: the last entry
                row *= by_score
        found = values.tolist()
        chosen = [found[places[id(gap.index)]][rates.index(gap.rate)] for gap in gaps]
        return [0.0 if value == np.inf else value for value in chosen]

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
            total += squared_error * float(((self.p - self.labels.numpy()) ** 2 * self._share).sum())
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


def _tables(slopes: np.ndarray, dtype: Any) -> np.ndarray:
    """What a selected row of each cell adds to each gap, and 0 at last for rows of no group."""
    g, r, k, _ = slopes.shape
    tables = np.zeros((g, r, 2 * k + 1), dtype)
    tables[..., :-1] = slopes[..., :2].reshape(g, r, 2 * k)
    return tables
