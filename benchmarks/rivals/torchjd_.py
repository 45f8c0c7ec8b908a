"""TorchJD: the network's two losses, cross-entropy and a gap, combined by Jacobian descent.

Each aggregator ends at one place; what it offers to move that place makes its grid: UPGrad's
preference vector, PCD's guaranteed progress, and for MGDA, which has neither, the gap's scale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
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

SCALES = (0.1, 0.3, 1.0, 3.0, 10.0)
TAUS = (0.02, 0.05, 0.2, 0.5, 1.0)


def jacobian_step(gap: str, aggregator: Any, scale: float = 1.0) -> Step:
    from torchjd.autojac import backward, jac_to_grad

    loss = gap_loss(gap)

    def step(network: nn.Module, scores: Tensor, y: Tensor, group: Tensor) -> None:
        backward(torch.stack([cross_entropy(scores, y), scale * loss(scores, y, group)]))
        jac_to_grad(network.parameters(), aggregator)

    return step


def _upgrad() -> list[tuple[str, Step]]:
    from torchjd.aggregation import UPGrad

    return [
        (f"{gap} preference {s}", jacobian_step(gap, UPGrad(torch.tensor([1.0, s]))))
        for gap in GAPS
        for s in SCALES
    ]


def _mgda() -> list[tuple[str, Step]]:
    from torchjd.aggregation import MGDA

    return [(f"{gap} scale {s}", jacobian_step(gap, MGDA(), s)) for gap in GAPS for s in SCALES]


def _pcd() -> list[tuple[str, Step]]:
    from torchjd.aggregation import PCD

    return [(f"{gap} tau {t}", jacobian_step(gap, PCD(t))) for gap in GAPS for t in TAUS]


def _method(make_steps: Callable[[], list[tuple[str, Step]]]) -> Method:
    def method(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
        return network_points(train, validation, test, seed, make_steps())

    return method


METHODS: dict[str, Method] = {
    "TorchJD UPGrad": _method(_upgrad),
    "TorchJD MGDA": _method(_mgda),
    "TorchJD PCD": _method(_pcd),
}
