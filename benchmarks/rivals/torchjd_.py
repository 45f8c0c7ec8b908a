"""TorchJD: the network's losses, cross-entropy and the gaps, combined by Jacobian descent.

Each aggregator ends at one place; what it offers to move that place makes its ladder: UPGrad's
preference vector, PCD's guaranteed progress, and for MGDA, which has neither, the gap's scale.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from rivals.common import RATES, Method
from rivals.network import Step, cross_entropy, gap_loss, trained_by

SCALES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
TAUS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)


def jacobian_step(problem: str, aggregator: Any, scale: float = 1.0) -> Step:
    from torchjd.autojac import backward, jac_to_grad

    losses = [gap_loss(rate) for rate in RATES[problem]]

    def step(network: nn.Module, scores: Tensor, y: Tensor, group: Tensor) -> None:
        gaps = [scale * loss(scores, y, group) for loss in losses]
        backward(torch.stack([cross_entropy(scores, y), *gaps]))
        jac_to_grad(network.parameters(), aggregator)

    return step


def upgrad_steps(problem: str, _n_groups: int) -> list[Step]:
    from torchjd.aggregation import UPGrad

    preferences = (torch.tensor([1.0, *[s] * len(RATES[problem])]) for s in SCALES)
    return [jacobian_step(problem, UPGrad(preference)) for preference in preferences]


def mgda_steps(problem: str, _n_groups: int) -> list[Step]:
    from torchjd.aggregation import MGDA

    return [jacobian_step(problem, MGDA(), scale) for scale in SCALES]


def pcd_steps(problem: str, _n_groups: int) -> list[Step]:
    from torchjd.aggregation import PCD

    return [jacobian_step(problem, PCD(tau)) for tau in TAUS]


METHODS: dict[str, Method] = {
    "TorchJD UPGrad": trained_by(upgrad_steps),
    "TorchJD MGDA": trained_by(mgda_steps),
    "TorchJD PCD": trained_by(pcd_steps),
}
