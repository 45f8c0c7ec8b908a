"""fairret: its norm loss of relative violations, added to the network's cross-entropy."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rivals.common import RATES, Method
from rivals.network import Step, cross_entropy, trained_by

STRENGTHS = (0.01, 0.025, 0.06, 0.15, 0.35, 0.8, 2.0, 5.0)


def fairret_step(problem: str, strength: float, n_groups: int) -> Step:
    from fairret import statistic
    from fairret.loss import NormLoss

    names = {"dp": "PositiveRate", "tpr": "TruePositiveRate", "fpr": "FalsePositiveRate"}
    losses = [(rate, NormLoss(getattr(statistic, names[rate])())) for rate in RATES[problem]]

    def step(_network: nn.Module, scores: Tensor, y: Tensor, group: Tensor) -> None:
        members = nn.functional.one_hot(group, n_groups).to(scores.dtype)
        total = cross_entropy(scores, y)
        for rate, loss in losses:
            labels = () if rate == "dp" else (y[:, None].to(scores.dtype),)
            total = torch.add(total, loss(scores[:, None], members, *labels), alpha=strength)
        total.backward()

    return step


METHODS: dict[str, Method] = {
    "fairret + network": trained_by(
        lambda problem, k: [fairret_step(problem, strength, k) for strength in STRENGTHS]
    )
}
