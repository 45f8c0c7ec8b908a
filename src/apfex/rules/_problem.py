"""What rules are judged by: expected error and gaps, and their exact gradients by a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, final

import torch
import torch.nn.functional as F
from torch import Tensor

from apfex.models import OutOfFoldPredictions
from apfex.objectives import Aggregate, gaps_of_counts
from apfex.rates import GroupIndex, RateName
from apfex.rules._model import rules_at_rate

MIN_SHARE = 1e-9
"""Groups count from this share of all rows on."""
_TINY = 1e-30


@final
class MeasuredRules(NamedTuple):
    """Losses of rules, and how they change with their coefficients.

    Attributes
    ----------
    losses : Tensor of shape [b, 1 + a * r]
        The expected error, then for each grouping the gaps in the rates.
    gradients : Tensor of shape [b, 1 + a * r, j * f]
        By moves along the basis.
    """

    losses: Tensor
    gradients: Tensor


@final
@dataclass(frozen=True, eq=False)
class SoftDecisions:
    """What rules decide where their scores are near the threshold in part.

    Attributes
    ----------
    scores, decisions : Tensor of shape [b, j, n]
    softness : float
        Width of the soft decision, in probabilities.
    counts : list of a Tensors of shape [b, j, groups, 4]
        As of :meth:`RuleProblem.counts`.
    """

    scores: Tensor
    decisions: Tensor
    softness: float
    counts: list[Tensor]


@final
@dataclass(frozen=True, eq=False)
class RuleProblem:
    """Error and gaps of rules.

    A rule has ``k * c`` coefficients, so the gradients of all objectives are a few small products,
    for all members together: see :meth:`measure`. Only what has a number for every row is on the
    device of the predictions. All else is on the CPU, given and returned: a GPU takes longer to
    launch an operation on a few numbers than a CPU to do it.

    Attributes
    ----------
    q : Tensor of shape [k * c, n]
        Out-of-fold probabilities; rows of a table are columns here, which makes products faster.
    counted : Tensor of shape [k * c, n]
        Weighted memberships: how much each row counts for each group and label.
    totals : Tensor of shape [k, c]
    costs : Tensor of shape [j, n]
        Of deciding for j: one of two classes, or each of several.
    most : Tensor of shape []
        The cost of deciding for none of them.
    shares : Tensor of shape [n]
    start : Tensor of shape [j, k * c]
        The rule without gaps.
    basis : Tensor of shape [f, k * c]
        Directions, scaled so that a unit moves every group alike.
    own : Tensor of shape [j, c]
        Whether a label is the one decided for.
    rates : tuple of r names
    parents : sequence of a int64 Tensors of shape [k]
    rate : float or None
        Share of the rows that each rule must decide for the second class.
    """

    q: Tensor
    counted: Tensor
    totals: Tensor
    costs: Tensor
    most: Tensor
    shares: Tensor
    start: Tensor
    basis: Tensor
    own: Tensor
    rates: tuple[RateName, ...]
    parents: Sequence[Tensor]
    rate: float | None

    @staticmethod
    def of(
        predictions: OutOfFoldPredictions,
        rates: Sequence[RateName],
        parents: Sequence[Tensor],
        *,
        trusted_rows: float = 200.0,
        costs: Tensor | None = None,
        selection_rate: float | None = None,
    ) -> RuleProblem:
        """Make the problem of some predictions.

        Parameters
        ----------
        predictions : OutOfFoldPredictions
        rates : sequence of r names
        parents : sequence of a int64 Tensors of shape [k]
            For each grouping, the group that a group of the crossing belongs to; -1: to none.
        trusted_rows : float
            See :meth:`OutOfFoldPredictions.memberships`: with so many rows of a group and label,
            their own labels count as much as the predictions of all rows.
        costs : Tensor of shape [c, c], optional
            What it costs to decide for the class of a column where the label is that of the row; 1
            for every error by default.
        selection_rate : float, optional
            Share of the rows that each rule must decide for the second of two classes.
        """
        _, k, c = predictions.probabilities.shape
        q, shares = predictions.probabilities.flatten(1), predictions.shares().unsqueeze(1)
        counted = shares * predictions.memberships(trusted_rows)
        costs = (1 - torch.eye(c, dtype=q.dtype)) if costs is None else costs.cpu().to(q.dtype)
        # [j, c], what deciding for j spares at each label: against the worst, or the first of two
        most = costs.amax(1) if c > 2 else costs[:, 0]
        spared = most - costs.T[-1 if c == 2 else 0 :]
        start = spared.repeat(1, k)
        return RuleProblem(
            q=q.T.contiguous(),
            counted=counted.T.contiguous(),
            totals=counted.sum(0).view(k, c).cpu(),
            costs=-(start.to(q) @ (q * shares).T),
            most=(q * shares).sum(0).cpu() @ most.repeat(k),
            shares=shares.squeeze(1),
            start=start,
            basis=_basis(predictions.probabilities, shares.squeeze(1)).cpu(),
            own=(torch.eye(c) if c > 2 else torch.tensor([[0.0, 1.0]])).to(q.dtype),
            rates=tuple(rates),
            parents=[parent.cpu() for parent in parents],
            rate=selection_rate,
        )

    def resampled(self, times: Tensor) -> RuleProblem:
        """The problem in which each row [n] counts so many times, for :meth:`counts`."""
        counted = self.counted * times.to(self.counted)
        return replace(self, counted=counted, totals=counted.sum(1).cpu().view_as(self.totals))

    def rules(self, moves: Tensor) -> Tensor:
        """Coefficients [b, j, k c] of rules at the rate asked for.

        ``moves`` [b, j, k, 2] is what they add to the rule without gaps, at the labels that are not
        decided for and at the one that is.
        """
        if len(self.own) > 1:
            own = self.own[:, None, :]
            moves = moves[..., :1] * (1 - own) + moves[..., 1:] * own
        return self.at_rate(self.start + moves.flatten(2))

    def at_rate(self, rules: Tensor) -> Tensor:
        """Coefficients [b, j, k c] moved so that the share asked for is chosen."""
        if self.rate is None:
            return rules
        k, c = self.totals.shape
        each = rules.to(self.q).unflatten(-1, (k, c))  # a constant moves all scores alike
        moved = rules_at_rate(each, self.q.T.unflatten(-1, (k, c)), self.shares, self.rate)
        return moved.flatten(2).to(rules)

    def decide(self, rules: Tensor, softness: float) -> SoftDecisions:
        """Soft decisions of rules [b, j, k c]."""
        scores = rules.to(self.q) @ self.q  # [b, j, n]
        hard = scores / softness
        decisions = torch.sigmoid(hard) if len(self.own) == 1 else torch.softmax(hard, 1)
        return SoftDecisions(scores, decisions, softness, self.counts(decisions))

    def near(self, soft: SoftDecisions) -> list[Tensor]:
        """How much decisions change with their score [b, j, groups, 2], for each grouping.

        In shares of all rows, at other labels and at the own one: how many are near the threshold.
        """
        steepness = _steepness(soft.decisions) / soft.softness
        near = F.linear(steepness, self.counted).cpu().unflatten(-1, self.totals.shape)
        return [self._split(near, parent) for parent in self._indices]

    def measure(self, soft: SoftDecisions, aggregate: Aggregate = "smooth_max") -> MeasuredRules:
        """Measure soft decisions.

        An entropy of the decisions, times their softness, is part of the error that is
        differentiated: without gaps the exact optimum is then the more likely label.
        """
        gaps, by_target = self._gaps(soft.counts, aggregate)
        error = self.most + (soft.decisions * self.costs).sum((1, 2)).cpu()
        by_error = torch.addcmul(self.costs, soft.scores, self.shares)
        slope = self._slope(soft.decisions, soft.softness)
        worths = (table.to(self.q) @ self.counted for table in by_target)
        gradients = [slope(worth) for worth in (by_error, *worths)]
        losses = torch.cat([error.unsqueeze(1), *gaps], 1)
        return MeasuredRules(losses, torch.stack(gradients, 1).cpu())

    def _slope(self, decisions: Tensor, softness: float) -> Callable[[Tensor], Tensor]:
        """From what a decision is worth [b, j, n] to the gradient by the moves [b, j f]."""
        basis = self.basis.to(self.q)

        def by_moves(steep: Tensor) -> Tensor:
            return (F.linear(steep, self.q) @ basis.T / softness).flatten(1)

        def of_several(worth: Tensor) -> Tensor:
            return by_moves(decisions * (worth - (decisions * worth).sum(1, keepdim=True)))

        if len(self.start) > 1:
            return of_several
        steepness = _steepness(decisions)
        if self.rate is None:
            return lambda worth: by_moves(steepness * worth)
        at_threshold = (self.shares * steepness).sum(2, keepdim=True).clamp_min(_TINY)

        def at_rate(worth: Tensor) -> Tensor:
            # what moves all scores alike is taken back by the rate
            mean = (worth * steepness).sum(2, keepdim=True) / at_threshold
            return by_moves(steepness * (worth - mean * self.shares))

        return at_rate

    def counts(self, decisions: Tensor) -> list[Tensor]:
        """Counts [b, j, groups, 4] of decisions [b, j, n] for each grouping, in shares of all rows.

        As :func:`~apfex.rates.soft_counts`, where rows belong to groups and labels in part.
        """
        selected = F.linear(decisions, self.counted).cpu().unflatten(-1, self.totals.shape)
        found = []
        for parent, everybody in zip(self._indices, self._everybody, strict=True):
            own = self._split(selected, parent)
            found.append(torch.cat([own, everybody.expand_as(own)], -1))
        return found

    @cached_property
    def _indices(self) -> list[GroupIndex | None]:
        """Which group of each grouping a group of the crossing is in; None where it is itself."""
        return [
            None
            if torch.equal(parent, torch.arange(len(parent)).to(parent))
            else GroupIndex(parent, None, int(parent.max()) + 1, bool((parent < 0).any()))
            for parent in self.parents
        ]

    @cached_property
    def _everybody(self) -> list[Tensor]:
        """Counts [j, groups, 2] of all rows, for each grouping."""
        totals = self.totals.expand(len(self.own), *self.totals.shape)
        return [self._split(totals, parent) for parent in self._indices]

    def _gaps(
        self, every: Sequence[Tensor], aggregate: Aggregate
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Gaps [b, r] for each grouping; of each gap the slope by group and label [b, j, k c]."""
        j, own = len(self.own), self.own[:, None, None, :]
        found, tables = [], []
        for parent, counts in zip(self._indices, every, strict=True):
            gaps, slopes = gaps_of_counts(counts, self.rates, aggregate, MIN_SHARE)
            found.append(gaps.mean(1))
            if parent is not None:
                assert parent.codes is not None
                slopes = spread_to_groups(slopes, parent.codes, 3)
            slopes = slopes[..., :2]  # [b, j, r, k, 2]
            if j > 1:
                slopes = (slopes[..., :1] * (1 - own) + slopes[..., 1:] * own) / j
            tables += slopes.flatten(3).unbind(2)
        return found, tables

    def _split(self, counts: Tensor, parent: GroupIndex | None) -> Tensor:
        """Counts [..., j, k, c] as those of other labels and of the own one, by parent group."""
        if len(self.own) > 1:
            own = self.own[:, None, :]
            counts = torch.stack([(counts * (1 - own)).sum(-1), (counts * own).sum(-1)], -1)
        return counts if parent is None else parent.sum(counts.mT).mT


def spread_to_groups(values: Tensor, parent: Tensor, dim: int) -> Tensor:
    """What groups of a grouping have, for each group of the crossing; 0 for one without a parent.

    Examples
    --------
    >>> spread_to_groups(torch.tensor([5.0, 7.0]), torch.tensor([0, 1, -1]), 0)
    tensor([5., 7., 0.])
    """
    spread = values.index_select(dim, parent.clamp_min(0))
    inside = (parent >= 0).view(-1, *[1] * (values.ndim - dim - 1))
    return torch.where(inside, spread, 0.0)


def _steepness(decisions: Tensor) -> Tensor:
    """How much soft decisions change with their score, in units of the softness."""
    return torch.addcmul(decisions, decisions, decisions, value=-1)


def largest_gaps(counts: Sequence[Tensor], rates: Sequence[RateName]) -> Tensor:
    """Largest differences between two groups [b, a r], over all classes: what bounds are about.

    ``counts`` [b, j, groups, 4] are those of the groupings. Smoothed gaps are smaller.
    """
    each = [gaps_of_counts(one, tuple(rates), "max", MIN_SHARE)[0].amax(1) for one in counts]
    return torch.cat(each, 1)


def _basis(q: Tensor, shares: Tensor) -> Tensor:
    """A direction for each group within each label, and one for each group: [k c + k, k c].

    A unit of each moves the scores of the group's own rows by about as much as any other's: the
    better the models can tell a group, the less its coefficient has to move.
    """
    _, k, c = q.shape
    groups = q.sum(2, keepdim=True)
    in_labels = _known(q, q / q.sum(1, keepdim=True).clamp_min(_TINY), shares)
    in_all = _known(groups, groups, shares)
    spread = torch.eye(k).to(q).repeat_interleave(c, 1)
    return torch.cat([torch.diag(1 / in_labels.flatten()), spread / in_all])


def _known(members: Tensor, guess: Tensor, shares: Tensor) -> Tensor:
    """Mean guess for the rows that belong: 1 if groups are known, their share if not at all."""
    belonging = torch.einsum("n,nkc->kc", shares, members)
    return (
        torch.einsum("n,nkc->kc", shares, members * guess)
        .div(belonging.clamp_min(_TINY))
        .clamp_min(1 / len(shares))
    )
