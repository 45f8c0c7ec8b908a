"""Every objective in every form: slopes of small changes, number formats and devices.

Kinks are avoided by construction: probabilities keep off thresholds and corners of steps, and
with random rows no two groups tie.
"""

import itertools

import pytest
import torch

from apfex.objectives import (
    Aggregate,
    CrossEntropy,
    DPLoss,
    FairnessLoss,
    MulticlassCCRLoss,
    SquaredError,
    TPRLoss,
)
from apfex.objectives._fairness import Relaxation
from apfex.rates import RATES

N = 15
RELAXATIONS: list[Relaxation] = ["tanh", "ccr", "identity"]
AGGREGATES: list[Aggregate] = ["smooth_mean", "mean", "max", "smooth_max", "rms"]
FAIR = [
    FairnessLoss(*one[:2], 0.1, one[2]) for one in itertools.product(RATES, RELAXATIONS, AGGREGATES)
]
TWO_GROUPS = [
    loss(beta=0.3, form=form, steepness=steepness)
    for loss in (DPLoss, TPRLoss)
    for form in ("plain", "masked")
    for steepness in (None, 2.0)
]
BINARY = [CrossEntropy(), SquaredError(), *FAIR, *TWO_GROUPS]
MULTICLASS = [
    CrossEntropy(),
    SquaredError(),
    *(
        FairnessLoss(rate, aggregate=form)
        for rate in RATES
        for form in ("smooth_mean", "smooth_max")
    ),
    MulticlassCCRLoss("dp"),
    MulticlassCCRLoss("tpr", threshold=0.4, width=0.3),
]


def rows(loss, classes: int, weighted: bool) -> tuple:
    """Scores that keep .03 off 1/4, 1/2 and 3/4, labels, groups and weights."""
    generator = torch.Generator().manual_seed(classes)
    quarters = torch.arange(N) % 4
    p = quarters / 4 + 0.03 + 0.19 * torch.rand(N, generator=generator, dtype=torch.float64)
    scores = torch.logit(p)
    if classes > 2:
        scores = torch.randn(N, classes, generator=generator, dtype=torch.float64)
    y = torch.arange(N) // 2 % classes
    groups = torch.arange(N) * 2 % (2 if isinstance(loss, (DPLoss, TPRLoss)) else 3)
    if isinstance(loss, (DPLoss, TPRLoss)):
        groups = torch.arange(N) // 4 % 2
    weight = torch.rand(N, generator=generator, dtype=torch.float64) + 0.5 if weighted else None
    return scores, y, groups, weight


def value_and_slopes(loss, scores, *others):
    scores = scores.clone().requires_grad_()
    value = loss(scores, *others)
    return value.detach(), torch.autograd.grad(value, scores)[0]


CASES = [(loss, 2) for loss in BINARY] + [(loss, 3) for loss in MULTICLASS]
every_objective = pytest.mark.parametrize(("loss", "classes"), CASES, ids=str)


@every_objective
def test_gradients_are_those_of_small_changes(loss, classes):
    for weighted in (False, True):
        scores, *others = rows(loss, classes, weighted)
        found = value_and_slopes(loss, scores, *others)[1]
        assert torch.autograd.gradcheck(
            lambda s, others=others: loss(s, *others), (scores.requires_grad_(),), fast_mode=True
        )
        assert found.abs().max() > 1e-4


@every_objective
def test_single_precision_is_double_precision_to_rounding(loss, classes):
    scores, y, groups, weight = rows(loss, classes, weighted=True)
    exact = value_and_slopes(loss, scores, y, groups, weight)
    single = value_and_slopes(loss, scores.float(), y, groups, weight.float())
    for one, other in zip(single, exact, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one.double(), other, rtol=2e-5, atol=2e-6)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_device_gives_what_the_processor_gives(dtype):
    for loss, classes in CASES:
        scores, y, groups, weight = rows(loss, classes, weighted=True)
        batch = (scores.to(dtype), y, groups, weight.to(dtype))
        here = value_and_slopes(loss, *batch)
        there = value_and_slopes(loss, *(one.cuda() for one in batch))
        for one, other in zip(there, here, strict=True):
            assert one.is_cuda
            torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-6, msg=str(loss))
