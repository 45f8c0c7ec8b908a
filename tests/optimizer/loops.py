"""What tests of the optimizer share: losses, strategies, and whether two states are the same."""

import copy

import torch
from torch import nn

from apfex.objectives import CrossEntropy, FairnessLoss
from apfex.optimizer import APFEx
from apfex.strategies import (
    AdaptiveSwitch,
    AdaptiveWeighting,
    ConeProjection,
    SetSampling,
    UPGrad,
)

STRATEGIES = [AdaptiveSwitch(), AdaptiveWeighting(), ConeProjection(), SetSampling(), UPGrad()]


def snapshot(model: nn.Module, optimizer: APFEx) -> dict:
    return copy.deepcopy(
        {
            "model": model.state_dict(),
            "gradients": [p.grad for p in model.parameters()],
            "optimizer": optimizer.state_dict(),
        }
    )


def same(a, b) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a.nan_to_num(7), b.nan_to_num(7))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def losses(scores: torch.Tensor, y: torch.Tensor, groups: torch.Tensor) -> list[torch.Tensor]:
    return [
        CrossEntropy()(scores, y),
        FairnessLoss("dp")(scores, y, groups),
        FairnessLoss("tpr")(scores, y, groups),
    ]


def sgd(model: nn.Module, strategy=None, **more) -> APFEx:
    return APFEx(torch.optim.SGD(model.parameters(), lr=0.1), strategy, **more)
