"""fairret: its norm loss of relative violations, added to the network's cross-entropy."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rivals.common import GAPS, Method, Part, Point, Step, cross_entropy, network_points

STRENGTHS = (0.01, 0.04, 0.15, 0.6, 2.5)


def fairret_step(gap: str, strength: float, n_groups: int) -> Step:
    from fairret.loss import NormLoss
    from fairret.statistic import PositiveRate, TruePositiveRate

    loss = NormLoss({"dp": PositiveRate, "tpr": TruePositiveRate}[gap]())

    def step(_network: nn.Module, scores: Tensor, y: Tensor, group: Tensor) -> None:
        members = nn.functional.one_hot(group, n_groups).to(scores.dtype)
        labels = () if gap == "dp" else (y[:, None].to(scores.dtype),)
        penalty = loss(scores[:, None], members, *labels)
        torch.add(cross_entropy(scores, y), penalty, alpha=strength).backward()

    return step


def fairret(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
    steps = [
        (f"{gap} strength {s}", fairret_step(gap, s, train.n_groups))
        for gap in GAPS
        for s in STRENGTHS
    ]
    return network_points(train, validation, test, seed, steps)


METHODS: dict[str, Method] = {"fairret + network": fairret}
