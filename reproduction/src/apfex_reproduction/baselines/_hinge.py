"""Sums of hinges with a ridge, minimised exactly: the convex problem behind SearchFair."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import scipy.linalg

_MOST_STEPS = 500
"""Newton steps in all; about ten are needed from a start nearby, thirty without one."""
_WIDEST, _NEAR = 1.0, 0.1
"""Width of the smoothed kinks at first, without a start and with one."""
_SLOPE_LEFT = 0.1
"""Of the slope along a step, what may be left where it ends."""


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
    products: np.ndarray | None = None,
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
        The minimiser of a similar problem. It saves more than half of the steps.
    products : array of shape [n, n], optional
        ``A A'``, where it is at hand: it helps if d is of the size of n.

    Notes
    -----
    A hinge ``(r)_+`` is smoothed to ``max_a a r - w a^2 / 2`` over a in [0, 1], which is quadratic
    for r between 0 and the width w and has the slope ``a = clip(r / w, 0, 1)``. Newton's method
    with an exact line search ends after a few steps, as the pieces are quadratic, and only the rows
    inside the smoothed kink bend: a few percent of them. The slopes are a dual point whose distance
    from the value is ``sum c ((r)_+ - a r) + |gradient|^2 / (4 ridge)``, so w falls until that is
    within the tolerance.
    """
    used = weights > 0
    rows = np.broadcast_to(np.arange(A.shape[0]), weights.shape)[used]
    t, c = signs[used].astype(np.float64), weights[used]
    problem = _Problem(A, rows, t, c, ridge, products)
    z = np.zeros(A.shape[1]) if start is None else start
    point = problem.at(z, A @ z, _WIDEST if start is None else _NEAR)
    for _ in range(_MOST_STEPS):
        if point.gap <= tolerance:
            return HingeSolution(point.z, point.value, point.gap)
        if point.unsettled <= max(tolerance / 10, point.smoothing / 10):
            point = problem.narrow(point, _narrower(point, tolerance))
        point = problem.improve(point)
    raise RuntimeError(
        f"SearchFair's solver must reach a duality gap of {tolerance} in {_MOST_STEPS} steps, got "
        f"{point.gap:.3g}; raise beta, or scale the inputs."
    )


@dataclass(frozen=True, eq=False)
class _Point:
    """Where we are: scores A z, hinges r, and slopes a of the hinges smoothed by a width."""

    z: np.ndarray
    scores: np.ndarray
    width: float
    r: np.ndarray
    a: np.ndarray
    gradient: np.ndarray
    value: float
    smoothed: float
    """The value with smoothed hinges, which Newton's method minimises."""
    smoothing: float
    """What the smoothing adds to the duality gap."""
    unsettled: float
    """What the gradient adds to it."""

    @property
    def gap(self) -> float:
        return self.smoothing + self.unsettled

    @property
    def is_bent(self) -> np.ndarray:
        """Which hinges are inside the smoothed kink."""
        return (self.a > 0) & (self.a < 1)


def _narrower(point: _Point, tolerance: float) -> float:
    """A width at which the smoothing may be small enough: it costs at most in proportion to w^2."""
    share = np.sqrt(tolerance / (2 * max(point.smoothing, tolerance)))
    return point.width * float(np.clip(share, 0.05, 0.5))


@dataclass(frozen=True, eq=False)
class _Problem:
    A: np.ndarray
    rows: np.ndarray
    t: np.ndarray
    c: np.ndarray
    ridge: float
    products: np.ndarray | None

    @cached_property
    def pulls(self) -> np.ndarray:
        """Weight of each hinge, with its sign."""
        return self.t * self.c

    def at(self, z: np.ndarray, scores: np.ndarray, width: float) -> _Point:
        """The smoothed problem at z."""
        r = 1 - self.t * scores[self.rows]
        a = np.clip(r / width, 0, 1)
        pull = np.bincount(self.rows, self.pulls * a, minlength=len(self.A))
        gradient = 2 * self.ridge * z - self.A.T @ pull
        hinges = np.maximum(r, 0)
        value = float(self.c @ hinges + self.ridge * z @ z)
        smoothing = max(float(self.c @ (hinges - a * r)), 0.0)
        smoothed = value - smoothing - width / 2 * float(self.c @ (a * a))
        unsettled = float(gradient @ gradient) / (4 * self.ridge)
        return _Point(z, scores, width, r, a, gradient, value, smoothed, smoothing, unsettled)

    def narrow(self, point: _Point, width: float) -> _Point:
        """A smaller width, and a first guess: that the rows that bend stay inside the kink.

        Their slopes are then nearly what they were, so their hinges shrink with the width. From
        the same z instead most of them would have to find back into it one by one.
        """
        here = self.at(point.z, point.scores, width)
        inside = point.is_bent
        past = np.where(inside, here.r / width - here.a, 0.0)  # slopes of kinks without ends
        pull = np.bincount(self.rows, self.pulls * past, minlength=len(self.A))
        step = -self._solve(here, inside, here.gradient - self.A.T @ pull)
        guess = self.at(here.z + step, here.scores + self.A @ step, width)
        return guess if guess.smoothed < here.smoothed else here

    def improve(self, point: _Point) -> _Point:
        """One step of Newton's method."""
        step = -self._solve(point, point.is_bent, point.gradient)
        change = self.A @ step
        length = self._length(point, step, -self.t * change[self.rows])
        return self.at(point.z + length * step, point.scores + length * change, point.width)

    def _solve(self, point: _Point, inside: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """A gradient over the Hessian ``2 ridge I + A_S' C A_S / width``, S the hinges inside."""
        bend = np.bincount(self.rows[inside], self.c[inside], minlength=len(self.A)) / point.width
        bent = np.flatnonzero(bend)
        n, d = len(bent), len(point.z)
        A, root = self.A[bent], np.sqrt(bend[bent])
        if n >= d:
            scaled = A * root[:, None]
            return _solve_positive(scaled.T @ scaled, 2 * self.ridge, gradient)
        # Fewer rows than columns: by Woodbury's identity a system of n equations.
        crossed = A @ A.T if self.products is None else self.products[np.ix_(bent, bent)]
        moved = root * (A @ gradient)
        inner = _solve_positive(crossed * (root[:, None] * root), 2 * self.ridge, moved)
        return (gradient - A.T @ (root * inner)) / (2 * self.ridge)

    def _length(self, point: _Point, step: np.ndarray, moved: np.ndarray) -> float:
        """How far to go along a step: to where the slope along it has nearly vanished."""
        inner, square = float(point.z @ step), float(step @ step)
        weighted = self.c * moved

        def slope(length: float) -> float:
            a = np.clip((point.r + length * moved) / point.width, 0, 1)
            return float(weighted @ a) + 2 * self.ridge * (inner + length * square)

        enough = _SLOPE_LEFT * abs(slope(0.0))
        low, high = 0.0, 1.0
        while (found := slope(high)) < -enough and high < 2.0**20:
            low, high = high, 2 * high
        if found <= enough:
            return high
        for _ in range(30):
            middle = (low + high) / 2
            found = slope(middle)
            if abs(found) <= enough:
                return middle
            low, high = (middle, high) if found < 0 else (low, middle)
        return high if low == 0 else low


def _solve_positive(matrix: np.ndarray, ridge: float, right: np.ndarray) -> np.ndarray:
    """Solve ``(matrix + ridge I) x = right``; overwrites the positive semi-definite matrix."""
    matrix[np.diag_indices(len(matrix))] += ridge
    factor = scipy.linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
    return scipy.linalg.cho_solve(factor, right, check_finite=False)
