from dataclasses import FrozenInstanceError

import pytest
import torch
from scipy.optimize import minimize

from apfex.constraints import Constraint, constraint_step


def bend(direction: torch.Tensor, rows: torch.Tensor, required: torch.Tensor):
    stacked = torch.cat([direction.unsqueeze(0), rows])
    step = constraint_step(stacked @ stacked.T, required)
    return direction + step.multipliers @ rows, step


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("j", [1, 2, 4])
def test_the_nearest_direction_that_meets_the_constraints(seed, j):
    generator = torch.Generator().manual_seed(seed)
    direction = torch.randn(8, generator=generator, dtype=torch.float64)
    rows = torch.randn(j, 8, generator=generator, dtype=torch.float64)
    required = torch.rand(j, generator=generator, dtype=torch.float64)
    bent, step = bend(direction, rows, required)
    assert (rows @ bent >= required - 1e-6).all()
    assert step.slack == 0
    oracle = minimize(
        lambda g: ((g - direction.numpy()) ** 2).sum() / 2,
        direction.numpy(),
        jac=lambda g: g - direction.numpy(),
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda g: rows.numpy() @ g - required.numpy(),
            "jac": lambda _: rows.numpy(),
        },
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert bent.numpy() == pytest.approx(oracle.x, abs=1e-5)


def test_a_direction_that_meets_them_is_left_alone():
    direction = torch.tensor([1.0, 1.0], dtype=torch.float64)
    bent, step = bend(direction, torch.eye(2, dtype=torch.float64), torch.zeros(2).double())
    assert torch.equal(bent, direction)
    assert step.slack == 0


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_contradicting_constraints_get_slack(scale):
    row = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64) * scale
    direction = torch.tensor([0.3, 1.0], dtype=torch.float64)
    bent, step = bend(direction, row, scale * torch.tensor([0.2, 0.2], dtype=torch.float64))
    assert bent.isfinite().all()
    assert step.slack.item() == pytest.approx(0.2 * scale, rel=1e-3)
    assert bent[0].item() == pytest.approx(0.0, abs=1e-3)
    assert bent[1] == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_slack_is_the_worst_shortfall(seed):
    """Of more constraints than a direction can meet."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(6, 2, generator=generator, dtype=torch.float64)
    rows[0] = -rows[1]
    required = torch.rand(6, generator=generator, dtype=torch.float64) + 0.1
    bent, step = bend(torch.randn(2, generator=generator, dtype=torch.float64), rows, required)
    short = required - rows @ bent
    assert short.max() > 0
    assert short.min() < short.max() / 2
    assert step.slack.item() == pytest.approx(short.max().item(), rel=1e-4)


def test_a_constraint_without_gradient_is_slack_and_harmless():
    rows = torch.zeros(1, 2, dtype=torch.float64)
    direction = torch.tensor([1.0, 2.0], dtype=torch.float64)
    bent, step = bend(direction, rows, torch.tensor([0.5], dtype=torch.float64))
    assert torch.equal(bent, direction)
    assert step.slack == 0.5


def test_members_are_independent():
    generator = torch.Generator().manual_seed(0)
    stacked = torch.randn(5, 3, 6, generator=generator, dtype=torch.float64)
    required = torch.rand(5, 2, generator=generator, dtype=torch.float64)
    together = constraint_step(stacked @ stacked.mT, required)
    for i in range(5):
        alone = constraint_step(stacked[i] @ stacked[i].T, required[i])
        torch.testing.assert_close(together.multipliers[i], alone.multipliers)


def test_activity_follows_the_measured_value():
    soft = torch.tensor(0.02)
    assert not Constraint(soft, bound=0.03).is_active
    assert Constraint(soft, bound=0.03, margin=0.02).is_active
    hard = Constraint(soft, bound=0.03, value=0.05, gain=2.0)
    assert hard.is_active
    assert hard.required_descent == pytest.approx(0.04)
    assert Constraint(soft, bound=0.03, margin=0.02).required_descent == 0
    met = Constraint(soft, bound=0.01, value=0.0)
    assert not met.is_active
    assert met.excess == -0.01


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"soft": torch.zeros(2), "bound": 0.1}, "soft must be a scalar"),
        ({"soft": torch.zeros(()), "bound": float("nan")}, "bound must be finite"),
        ({"soft": torch.tensor(torch.nan), "bound": 0.1, "value": 0.5}, "soft must be finite"),
        ({"soft": torch.zeros(()), "bound": 0.1, "value": float("nan")}, "value must be finite"),
        ({"soft": torch.zeros(()), "bound": None}, "bound must be finite, got None"),
        ({"soft": torch.zeros(()), "bound": 0.1, "gain": float("inf")}, "gain must be finite"),
        ({"soft": torch.zeros(()), "bound": 0.1, "margin": -1}, "margin must be at least 0"),
        ({"soft": torch.zeros(()), "bound": 0.1, "gain": 0}, "gain must be positive"),
    ],
)
def test_bad_constraints(arguments, message):
    with pytest.raises(ValueError, match=message):
        Constraint(**arguments)


def test_a_constraint_without_gradient_gets_no_weight_of_its_own():
    stacked = torch.tensor([[1.0, 2.0], [0.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    step = constraint_step(stacked @ stacked.T, torch.tensor([0.5, 0.5], dtype=torch.float64))
    assert step.multipliers[0] == 0
    assert step.multipliers[1] == pytest.approx(1.5)


def test_rounding_of_a_large_demand_is_no_slack_beside_a_small_one():
    rows = torch.tensor([[1e4, 0.0], [0.0, 1.0]], dtype=torch.float64)
    _, step = bend(torch.zeros(2).double(), rows, torch.tensor([1e6, 1e-3]).double())
    assert step.slack == 0


def test_results_are_frozen_and_compared_by_identity():
    """Tensors have no single truth value."""
    steps = [constraint_step(torch.eye(2), torch.ones(1)) for _ in range(2)]
    assert steps[0] != steps[1]
    with pytest.raises(FrozenInstanceError):
        steps[0].slack = torch.zeros(())  # type: ignore[misc]
