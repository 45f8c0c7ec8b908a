"""The weight sweep that one writes by hand: cross-entropy plus lambda times the batch's gap."""

from __future__ import annotations

from torch import Tensor, nn

from rivals.common import RATES, Method
from rivals.network import Step, cross_entropy, gap_loss, trained_by

LAMBDAS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def weighted_step(problem: str, weight: float) -> Step:
    losses = [gap_loss(rate) for rate in RATES[problem]]

    def step(_network: nn.Module, scores: Tensor, y: Tensor, group: Tensor) -> None:
        gaps = sum(loss(scores, y, group) for loss in losses)
        (cross_entropy(scores, y) + weight * gaps).backward()

    return step


METHODS: dict[str, Method] = {
    "weight sweep of the network": trained_by(
        lambda problem, _: [weighted_step(problem, weight) for weight in LAMBDAS]
    )
}
