"""Decision rules: every point of the front from the same joint model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor, nn

from apfex.models._adam import Adam
from apfex.models._joint_model import JointModel, OutOfFoldPredictions, given_groups
from apfex.models._penalized_loss import GapWeights
from apfex.objectives import gaps_of_counts
from apfex.rates import GroupIndex

_LEARNING_RATE = 0.04
"""For up to four groups; less for more, as a score is a sum over all of them."""
_LEAST_SLOPE = 1e-3
"""Slopes far below this are rounding, which Adam would blow up."""
_MIN_SHARE = 1e-9
"""Groups count from this share of all rows on."""
_TINY = 1e-30


@final
class RuleModel(nn.Module):
    """A decision rule on top of a joint model, with logits as its output.

    Parameters
    ----------
    joint : JointModel
    rule : Tensor of shape [1, k, c], or [c, k, c]
        A rule with coefficients beyond one is scaled down, so that no score leaves [-1, 1].

    Examples
    --------
    >>> joint = JointModel([nn.Linear(3, 4)], [1.0], (2, 2))
    >>> model = RuleModel(joint, torch.tensor([[[-1.0, 1.0], [-1.0, 1.0]]]))
    >>> x = torch.randn(5, 3)
    >>> torch.allclose(torch.sigmoid(model(x)).squeeze(1), joint(x)[:, :, 1].sum(1))
    True
    """

    SHARPNESS: ClassVar[float] = 50.0
    """Of the softplus that keeps scores of several classes positive, and in their order."""
    SMALLEST: ClassVar[float] = 1e-6
    """Logits of two classes stay within those of this probability and of one minus it."""
    rule: Tensor

    def __init__(self, joint: JointModel, rule: Tensor) -> None:
        super().__init__()
        self.joint = joint
        self.register_buffer("rule", rule / rule.abs().max().clamp_min(1.0))

    def forward(self, x: Tensor, groups: Tensor | None = None) -> Tensor:
        """Return logits [n, 1], or [n, c], with the signs, or the order, of the rule's scores.

        A rule with thresholds per group needs ``groups`` [n], the groups of the rows; -1 where a
        group is not known.
        """
        scores = self._joint(x, groups).flatten(1) @ self.rule.flatten(1).T
        if scores.shape[1] == 1:
            return torch.logit((1 + scores) / 2, eps=self.SMALLEST)
        return torch.nn.functional.softplus(scores, beta=self.SHARPNESS).log()

    def label_probabilities(self, x: Tensor, groups: Tensor | None = None) -> Tensor:
        """Return probabilities of the label [n, c], which the rule decides by, but not alone."""
        return self._joint(x, groups).sum(1)

    def _joint(self, x: Tensor, groups: Tensor | None) -> Tensor:
        joint = self.joint(x)
        return joint if groups is None else given_groups(joint, groups)


def fit_rules(
    predictions: OutOfFoldPredictions,
    weights: GapWeights,
    parents: Sequence[Tensor],
    *,
    costs: Tensor | None = None,
    selection_rate: float | None = None,
    steps: int = 60,
    trusted_rows: float = 200.0,
    softness: tuple[float, float] = (0.2, 0.02),
    on_step: Callable[[int, Tensor, Tensor], None] | None = None,
) -> Tensor:
    """Fit rules that trade the expected error against gaps, one for each row of weights.

    Parameters
    ----------
    predictions : OutOfFoldPredictions
    weights : GapWeights
        Weights [b, a * r]: for each of a groupings the r rates, beside the error.
    parents : sequence of a int64 Tensors of shape [k]
        For each grouping, the group that a group of the crossing belongs to.
    costs : Tensor of shape [c, c], optional
        What it costs to decide for the class of a column where the label is that of the row; 1 for
        every error by default.
    selection_rate : float, optional
        Share of the rows that each rule must decide for the second of two classes.
    steps : int
    trusted_rows : float
        See :meth:`OutOfFoldPredictions.memberships`: with so many rows of a group and label, their
        own labels count as much as the predictions of all rows.
    softness : pair of float
        Width of the soft decision at the beginning and at the end, in probabilities.
    on_step : callable, optional
        Called before each step with its number, the expected error and the gaps of each rule's soft
        decisions [b, 1 + a * r], and the length of each rule's gradient [b].

    Returns
    -------
    Tensor of shape [b, 1, k, c], or [b, c, k, c] for several classes
        Coefficients of the probabilities; see :func:`rule_scores`.

    Notes
    -----
    Of all decisions by the same inputs, those that minimise the error plus a weighted sum of group
    rates have this form: what a decision is worth for a row is the sum, over groups and labels, of
    what it is worth there, times the probability that the row belongs there. So a search among
    rules loses nothing but what the joint model does not know. Rules are fitted by Adam, all of
    them together, on soft decisions that harden on the way. An entropy of the decisions, times
    their softness, is added: without gaps the exact optimum is then the more likely label.

    Examples
    --------
    >>> q = torch.tensor([[[0.4, 0.1], [0.2, 0.3]], [[0.1, 0.5], [0.1, 0.3]]])
    >>> predictions = OutOfFoldPredictions(q, torch.tensor([0, 1]))
    >>> no_gap = GapWeights(("dp",), torch.tensor([[0.0]]))
    >>> rules = fit_rules(predictions, no_gap, [torch.arange(2)])
    >>> rule_scores(rules, q) > 0  # the more likely label
    tensor([[False,  True]])
    """
    problem = _Problem.of(predictions, weights, parents, trusted_rows, costs, selection_rate)
    _, k, c = predictions.probabilities.shape
    moves = torch.zeros(problem.shape_of_moves).to(problem.q)
    optimizer = Adam([moves], betas=(0.9, 0.99), epsilon=_LEAST_SLOPE, fused=False)
    for step in range(steps):
        done = step / steps
        gradient, losses = problem.gradient(
            moves, softness[0] * (softness[1] / softness[0]) ** done
        )
        if on_step is not None:
            on_step(step, losses, gradient.flatten(1).norm(dim=1))
        optimizer.step([gradient], _LEARNING_RATE * min(1.0, 4 / k) * (1 - done))
    return problem.at_rate(problem.rules(moves)).unflatten(-1, (k, c))


def rules_at_rate(rules: Tensor, probabilities: Tensor, shares: Tensor, rate: float) -> Tensor:
    """Move rules of two classes so that each decides for a share of the rows.

    Parameters
    ----------
    rules : Tensor of shape [b, 1, k, c]
    probabilities : Tensor of shape [n, k, c]
    shares : Tensor of shape [n]
        Weights of the rows, summing to one.
    rate : float

    Returns
    -------
    Tensor of the shape of the rules
        As probabilities sum to one, the same number added to all coefficients moves all scores.

    Examples
    --------
    >>> q = torch.tensor([[[0.9, 0.1]], [[0.8, 0.2]], [[0.7, 0.3]], [[0.6, 0.4]]])
    >>> rules = rules_at_rate(torch.tensor([[[[-1.0, 1.0]]]]), q, torch.full((4,), 0.25), 0.5)
    >>> rule_scores(rules, q) > 0
    tensor([[False, False,  True,  True]])
    """
    scores = rule_scores(rules, probabilities)
    ranked, order = scores.sort(1, descending=True)
    n_chosen = (shares[order].cumsum(1) <= rate + 1e-6).sum(1, keepdim=True)
    last_in = ranked.gather(1, (n_chosen - 1).clamp_min(0))
    first_out = ranked.gather(1, n_chosen.clamp_max(scores.shape[1] - 1))
    return rules - ((last_in + first_out) / 2).view(-1, 1, 1, 1)


def rule_scores(rules: Tensor, probabilities: Tensor) -> Tensor:
    """Score rows with probabilities [n, k, c] by rules [b, j, k, c].

    Returns
    -------
    Tensor of shape [b, n], or [b, n, c] for several classes
        A rule decides by the sign, or for the class with the highest score. The scores of the rule
        without gaps are twice the probability of the second class minus one, or the probability of
        each class.

    Examples
    --------
    >>> rules = torch.tensor([[[[-1.0, 1.0]]]])
    >>> rule_scores(rules, torch.tensor([[[0.25, 0.75]]]))
    tensor([[0.5000]])
    """
    scores = rules.flatten(2) @ probabilities.flatten(1).T
    return scores.squeeze(1) if scores.shape[1] == 1 else scores.mT


@dataclass(frozen=True, eq=False)
class _Problem:
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
    weights: GapWeights
    parents: Sequence[Tensor]
    rate: float | None

    @staticmethod
    def of(
        predictions: OutOfFoldPredictions,
        weights: GapWeights,
        parents: Sequence[Tensor],
        trusted_rows: float,
        costs: Tensor | None,
        rate: float | None,
    ) -> _Problem:
        _, k, c = predictions.probabilities.shape
        q, shares = predictions.probabilities.flatten(1), predictions.shares().unsqueeze(1)
        counted = shares * predictions.memberships(trusted_rows)
        costs = (1 - torch.eye(c)).to(q) if costs is None else costs.to(q)
        # [j, c], what deciding for j spares at each label: against the worst, or the first of two
        most = costs.amax(1) if c > 2 else costs[:, 0]
        spared = most - costs.T[-1 if c == 2 else 0 :]
        start = spared.repeat(1, k)
        return _Problem(
            q=q,
            counted=counted,
            totals=counted.sum(0).view(k, c),
            costs=-(start @ (q * shares).T),
            most=(q * shares).sum(0) @ most.repeat(k),
            shares=shares.squeeze(1),
            start=start,
            basis=_basis(predictions.probabilities, shares.squeeze(1)),
            own=(torch.eye(c) if c > 2 else torch.tensor([[0.0, 1.0]])).to(q),
            weights=GapWeights(weights.rates, weights.weights.to(q)),
            parents=parents,
            rate=rate,
        )

    @property
    def shape_of_moves(self) -> tuple[int, int, int]:
        return self.weights.n_members, len(self.start), len(self.basis)

    def rules(self, moves: Tensor) -> Tensor:
        """Coefficients [b, j, k c]."""
        return self.start + moves @ self.basis

    def at_rate(self, rules: Tensor) -> Tensor:
        """Rules that decide for as many rows as they must; a constant moves all scores alike."""
        if self.rate is None:
            return rules
        k, c = self.totals.shape
        each = rules.unflatten(-1, (k, c))
        moved = rules_at_rate(each, self.q.unflatten(-1, (k, c)), self.shares, self.rate)
        return moved.flatten(2)

    def gradient(self, moves: Tensor, softness: float) -> tuple[Tensor, Tensor]:
        """Gradient of every rule's loss by its moves, and its error and gaps [b, 1 + a r]."""
        moves = moves.detach().requires_grad_()
        with torch.enable_grad():
            rules = self.rules(moves)
            rules = rules + (self.at_rate(rules) - rules).detach()
            scores = rules @ self.q.T  # [b, j, n]
            is_binary = scores.shape[1] == 1
            hard = scores / softness
            decisions = torch.sigmoid(hard) if is_binary else torch.softmax(hard, 1)
        by_target, gaps = self._gap_gradient(decisions.detach())
        error = self.most + (decisions.detach() * self.costs).sum((1, 2))
        by_decision = by_target @ self.counted.T
        by_decision += self.costs
        by_decision.addcmul_(scores.detach(), self.shares)  # the slope of the entropy
        if self.rate is not None:  # what moves all scores alike is taken back by the rate
            steep = decisions.detach() * (1 - decisions.detach())
            mean = (by_decision * steep).sum(2, keepdim=True) / (self.shares * steep).sum(
                2, keepdim=True
            ).clamp_min(_TINY)
            by_decision -= mean * self.shares
        slope = torch.autograd.grad(decisions, moves, by_decision)[0]
        return slope, torch.cat([error.unsqueeze(1), *gaps], 1)

    def _gap_gradient(self, decisions: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Weighted gaps by the decisions for j, for each group and label [b, j, k c]; the gaps."""
        k, c = self.totals.shape
        selected = (decisions @ self.counted).unflatten(-1, (k, c))
        total, found = torch.zeros_like(selected), []
        r, j = len(self.weights.rates), decisions.shape[1]
        own = self.own[:, None, :]
        for place, parent in enumerate(self.parents):
            weights = self.weights.weights[:, place * r : (place + 1) * r] / j
            parts = [self._split(part, parent) for part in (selected, self.totals.expand(j, k, c))]
            counts = torch.cat([parts[0], parts[1].expand_as(parts[0])], -1)
            gaps, slopes = gaps_of_counts(counts, self.weights.rates, "rms", _MIN_SHARE)
            found.append(gaps.mean(1))
            table = (weights[:, None, :, None, None] * slopes).sum(2)[:, :, parent]  # [b, j, k, 4]
            total += table[..., :1] * (1 - own) + table[..., 1:2] * own
        return total.flatten(2), found

    def _split(self, counts: Tensor, parent: Tensor) -> Tensor:
        """Counts [..., j, k, c] as those of other labels and of the own one, by parent group."""
        own = self.own[:, None, :]
        pairs = torch.stack([(counts * (1 - own)).sum(-1), (counts * own).sum(-1)], -1)
        return GroupIndex(parent, None, int(parent.max()) + 1).sum(pairs.mT).mT


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
