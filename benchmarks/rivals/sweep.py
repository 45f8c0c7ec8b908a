"""The weight sweep that one writes by hand: cross-entropy plus lambda times the batch's gap."""

from __future__ import annotations

from torch import Tensor, nn

from rivals.common import (
    GAPS,
    Method,
    Part,
    Point,
    Step,
    cross_entropy,
    gap_loss,
    network_points,
)

LAMBDAS = (0.1, 0.3, 1.0, 3.0, 10.0)


def weighted_step(gap: str, weight: float) -> Step:
    loss = gap_loss(gap)

    def step(_network: nn.Module, scores: Tensor, y: Tensor, group: Tensor) -> None:
        (cross_entropy(scores, y) + weight * loss(scores, y, group)).backward()

    return step


def weight_sweep(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
    steps = [(f"{gap} lambda {w}", weighted_step(gap, w)) for gap in GAPS for w in LAMBDAS]
    return network_points(train, validation, test, seed, steps)


METHODS: dict[str, Method] = {"weight sweep of the network": weight_sweep}
