"""A decision rule on top of a joint model: what every point of the front is."""

from __future__ import annotations

from typing import ClassVar, final

import torch
from torch import Tensor, nn

from apfex.models import JointModel


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
        return joint if groups is None else self.joint.given(joint, groups)


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
