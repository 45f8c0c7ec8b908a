"""The paper's theory, as far as it holds; each of these can fail."""

import pytest
import torch
from tests.generators import awkward_jacobians, gramian_of

from apfex.optimizer import APFEx
from apfex.solvers import min_norm
from apfex.strategies import MGDA, ConeProjection


def omega_squared(jacobian: torch.Tensor) -> float:
    gramian = gramian_of(jacobian)
    weights = min_norm(gramian)
    return (weights @ gramian @ weights).item()


@pytest.mark.parametrize("m", [2, 3, 5, 8])
@pytest.mark.parametrize("seed", range(8))
def test_theorem_1_stationary_exactly_when_zero_is_in_the_hull(m, seed):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(m, 10, generator=generator, dtype=torch.float64)
    weights = torch.rand(m, generator=generator, dtype=torch.float64)
    weights = weights / weights.sum()
    centred = rows - weights @ rows  # 0 = sum of weights times rows: stationary
    assert omega_squared(centred) < 1e-14  # rounding of inner products of this size
    # A hyperplane strictly separates from 0 whatever lies on one side of it: not stationary.
    normal = torch.zeros(10, dtype=torch.float64)
    normal[0] = 1.0
    aside = rows.clone()
    aside[:, 0] = 0.1 + rows[:, 0].abs()
    assert (aside @ normal > 0).all()
    assert omega_squared(aside) >= 0.01


@pytest.mark.parametrize("m", [2, 3, 5, 8])
def test_the_direction_descends_by_at_least_omega_squared(m):
    """<g_k, g> >= omega^2 for every k: the KKT conditions, read as a promise of descent."""
    for kind, jacobian in awkward_jacobians(m).items():
        gramian = gramian_of(jacobian)
        weights = min_norm(gramian)
        products, value = gramian @ weights, weights @ gramian @ weights
        rounding = 1e-7 * value + 1e-13 * (
            gramian.abs() @ weights + weights @ gramian.abs() @ weights
        )
        assert (products >= value - rounding).all(), kind


def quadratics(m: int, seed: int, size: int = 6):
    """Convex quadratics with Hessians between 0.1 and L = 2, and their minima 0."""
    generator = torch.Generator().manual_seed(seed)
    curvatures = 0.1 + 1.9 * torch.rand(m, size, generator=generator, dtype=torch.float64)
    curvatures[:, 0] = 2.0
    centres = 3 * torch.randn(m, size, generator=generator, dtype=torch.float64)
    return lambda w: (curvatures * (w - centres).square()).sum(1) / 2


def run_with_step_one_over_smoothness(m: int, seed: int, steps: int = 100, climbs: bool = False):
    """Losses [T + 1, m] along T steps, omega_t^2 [T], and the bound on the smallest so far [T].

    The bound: min_t omega_t^2 <= 2 L max_k (L_k(0) - L_k*) / T, with step 1 / L, for every T.
    """
    smoothness = 2.0
    losses = quadratics(m, seed)
    w = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    inner = torch.optim.SGD([w], lr=1 / smoothness)
    optimizer = APFEx(inner, MGDA(), scales="none", trace=True)
    path, omegas = [losses(w).detach()], []
    for _ in range(steps):
        optimizer.backward(losses(w))
        assert w.grad is not None
        omegas.append(w.grad.square().sum())
        if climbs:
            w.grad.neg_()
        optimizer.step()
        path.append(losses(w).detach())
    bound = 2 * smoothness * path[0].max() / torch.arange(1, steps + 1)
    return torch.stack(path), torch.stack(omegas), bound


@pytest.mark.parametrize("m", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_bound_on_the_smallest_omega(m, seed):
    path, omegas, bound = run_with_step_one_over_smoothness(m, seed)
    smallest = omegas.cummin(0).values
    assert (smallest <= bound).all()
    assert (path[1:] <= path[:-1] + 1e-12).all()  # no objective ever rises
    assert smallest[-1] < 1e-3 * path[0].max()


@pytest.mark.parametrize("m", [2, 3, 5])
def test_a_wrong_sign_would_break_the_bound(m):
    """Shows that the test above can fail; not every start breaks the bound within 60 steps."""
    path, omegas, bound = run_with_step_one_over_smoothness(m, 2, 60, climbs=True)
    assert path.isfinite().all()
    assert not (omegas.cummin(0).values <= bound).all()
    assert not (path[1:] <= path[:-1] + 1e-12).all()


@pytest.mark.parametrize("seed", range(5))
def test_descent_in_parameter_space_of_a_network(seed):
    """A small step along what PCP puts into .grad raises no loss of a real network."""
    from tests.test_gradients import losses_of, make_model

    torch.manual_seed(seed)
    model, x = make_model("mlp")
    optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=1e-4), ConeProjection(), scales="none")
    for _ in range(5):
        before = losses_of(model(x))
        optimizer.backward(before)
        optimizer.step()
        after = losses_of(model(x))
        assert (after <= before + 1e-12).all()
