"""Decision rules: every point of the front from the same probabilities of group and label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from apfex.objectives import gaps_of_counts
from apfex.rates import GroupIndex
from apfex.training._aims import Aims

_LEAST_SLOPE = 1e-3
"""Slopes far below this are rounding, which Adam would blow up."""
_LEAST_MASS = 1e-9
"""Groups count from this share of all rows on."""
_TINY = 1e-30


Watch = Callable[[int, Tensor, Tensor], None]
"""Sees a step, errors and gaps of all rules, and the lengths of their gradients."""


@final
@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of the rows that rules are fitted to.

    Attributes
    ----------
    probabilities : Tensor of shape [n, k, c]
        Of each group and label given the inputs, from models that have not seen the row.
    cells : int64 Tensor of shape [n]
        ``group * c + label`` of each row.
    sample_weight : Tensor of shape [n] or None

    Examples
    --------
    >>> known = Evidence(torch.tensor([[[0.4, 0.1], [0.2, 0.3]]]), torch.tensor([3]))
    >>> known.memberships(trusted_rows=1.0)
    tensor([[0.4000, 0.1000, 0.2000, 0.6500]])
    """

    probabilities: Tensor
    cells: Tensor
    sample_weight: Tensor | None = None

    def shares(self) -> Tensor:
        """Weight of each row, summing to one."""
        weight = self.sample_weight
        if weight is None:
            return torch.full_like(self.probabilities[:, 0, 0], 1 / len(self.cells))
        return (weight / weight.sum()).to(self.probabilities)

    def take(self, rows: Tensor) -> Evidence:
        """What is known of some of the rows."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return Evidence(self.probabilities[rows], self.cells[rows], weight)

    def given_groups(self) -> Evidence:
        """The same where the group of a row is known: all others have no probability."""
        c = self.probabilities.shape[2]
        return replace(self, probabilities=given_groups(self.probabilities, self.cells // c))

    def memberships(self, trusted_rows: float) -> Tensor:
        """How much each row counts in each cell, shape [n, k * c].

        Between what the row is and what the models say of it: a cell with as many rows of its own
        as ``trusted_rows`` is halfway, a smaller one is nearer to the models.
        """
        flat, shares = self.probabilities.flatten(1), self.shares()
        effective = 1 / (shares**2).sum()  # Kish
        own = torch.zeros_like(flat).scatter_(1, self.cells.unsqueeze(1), 1.0)
        trust = trusted_rows / (trusted_rows + effective * (shares @ own))
        return torch.lerp(own, flat, trust)


@final
@dataclass(frozen=True)
class RuleSettings:
    """How rules are fitted.

    Attributes
    ----------
    steps : int
    trusted_rows : float
        Rows from which on a cell's own labels count more than what the models say of all rows.
    softness : pair of float
        Width of the soft decision at the beginning and at the end, in probabilities.
    learning_rate : float
        For up to four groups; less for more, as a score is a sum over all of them.

    Examples
    --------
    >>> RuleSettings(steps=10).trusted_rows
    200.0
    """

    steps: int = 60
    trusted_rows: float = 200.0
    softness: tuple[float, float] = (0.2, 0.02)
    learning_rate: float = 0.04


def fit_rules(
    evidence: Evidence,
    aims: Aims,
    parents: Sequence[Tensor],
    settings: RuleSettings | None = None,
    class_weight: Tensor | None = None,
    watch: Watch | None = None,
) -> Tensor:
    """Rules that trade the expected error against gaps, one for each aim.

    Parameters
    ----------
    evidence : Evidence
    aims : Aims
        Weights [b, a * r]: for each of a groupings the r rates, beside the error.
    parents : sequence of a int64 Tensors of shape [k]
        For each grouping, the group that a cell of the crossing belongs to.
    settings : RuleSettings, optional
    class_weight : Tensor of shape [c], optional
        What an error on a row of each class costs; 1 by default.
    watch : callable, optional
        Called at each step with its number, what each rule comes to before it (expected error,
        then the gaps, of soft decisions: [b, 1 + a * r]), and the length of its gradient [b].

    Returns
    -------
    Tensor of shape [b, 1, k, c], or [b, c, k, c] for several classes
        Coefficients of the probabilities; see :func:`rule_scores`.

    Notes
    -----
    Of all decisions by the same inputs, those that minimise the error plus a weighted sum of group
    rates have this form: what a decision is worth for a row is what it is worth in each cell of
    group and label, times the probability that the row is in it. So the search among these loses
    nothing but what the models do not know. Rules are fitted by Adam, all of them together, on
    soft decisions that harden on the way. An entropy of the decisions, times their softness, is
    counted in: the likelier label then is the exact optimum where no gap counts.

    Examples
    --------
    >>> q = torch.tensor([[[0.4, 0.1], [0.2, 0.3]], [[0.1, 0.5], [0.1, 0.3]]])
    >>> known = Evidence(q, torch.tensor([0, 1]))
    >>> rules = fit_rules(known, Aims(("dp",), torch.tensor([[0.0]])), [torch.arange(2)])
    >>> rule_scores(rules, q) > 0  # no gap counts: the more likely label
    tensor([[False,  True]])
    """
    settings = settings or RuleSettings()
    plan = _Plan.of(evidence, aims, parents, settings, class_weight)
    _, k, c = evidence.probabilities.shape
    steps, moments = settings.steps, [torch.zeros(plan.shape_of_moves).to(plan.q)] * 2
    moves = torch.zeros_like(moments[0])
    for step in range(steps):
        done = step / steps
        softness = settings.softness[0] * (settings.softness[1] / settings.softness[0]) ** done
        gradient, losses = plan.gradient(moves, softness)
        if watch is not None:
            watch(step, losses, gradient.flatten(1).norm(dim=1))
        moments = [torch.lerp(moments[0], gradient, 0.1), torch.lerp(moments[1], gradient**2, 0.01)]
        mean, square = moments[0] / (1 - 0.9 ** (step + 1)), moments[1] / (1 - 0.99 ** (step + 1))
        rate = settings.learning_rate * min(1.0, 4 / k) * (1 - done)
        moves = moves - rate * mean / (square.sqrt() + _LEAST_SLOPE)
    return plan.rules(moves).unflatten(-1, (k, c))


def rule_scores(rules: Tensor, probabilities: Tensor) -> Tensor:
    """Scores of rules [b, j, k, c] for rows with probabilities [n, k, c].

    Returns
    -------
    Tensor of shape [b, n], or [b, n, c] for several classes
        A rule decides by the sign, or for the class with the highest score. The rule without any
        gap has twice the probability of the second class minus one, or that of each class.

    Examples
    --------
    >>> rules = torch.tensor([[[[-1.0, 1.0]]]])
    >>> rule_scores(rules, torch.tensor([[[0.25, 0.75]]]))
    tensor([[0.5000]])
    """
    scores = rules.flatten(2) @ probabilities.flatten(1).T
    return scores.squeeze(1) if scores.shape[1] == 1 else scores.mT


def given_groups(probabilities: Tensor, codes: Tensor) -> Tensor:
    """Probabilities [n, k, c] where groups [n] are known; -1: as they are.

    Examples
    --------
    >>> given_groups(torch.tensor([[[0.4, 0.1], [0.2, 0.3]]]), torch.tensor([1]))
    tensor([[[0.0000, 0.0000],
             [0.4000, 0.6000]]])
    """
    own = torch.zeros_like(probabilities[:, :, 0]).scatter_(1, codes.clamp_min(0)[:, None], 1.0)
    kept = probabilities * own.unsqueeze(2)
    known = kept / kept.sum((1, 2), keepdim=True).clamp_min(_TINY)
    return torch.where((codes >= 0)[:, None, None], known, probabilities)


@dataclass(frozen=True, eq=False)
class _Plan:
    """Everything that stays the same from step to step."""

    q: Tensor  # [n, k c]
    counted: Tensor  # [n, k c], weighted memberships
    totals: Tensor  # [k, c]
    costs: Tensor  # [j, n], of deciding for j
    most: Tensor  # [], the cost of deciding for none of them
    shares: Tensor  # [n]
    start: Tensor  # [j, k c]
    basis: Tensor  # [f, k c], directions scaled so that a unit moves every group alike
    own: Tensor  # [j, c], whether a label is the one decided for
    aims: Aims
    parents: Sequence[Tensor]

    @staticmethod
    def of(
        evidence: Evidence,
        aims: Aims,
        parents: Sequence[Tensor],
        settings: RuleSettings,
        class_weight: Tensor | None,
    ) -> _Plan:
        _, k, c = evidence.probabilities.shape
        q, shares = evidence.probabilities.flatten(1), evidence.shares().unsqueeze(1)
        counted = shares * evidence.memberships(settings.trusted_rows)
        totals = counted.sum(0).view(k, c)
        worth = torch.ones(c) if class_weight is None else class_weight
        each = torch.diag(worth.to(q))  # [c, c], what deciding for j spares at each label
        spared = each if c > 2 else each[1:] - each[:1]
        start = spared.repeat(1, k)
        return _Plan(
            q=q,
            counted=counted,
            totals=totals,
            costs=-(start @ (q * shares).T),
            most=_most_cost(q * shares, worth.to(q), k),
            shares=shares.squeeze(1),
            start=start,
            basis=_basis(evidence.probabilities, shares.squeeze(1)),
            own=(torch.eye(c) if c > 2 else torch.tensor([[0.0, 1.0]])).to(q),
            aims=Aims(aims.rates, aims.weights.to(q)),
            parents=parents,
        )

    @property
    def shape_of_moves(self) -> tuple[int, int, int]:
        return self.aims.n_members, len(self.start), len(self.basis)

    def rules(self, moves: Tensor) -> Tensor:
        """Coefficients [b, j, k c]."""
        return self.start + moves @ self.basis

    def gradient(self, moves: Tensor, softness: float) -> tuple[Tensor, Tensor]:
        """Slope of every rule's loss by its moves, and its error and gaps [b, 1 + a r]."""
        moves = moves.detach().requires_grad_()
        with torch.enable_grad():
            scores = self.rules(moves) @ self.q.T  # [b, j, n]
            is_binary = scores.shape[1] == 1
            hard = scores / softness
            decisions = torch.sigmoid(hard) if is_binary else torch.softmax(hard, 1)
        in_cells, gaps = self._worth_in_cells(decisions.detach())
        error = self.most + (decisions.detach() * self.costs).sum((1, 2))
        worth = in_cells @ self.counted.T
        worth += self.costs
        worth.addcmul_(scores.detach(), self.shares)  # the slope of the entropy
        slope = torch.autograd.grad(decisions, moves, worth)[0]
        return slope, torch.cat([error.unsqueeze(1), *gaps], 1)

    def _worth_in_cells(self, decisions: Tensor) -> tuple[Tensor, list[Tensor]]:
        """What a decision for j adds to the weighted gaps in each cell [b, j, k c]; the gaps."""
        k, c = self.totals.shape
        selected = (decisions @ self.counted).unflatten(-1, (k, c))
        worth, found = torch.zeros_like(selected), []
        r, j = len(self.aims.rates), decisions.shape[1]
        for place, parent in enumerate(self.parents):
            weights = self.aims.weights[:, place * r : (place + 1) * r] / j
            parts = [self._split(part, parent) for part in (selected, self.totals.expand(j, k, c))]
            masses = torch.cat([parts[0], parts[1].expand_as(parts[0])], -1)
            gaps, slopes = gaps_of_counts(masses, self.aims.rates, "rms", _LEAST_MASS)
            found.append(gaps.mean(1))
            table = (weights[:, None, :, None, None] * slopes).sum(2)[:, :, parent]  # [b, j, k, 4]
            own = self.own[:, None, :]
            worth += table[..., :1] * (1 - own) + table[..., 1:2] * own
        return worth.flatten(2), found

    def _split(self, masses: Tensor, parent: Tensor) -> Tensor:
        """Masses [..., j, k, c] as those of other labels and of the own one, by parent group."""
        own = self.own[:, None, :]
        pairs = torch.stack([(masses * (1 - own)).sum(-1), (masses * own).sum(-1)], -1)
        return GroupIndex(parent, None, int(parent.max()) + 1).sum(pairs.mT).mT


def _most_cost(mass: Tensor, class_weight: Tensor, k: int) -> Tensor:
    """What it costs to decide for the first of two classes, or for none of several."""
    labels = mass.sum(0).view(k, -1).sum(0) * class_weight
    return labels[1] if len(labels) == 2 else labels.sum()


def _basis(q: Tensor, shares: Tensor) -> Tensor:
    """A direction for each group within each label, and one for each group: [k c + k, k c].

    A unit of each moves the scores of the group's own rows by about as much as any other's: the
    better the models know a group, the less its coefficient has to move.
    """
    _, k, c = q.shape
    groups = q.sum(2, keepdim=True)
    in_labels = _known(q, q / q.sum(1, keepdim=True).clamp_min(_TINY), shares)
    in_all = _known(groups, groups, shares)
    spread = torch.eye(k).to(q).repeat_interleave(c, 1)
    return torch.cat([torch.diag(1 / in_labels.flatten()), spread / in_all])


def _known(mass: Tensor, guess: Tensor, shares: Tensor) -> Tensor:
    """Mean guess for the rows that belong: 1 where groups are known, their share if not at all."""
    belonging = torch.einsum("n,nkc->kc", shares, mass)
    return (
        torch.einsum("n,nkc->kc", shares, mass * guess)
        .div(belonging.clamp_min(_TINY))
        .clamp_min(1 / len(shares))
    )
