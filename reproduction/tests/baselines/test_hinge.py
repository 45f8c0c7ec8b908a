"""The convex solver against a generic one."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex_reproduction.baselines._hinge import minimise_hinges


def generic(A, signs, weights, ridge):
    """Minimum by an interior-point solver for cone programmes."""
    z = cp.Variable(A.shape[1])
    hinges = [weights[i] @ cp.pos(1 - cp.multiply(signs[i], A @ z)) for i in range(len(signs))]
    problem = cp.Problem(cp.Minimize(sum(hinges) + ridge * cp.sum_squares(z)))
    problem.solve(solver="CLARABEL")
    return problem.value


def random_problem(n, d, scale, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d)) * np.logspace(-scale, scale, d)
    signs = rng.choice([-1.0, 1.0], size=(2, n))
    return A, signs, rng.random((2, n)) * (rng.random((2, n)) < 0.8) / n


@pytest.mark.parametrize(
    ("n", "d", "scale", "ridge"),
    [(300, 8, 0, 1e-3), (300, 8, 2, 1e-3), (60, 100, 1, 1e-4), (300, 5, 0, 10.0), (5, 1, 0, 1e-2)],
)
def test_the_minimum_is_that_of_a_generic_solver(n, d, scale, ridge):
    problem = random_problem(n, d, scale, seed=n + d)
    found = minimise_hinges(*problem, ridge, tolerance=1e-7)
    assert found.value == pytest.approx(generic(*problem, ridge), abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(2, 60),
    st.integers(1, 20),
    st.floats(0, 2),
    st.sampled_from([1e-5, 1e-3, 0.1]),
    st.integers(0, 10**6),
)
def test_the_certificate_holds(n, d, scale, ridge, seed):
    """The value is that of z, and no z does better by more than the gap."""
    A, signs, weights = random_problem(n, d, scale, seed)
    if not weights.any():
        return
    found = minimise_hinges(A, signs, weights, ridge, tolerance=1e-5)

    def value(z):
        return (weights * np.maximum(1 - signs * (A @ z), 0)).sum() + ridge * z @ z

    assert found.value == pytest.approx(value(found.z))
    assert -1e-9 <= found.gap <= 1e-5
    rng = np.random.default_rng(seed)
    for size in (1e-4, 1e-2, 1.0):
        other = found.z + size * rng.normal(size=(20, d)) / (1 + np.abs(A).max(0))
        assert min(value(z) for z in other) >= found.value - found.gap - 1e-12


@settings(max_examples=25, deadline=None)
@given(st.integers(20, 60), st.integers(1, 10), st.floats(0, 1), st.integers(0, 10**6))
def test_a_start_elsewhere_ends_at_the_same_point(n, d, scale, seed):
    A, signs, weights = random_problem(n, d, scale, seed)
    rng = np.random.default_rng(seed)
    cold = minimise_hinges(A, signs, weights, 1e-2, tolerance=1e-7)
    warm = minimise_hinges(A, signs, weights, 1e-2, tolerance=1e-7, start=rng.normal(size=d))
    assert warm.value == pytest.approx(cold.value, abs=2e-7)
    # each is within sqrt(tolerance / ridge) of the minimiser, as the ridge bends the objective
    np.testing.assert_allclose(warm.z, cold.z, atol=2 * (1e-7 / 1e-2) ** 0.5)
