"""Active constraints bend the direction of a step."""

import pytest
import torch
from tests.optimizer.loops import losses, sgd
from torch import nn

from apfex.constraints import Constraint
from apfex.objectives import CrossEntropy, FairnessLoss
from apfex.optimizer import APFEx
from apfex.strategies import (
    AdaptiveWeighting,
    EqualWeights,
)


def test_constraints_bend_the_direction(setting):
    model, x, y, groups = setting
    parameters = list(model.parameters())
    optimizer = APFEx(torch.optim.SGD(parameters, lr=0.1), AdaptiveWeighting(), scales="none")
    for outputs in (False, True):
        scores = model(x)
        task = CrossEntropy()(scores, y)
        soft = FairnessLoss("dp", task_weight=0.0)(scores, y, groups)
        gradient = torch.autograd.grad(soft, parameters, retain_graph=True)
        constraint = Constraint(soft, bound=-1.0, gain=0.5)
        optimizer.backward([task], scores if outputs else None, [constraint])
        along = sum((p.grad * g).sum() for p, g in zip(parameters, gradient, strict=True))
        assert along >= constraint.required_descent - 1e-5
        optimizer.step()
    inactive = Constraint(torch.tensor(0.0), bound=1.0)
    optimizer.backward([CrossEntropy()(model(x), y)], None, [inactive])
    optimizer.step()
    assert optimizer.history is not None
    assert optimizer.history.step == 3


def test_contradicting_constraints_are_logged(setting):
    model, x, y, groups = setting
    optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.1), EqualWeights(), window=1)
    scores = model(x)
    mean = scores.mean()
    both = [Constraint(mean, bound=-9.0), Constraint(-mean, bound=-9.0)]
    optimizer.backward(losses(scores, y, groups), constraints=both)
    optimizer.step()
    assert optimizer.history is not None
    assert optimizer.history.to_frame()["slack"].iloc[0] > 1


def bad_constraints(model, x):
    soft = model(x).mean()
    other = torch.ones((), requires_grad=True) * 2
    return {
        "detached": ([Constraint(soft.detach(), -9.0)], ValueError, r"constraints\[0\]\.soft must"),
        "elsewhere": (
            [Constraint(soft, -9.0), Constraint(other, 0.0)],
            ValueError,
            r"constraints\[1\]",
        ),
        "no constraint": ([0.5], TypeError, r"constraints\[0\] must be a Constraint, got float"),
    }


@pytest.mark.parametrize("kind", ["detached", "elsewhere", "no constraint"])
def test_bad_constraints_are_named(batch, kind):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    optimizer = sgd(model)
    constraints, error, message = bad_constraints(model, x)[kind]
    with pytest.raises(error, match=message):
        optimizer.backward(losses(model(x), y, groups), constraints=constraints)
    assert optimizer.history is None


def test_a_single_constraint_needs_no_list(batch):
    x, y, _ = batch
    model = nn.Linear(3, 1)
    scores = model(x)
    sgd(model, EqualWeights()).backward(
        [CrossEntropy()(scores, y)], constraints=Constraint(scores.mean(), -9.0)
    )
    assert model.weight.grad is not None


def test_parameters_that_only_a_constraint_uses_follow_it(batch):
    x, y, _ = batch
    trunk, first, second = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
    model = nn.ModuleList([trunk, first, second])
    optimizer = sgd(model, EqualWeights())
    hidden = trunk(x)
    soft = second(hidden).square().mean() + 1
    optimizer.backward([CrossEntropy()(first(hidden), y)], constraints=Constraint(soft, 0.1))
    assert second.weight.grad is not None
    assert (second.weight.grad != 0).any()
