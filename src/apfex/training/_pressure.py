"""Pressure: which way every member's scores are to move."""

from __future__ import annotations

import copy
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from apfex.objectives import Aggregate, gaps_of_counts
from apfex.relaxations import Step
from apfex.training._aims import Aims
from apfex.training._rows import TrainingRows
from apfex.training._running import RunningMasses

_TINY = 1e-30
"""A batch whose weights vanish in float32 teaches nothing, rather than NaN."""


@final
class Pressure:
    """Slope of every member's loss by its scores.

    It remembers the group masses of about one epoch.

    Parameters
    ----------
    aims : Aims
        Weights [b, a * r].
    n_groupings : int
        a.
    memory : int
        Batches over which masses are averaged.
    step : callable
        Soft step from probabilities to decisions.
    aggregate : str
        How the differences of a rate are summed up.

    Examples
    --------
    >>> from apfex.relaxations import identity_step
    >>> pressure = Pressure(Aims((), torch.zeros(1, 0)), 0, 1, identity_step, "rms")
    >>> rows = TrainingRows(torch.zeros(2, 1), torch.tensor([0, 1]), torch.zeros(0, 2), ())
    >>> pressure.slope(torch.zeros(1, 2), rows)
    tensor([[ 0.2500, -0.2500]])
    """

    def __init__(
        self, aims: Aims, n_groupings: int, memory: int, step: Step, aggregate: Aggregate
    ) -> None:
        self._rates, self._step = aims.rates, step
        self._aggregate: Aggregate = aggregate
        self._weights = aims.weights.chunk(n_groupings, 1) if n_groupings else ()
        self._running = [RunningMasses(memory) for _ in range(n_groupings)]

    def slope(self, scores: Tensor, batch: TrainingRows) -> Tensor:
        """Slope by scores [b, n] or [b, n, c]; each member's loss is a mean over rows."""
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
        worth = self._worth(decisions.detach(), labels, batch, weight)
        (fairness,) = torch.autograd.grad(decisions, scores, worth * weight)
        return (task.mT if is_multiclass else task) + fairness

    def of_members(self, members: Tensor) -> Pressure:
        """The pressure on some of the members, with what it remembers of them."""
        taken = copy.copy(self)
        taken._weights = tuple(weights[members] for weights in self._weights)
        taken._running = [running.of_members(members) for running in self._running]
        return taken

    def _worth(
        self, decisions: Tensor, labels: Tensor, batch: TrainingRows, weight: Tensor
    ) -> Tensor:
        """What a row's decision adds to the weighted gaps, shape of the decisions."""
        total = torch.zeros_like(decisions)
        given = None if batch.sample_weight is None else weight
        for index, running, weights in zip(
            batch.indexes(), self._running, self._weights, strict=True
        ):
            masses = running.update(decisions, labels, index, given)
            _, slopes = gaps_of_counts(masses, self._rates, self._aggregate)
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
