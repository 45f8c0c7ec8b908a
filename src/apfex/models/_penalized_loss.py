"""The loss of each member: cross-entropy plus weighted gaps between groups."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from apfex.models._rows import TrainingRows
from apfex.objectives import Aggregate, gaps_of_counts
from apfex.rates import GroupIndex, RateName, soft_counts
from apfex.relaxations import Step

_TINY = 1e-30
"""A batch whose weights vanish in float32 teaches nothing, rather than NaN."""


@final
@dataclass(frozen=True, eq=False)
class GapWeights:
    """How much each gap counts beside the error, for each member.

    Attributes
    ----------
    rates : tuple of r names
    weights : Tensor of shape [b, a * r]
        For each of a groupings the weights of the gaps in r rates. A row of zeros is a plain model.

    Examples
    --------
    >>> GapWeights(("dp",), torch.tensor([[0.0], [1.0]])).n_members
    2
    """

    rates: tuple[RateName, ...]
    weights: Tensor

    def __post_init__(self) -> None:
        """Refuse weights of another shape, or negative ones."""
        r, shape = len(self.rates), list(self.weights.shape)
        if len(shape) != 2 or (shape[1] % r or not shape[1] if r else shape[1]):
            raise ValueError(f"weights must have shape [b, a * {r}], got {shape}.")
        if not bool(((self.weights >= 0) & self.weights.isfinite()).all()):
            raise ValueError("weights must be finite and non-negative.")

    @property
    def n_members(self) -> int:
        """Number of members b."""
        return len(self.weights)


def weight_grid(
    rates: Sequence[RateName], n_members: int = 16, largest: float = 3.0, steps: int = 6
) -> GapWeights:
    """Spread members over the weights: one plain, some for each gap alone, a few for all gaps.

    Parameters
    ----------
    rates : sequence of names
    n_members : int
        At least two.
    largest : float
        The largest weight.
    steps : int
        The smallest weight is ``largest / 2**(steps - 1)``. More members make the grid finer, and
        do not change its ends.

    Examples
    --------
    >>> weight_grid(("dp",), n_members=4).weights.squeeze(1).tolist()
    [0.0, 0.09375, 0.5303300619125366, 3.0]
    """
    if n_members < 2:
        raise ValueError(f"n_members must be at least 2, got {n_members}.")
    r = len(rates)
    directions = [*torch.eye(r), torch.ones(r)] if r > 1 else [torch.ones(1)]
    weighted = n_members - 1
    on_all = 0 if r == 1 else max(1, weighted // 8)
    counts = [(weighted - on_all) // r + (i < (weighted - on_all) % r) for i in range(r)]
    rows = [torch.zeros(r)]
    for direction, count in zip(directions, [*counts, on_all][: len(directions)], strict=True):
        exponents = torch.linspace(-(steps - 1), 0, count) if count > 1 else torch.zeros(count)
        rows += [largest * 2.0**exponent * direction for exponent in exponents]
    return GapWeights(tuple(rates), torch.stack(rows))


@final
class RunningCounts:
    """Soft confusion counts of all training rows, estimated from the batches of about one epoch.

    A small group has a handful of rows in a batch. A gap computed from those is mostly noise, which
    pushes a model towards constant decisions; the running mean over batches is not.

    Parameters
    ----------
    memory : float
        Number of batches to average over.

    Examples
    --------
    >>> running = RunningCounts(memory=2.0)
    >>> index = GroupIndex.of(torch.tensor([0, 1]))
    >>> running.update(torch.tensor([1.0, 0.0]), torch.tensor([1, 1]), index, None)[:, 1]
    tensor([1., 0.])
    """

    def __init__(self, memory: float) -> None:
        self._share = 1.0 / max(memory, 1.0)
        self._mean: Tensor | None = None
        self._steps = 0

    def update(
        self, decisions: Tensor, labels: Tensor, index: GroupIndex, sample_weight: Tensor | None
    ) -> Tensor:
        """Add a batch and return the mean counts per batch, shape [..., k, 4].

        ``sample_weight`` has shape [n], or any that fits the decisions.
        """
        with torch.no_grad():
            counts = soft_counts(decisions, labels, index, sample_weight)
            self._mean = torch.zeros_like(counts) if self._mean is None else self._mean
            self._mean = torch.lerp(self._mean, counts, self._share)
            self._steps += 1
            return self._mean / (1 - (1 - self._share) ** self._steps)

    def of_members(self, members: Tensor) -> RunningCounts:
        """Return the running mean of some of the members, the first axis of the decisions."""
        taken = copy.copy(self)
        taken._mean = None if self._mean is None else self._mean[members]
        return taken


@final
class PenalizedLoss:
    """Cross-entropy plus weighted gaps, as the gradient of every member's loss by its scores.

    It remembers the confusion counts of recent batches.

    Parameters
    ----------
    weights : GapWeights
        Weights [b, a * r].
    n_groupings : int
        a.
    memory : int
        Number of batches to average confusion counts over.
    step : callable
        Soft step from probabilities to decisions.
    aggregate : str
        How the differences of a rate between groups become one gap.

    Examples
    --------
    >>> from apfex.relaxations import identity_step
    >>> loss = PenalizedLoss(GapWeights((), torch.zeros(1, 0)), 0, 1, identity_step, "rms")
    >>> rows = TrainingRows(torch.zeros(2, 1), torch.tensor([0, 1]), torch.zeros(0, 2), ())
    >>> loss.gradient(torch.zeros(1, 2), rows)
    tensor([[ 0.2500, -0.2500]])
    """

    def __init__(
        self,
        weights: GapWeights,
        n_groupings: int,
        memory: int,
        step: Step,
        aggregate: Aggregate,
    ) -> None:
        self._rates, self._step = weights.rates, step
        self._aggregate: Aggregate = aggregate
        self._weights = weights.weights.chunk(n_groupings, 1) if n_groupings else ()
        self._running = [RunningCounts(memory) for _ in range(n_groupings)]

    def gradient(self, scores: Tensor, batch: TrainingRows) -> Tensor:
        """Return the gradient by scores [b, n] or [b, n, c] of losses that are means over rows."""
        is_multiclass = scores.ndim == 3
        weight = batch.weights()
        share = weight / weight.sum(-1, keepdim=True).clamp_min(_TINY)
        if is_multiclass:
            weight, share = weight.unsqueeze(-2), share.unsqueeze(-2)
        scores.requires_grad_()
        with torch.enable_grad():
            p = torch.softmax(scores, 2).mT if is_multiclass else torch.sigmoid(scores)
            decisions = self._step(p)
        labels = F.one_hot(batch.y, scores.shape[2]).T if is_multiclass else batch.y
        task = (p.detach() - labels) * share
        by_decisions = self._gap_gradient(decisions.detach(), labels, batch, weight)
        (fairness,) = torch.autograd.grad(decisions, scores, by_decisions * weight)
        return (task.mT if is_multiclass else task) + fairness

    def of_members(self, members: Tensor) -> PenalizedLoss:
        """Return the loss of some of the members, with the counts that it remembers of them."""
        taken = copy.copy(self)
        taken._weights = tuple(weights[members] for weights in self._weights)
        taken._running = [running.of_members(members) for running in self._running]
        return taken

    def _gap_gradient(
        self, decisions: Tensor, labels: Tensor, batch: TrainingRows, weight: Tensor
    ) -> Tensor:
        """Gradient of the weighted gaps by the decisions, for a row of weight 1."""
        total = torch.zeros_like(decisions)
        given = None if batch.sample_weight is None else weight
        for index, running, weights in zip(
            batch.indexes(), self._running, self._weights, strict=True
        ):
            counts = running.update(decisions, labels, index, given)
            _, slopes = gaps_of_counts(counts, self._rates, self._aggregate)
            shares = weights.to(slopes)  # [b, r]
            if labels.ndim == 2:
                shares = shares.unsqueeze(1) / len(labels)  # the mean over classes
            table = (shares[..., None, None] * slopes).sum(-3)[..., :2].flatten(-2)
            cells = index.cells(labels)
            if cells.ndim == 1:
                total += table.index_select(-1, cells)
            else:
                total += table.gather(-1, cells.expand(len(table), *cells.shape))
        return total
