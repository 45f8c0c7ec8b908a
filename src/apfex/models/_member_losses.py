"""What members are judged by: cross-entropy and gaps, and their gradients by the scores."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
import torch.nn.functional as F
from torch import Tensor

from apfex.distributed import Workers
from apfex.models._rows import TrainingRows
from apfex.models._running_counts import RunningCounts
from apfex.objectives import Aggregate, gaps_of_counts
from apfex.rates import GroupIndex, RateName
from apfex.relaxations import Step

_TINY = 1e-30
"""A batch whose weights vanish in float32 teaches nothing, rather than NaN."""


def cross_entropy_gradient(scores: Tensor, batch: TrainingRows) -> Tensor:
    """Gradient of the mean cross-entropy by scores [b, n] or [b, n, c].

    Of rows with several labels [n, s] each counts for an s-th.

    Examples
    --------
    >>> rows = TrainingRows(torch.zeros(2, 1), torch.tensor([0, 1]), torch.zeros(0, 2), ())
    >>> cross_entropy_gradient(torch.zeros(1, 2), rows)
    tensor([[ 0.2500, -0.2500]])
    """
    share = _shares(batch) * batch.label_weights()
    if scores.ndim == 2:
        return (torch.sigmoid(scores) - batch.y) * share
    if batch.y.ndim == 1:
        own = F.one_hot(batch.y, scores.shape[2])
    else:
        own = torch.zeros_like(scores[0]).scatter_(1, batch.y, 1 / batch.y.shape[1])
    return (torch.softmax(scores, 2) - own) * share.unsqueeze(-1)


@final
@dataclass(frozen=True, eq=False)
class MeasuredMembers:
    """Losses of members on a batch, and how they change with the scores.

    Attributes
    ----------
    losses : Tensor of shape [b, m]
        Cross-entropy, then for each grouping the soft gaps in the rates.
    slopes : Tensor of shape [b, m, n * j]
        By the scores (one of each row, or c), for a batch of which each row were all.
    shares : Tensor of shape [b or 1, n * j]
        Of the rows in the batch, by their weights.
    gaps : Tensor of shape [b, m - 1] or None
        Hard gaps, the largest difference between two groups.
    team : Workers or None
        Those that have the other rows; losses and gaps are of all rows.
    """

    losses: Tensor
    slopes: Tensor
    shares: Tensor
    gaps: Tensor | None
    team: Workers | None = None

    @property
    def gramian(self) -> Tensor:
        """Inner products [b, m, m] of the slopes as functions of a row, by the rows' shares."""
        own = (self.slopes * self.shares.unsqueeze(1)) @ self.slopes.mT
        return own if self.team is None else self.team.sum(own)

    @property
    def n_losses(self) -> int:
        """Number of losses m."""
        return self.losses.shape[1]

    def told(self) -> Tensor:
        """All that decides, in one float64 tensor: see :meth:`ToldOfMembers.read`."""
        parts = [self.losses, self.gramian.flatten(1)]
        return torch.cat([part.double() for part in (*parts, self.gaps) if part is not None], 1)

    def gradient(self, weights: Tensor) -> Tensor:
        """Gradient [b, n * j] by the scores of the losses times weights [b, m]."""
        combined = weights.to(self.slopes).unsqueeze(1) @ self.slopes
        return combined.squeeze(1) * self.shares


@final
@dataclass(frozen=True, eq=False)
class ToldOfMembers:
    """What is decided by: losses [b, m], their Gramian [b, m, m], hard gaps [b, m - 1] or None."""

    losses: Tensor
    gramian: Tensor
    gaps: Tensor | None

    @staticmethod
    def read(told: Tensor, m: int) -> ToldOfMembers:
        """Take apart what :meth:`MeasuredMembers.told` has put together."""
        losses, products, gaps = told.tensor_split((m, m + m * m), 1)
        return ToldOfMembers(losses, products.unflatten(1, (m, m)), gaps if gaps.numel() else None)


@final
class MemberLosses:
    """Cross-entropy and gaps of members, batch by batch.

    It remembers the confusion counts of recent batches: gaps are functions of these, so that
    their gradient by a row's score is an entry of a small table times the slope of the soft step.

    Parameters
    ----------
    rates : tuple of r names
    n_groupings : int
        a; there are m = 1 + a r losses.
    memory : int
        Number of batches to average confusion counts over.
    step : callable
        Soft step from probabilities to decisions.
    aggregate : str
        How the differences of a rate between groups become one gap.
    measures_hard : bool
        Whether the gaps of the decisions themselves are measured, too.

    Examples
    --------
    >>> from apfex.relaxations import identity_step
    >>> losses = MemberLosses(("dp",), 1, 1, identity_step, "rms")
    >>> rows = TrainingRows(torch.zeros(2, 1), torch.tensor([0, 1]), torch.tensor([[0, 1]]), (2,))
    >>> losses.measure(torch.tensor([[0.0, 4.0]]), rows).losses.round(decimals=2)
    tensor([[0.3600, 0.2400]])
    """

    def __init__(
        self,
        rates: tuple[RateName, ...],
        n_groupings: int,
        memory: int,
        step: Step,
        aggregate: Aggregate,
        *,
        measures_hard: bool = False,
    ) -> None:
        self._rates, self._step = rates, step
        self._aggregate: Aggregate = aggregate
        self._soft = [RunningCounts(memory) for _ in range(n_groupings)]
        self._hard = [RunningCounts(memory) for _ in range(n_groupings if measures_hard else 0)]

    def measure(self, scores: Tensor, batch: TrainingRows) -> MeasuredMembers:
        """Measure members by scores [b, n] or [b, n, c]."""
        is_binary = scores.ndim == 2
        p = torch.sigmoid(scores) if is_binary else torch.softmax(scores, 2).mT
        labels = batch.y if is_binary else F.one_hot(batch.y, scores.shape[2]).T
        share = _shares(batch)
        of_labels = batch.label_weights()
        losses, worths = [_cross_entropy(scores, batch, share * of_labels)], []
        decisions, steepness = self._decide(p)
        given, total = batch.sample_weight, batch.total(batch.weights().sum(-1, keepdim=True))
        if not is_binary:
            given, total = None if given is None else given.unsqueeze(-2), total.unsqueeze(-1)
        for index, running in zip(batch.indexes(), self._soft, strict=True):
            counts = running.update(decisions, labels, index, given, batch.team)
            gaps, tables = gaps_of_counts(counts, self._rates, self._aggregate)
            losses.append(gaps if is_binary else gaps.mean(1))
            worths += [_look_up(one, labels, index) * total for one in _by_rate(tables)]
        if not is_binary:
            share = share.unsqueeze(-2).expand(*share.shape[:-1], len(labels), -1).mT.flatten(-2)
        return MeasuredMembers(
            torch.cat(losses, 1),
            torch.stack(_slopes(p, (p - labels) * of_labels, steepness, worths), 1),
            share if share.ndim == 2 else share.unsqueeze(0),
            self._hard_gaps(scores, labels, batch, given) if self._hard else None,
            batch.team,
        )

    def of_members(self, members: Tensor) -> MemberLosses:
        """Return the losses of some of the members, with the counts that it remembers of them."""
        taken = copy.copy(self)
        taken._soft, taken._hard = (
            [running.of_members(members) for running in kept] for kept in (self._soft, self._hard)
        )
        return taken

    def state_dict(self) -> dict[str, Any]:
        """All that it remembers, for a checkpoint."""
        return {
            "soft": [running.state_dict() for running in self._soft],
            "hard": [running.state_dict() for running in self._hard],
        }

    def load_state_dict(
        self, state: Mapping[str, Any], device: torch.device, counts: Sequence[Sequence[int]]
    ) -> None:
        """Go on where :meth:`state_dict` was taken, with counts of these shapes."""
        for own, given in ((self._soft, state["soft"]), (self._hard, state["hard"])):
            shapes = counts if own else ()
            for running, one, shape in zip(own, given, shapes, strict=True):
                running.load_state_dict(one, device, shape)

    def _decide(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """Soft decisions, and the slope of each by its probability."""
        p = p.detach().requires_grad_()
        with torch.enable_grad():
            decisions = self._step(p)
        (steepness,) = torch.autograd.grad(decisions.sum(), p)
        return decisions.detach(), steepness

    def _hard_gaps(
        self, scores: Tensor, labels: Tensor, batch: TrainingRows, given: Tensor | None
    ) -> Tensor:
        """Largest gaps [b, a r] of the decisions, over all classes."""
        hard = (scores > 0).to(scores)
        if scores.ndim == 3:
            hard = F.one_hot(scores.argmax(2), scores.shape[2]).mT.to(scores)
        found = []
        for index, running in zip(batch.indexes(), self._hard, strict=True):
            counts = running.update(hard, labels, index, given, batch.team)
            gaps, _ = gaps_of_counts(counts, self._rates, "max")
            found.append(gaps if gaps.ndim == 2 else gaps.nan_to_num(torch.nan, 0.0).amax(1))
        return torch.cat(found, 1)


def _shares(batch: TrainingRows) -> Tensor:
    weight = batch.weights()
    return weight / batch.total(weight.sum(-1, keepdim=True)).clamp_min(_TINY)


def _cross_entropy(scores: Tensor, batch: TrainingRows, share: Tensor) -> Tensor:
    """Means [b, 1] over the rows, by their shares."""
    if scores.ndim == 2:
        each = F.softplus(scores) - scores * batch.y
    else:
        own = batch.y.expand(len(scores), -1).unsqueeze(2)
        each = -torch.log_softmax(scores, 2).gather(2, own).squeeze(2)
    return batch.total((each * share).sum(1, keepdim=True))


def _by_rate(tables: Tensor) -> list[Tensor]:
    """Of slopes [b, r, k, 4] or [b, c, r, k, 4] by counts, those of selected rows for each rate."""
    parts = tables[..., :2].unbind(-3)
    return [part / part.shape[1] if part.ndim == 4 else part for part in parts]  # mean of classes


def _look_up(table: Tensor, labels: Tensor, index: GroupIndex) -> Tensor:
    """What a decision is worth for each row, of [..., k, 2] by group and label."""
    if index.memberships is not None:
        each = table.mT @ index.memberships.to(table).T  # [..., 2, n]
        return torch.where(labels.bool(), each[..., 1, :], each[..., 0, :])
    flat, cells = table.flatten(-2), index.cells(labels)
    if cells.ndim == 1:
        return flat.index_select(-1, cells)
    return flat.gather(-1, cells.expand(len(flat), *cells.shape))


def _slopes(p: Tensor, error: Tensor, steepness: Tensor, worths: list[Tensor]) -> list[Tensor]:
    """Slopes [b, n * j] by the scores, from what decisions [b, n] or [b, c, n] are worth.

    The first is that of the cross-entropy, which is known.
    """
    if p.ndim == 2:
        curve = steepness * p * (1 - p)
        return [error, *(worth * curve for worth in worths)]
    found = [error]
    for worth in worths:
        steep = steepness * worth
        found.append(p * (steep - (p * steep).sum(1, keepdim=True)))
    return [slope.mT.flatten(1) for slope in found]
