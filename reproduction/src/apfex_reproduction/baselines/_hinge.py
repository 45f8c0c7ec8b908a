"""Sums of hinges with a ridge, minimised exactly: the convex problem behind SearchFair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.linalg

_MOST_STEPS = 200
"""Newton steps in all; about thirty are needed."""
_SHRINK = 10.0
"""Of mu."""
_NEAR = 1e-3
"""What mu starts at near a known minimiser, as a share of what it starts at without one."""


@final
@dataclass(frozen=True, eq=False)
class HingeSolution:
    """Minimiser z [d], the value there, and a bound on how far that is above the minimum."""

    z: np.ndarray
    value: float
    gap: float


def minimise_hinges(
    A: np.ndarray,
    signs: np.ndarray,
    weights: np.ndarray,
    ridge: float,
    tolerance: float = 1e-5,
    start: np.ndarray | None = None,
) -> HingeSolution:
    """Minimise ``sum_ij weights[i, j] (1 - signs[i, j] (A z)_j)_+ + ridge |z|^2``.

    Parameters
    ----------
    A : array of shape [n, d]
    signs : array of shape [h, n]
        1 or -1; several hinges may look at the same row.
    weights : array of shape [h, n]
        Non-negative.
    ridge : float
        Positive.
    tolerance : float
        Largest duality gap.
    start : array of shape [d], optional
        The minimiser of a similar problem. It saves more than half of the steps, and ends at the
        same point: all starts lead onto the path of minimisers that mu parametrises.

    Notes
    -----
    A hinge ``c (r)_+`` is the smallest ``c u`` with ``u >= 0`` and ``u >= r``. With the barrier
    ``- mu log u - mu log(u - r)`` the best u has a closed form and a smooth value, so z alone
    remains, for Newton's method; mu falls until the duality gap is within the tolerance. The
    multipliers ``alpha = mu / (u - r)``, moved along with Newton's step, are a feasible dual point
    as soon as the decrement is small. Each step costs one d x d system.
    """
    used = weights > 0
    rows = np.broadcast_to(np.arange(A.shape[0]), weights.shape)[used]
    t, c = signs[used].astype(np.float64), weights[used]
    problem = _Problem(A, rows, t, c, ridge)
    z = np.zeros(A.shape[1]) if start is None else start
    mu = float(c.sum()) / (2 * len(c)) * (1.0 if start is None else _NEAR)
    gap = float("inf")
    for _ in range(_MOST_STEPS):
        state = problem.at(z, mu)
        newton = problem.newton(z, state)
        if newton.decrement > mu / 2:
            z = z + _shortened(problem, z, newton.step, state.value, mu) * newton.step
            continue
        # So near to the path of minimisers the step is safe, and its multipliers are feasible.
        z = z + newton.step
        solution = problem.certify(z, newton.alpha)
        gap, mu = solution.gap, mu / _SHRINK
        if gap <= tolerance:
            return solution
    raise RuntimeError(
        f"SearchFair's solver must reach a duality gap of {tolerance} in {_MOST_STEPS} steps, got "
        f"{gap:.3g}; raise beta, or scale the inputs."
    )


@dataclass(frozen=True, eq=False)
class _State:
    value: float
    alpha: np.ndarray
    curvature: np.ndarray


@dataclass(frozen=True, eq=False)
class _Newton:
    """A step, half of what it promises to gain, and the multipliers after it."""

    step: np.ndarray
    decrement: float
    alpha: np.ndarray


@dataclass(frozen=True, eq=False)
class _Problem:
    A: np.ndarray
    rows: np.ndarray
    t: np.ndarray
    c: np.ndarray
    ridge: float

    def at(self, z: np.ndarray, mu: float) -> _State:
        """Smooth value, minus its slope by the margins, and its curvature by them."""
        r = 1 - self.t * (self.A @ z)[self.rows]
        # c = mu / u + mu / (u - r) has one root above max(r, 0). Differences of close numbers are
        # avoided: (root + r) (root - r) = 4 m^2.
        m = mu / self.c
        root = np.sqrt(r * r + 4 * m * m)
        large = root + np.abs(r)
        small = 4 * m * m / large
        u = m + np.where(r >= 0, large, small) / 2
        over = m + np.where(r >= 0, small, large) / 2  # u - r
        alpha = mu / over  # between 0 and c
        barrier = self.c @ u - mu * (np.log(u).sum() + np.log(over).sum())
        curvature = 1 / (over * over / mu + u * u / mu)
        return _State(float(barrier + self.ridge * z @ z), alpha, curvature)

    def newton(self, z: np.ndarray, state: _State) -> _Newton:
        """Newton's step from z."""
        n, d = self.A.shape
        pull = np.bincount(self.rows, self.t * state.alpha, minlength=n)
        gradient = 2 * self.ridge * z - self.A.T @ pull
        bend = np.bincount(self.rows, state.curvature, minlength=n)
        scaled = self.A * np.sqrt(bend)[:, None]
        hessian = scaled.T @ scaled
        hessian[np.diag_indices(d)] += 2 * self.ridge
        step = -scipy.linalg.cho_solve(scipy.linalg.cho_factor(hessian, overwrite_a=True), gradient)
        moved = state.curvature * self.t * (self.A @ step)[self.rows]
        return _Newton(step, float(-gradient @ step) / 2, state.alpha - moved)

    def certify(self, z: np.ndarray, alpha: np.ndarray) -> HingeSolution:
        """The value at z, and its distance from the dual value of alpha."""
        r = 1 - self.t * (self.A @ z)[self.rows]
        value = self.c @ np.maximum(r, 0) + self.ridge * z @ z
        alpha = np.clip(alpha, 0, self.c)
        pull = self.A.T @ np.bincount(self.rows, self.t * alpha, minlength=len(self.A))
        dual = alpha.sum() - pull @ pull / (4 * self.ridge)
        return HingeSolution(z, float(value), float(value - dual))


def _shortened(
    problem: _Problem, z: np.ndarray, step: np.ndarray, value: float, mu: float
) -> float:
    """Halve the step until the smooth value falls."""
    length = 1.0
    while length > 1e-10 and not problem.at(z + length * step, mu).value < value:
        length /= 2
    return length
