"""Kernel machines in the span of their kernel: scores ``basis @ z`` with ``|z|`` that of ``a``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, final

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

_CHUNK = 4096
"""Rows whose kernel is held at once."""


class Span(Protocol):
    """Functions ``f(x) = sum_j a_j k(x, x_j)``, each by the z of its shortest a."""

    @property
    def basis(self) -> np.ndarray:
        """[n, r]: ``basis @ z`` are the scores of the training rows."""
        ...

    @property
    def gamma(self) -> float:
        """Of the RBF kernel; NaN for the linear one."""
        ...

    @property
    def products(self) -> np.ndarray | None:
        """``basis @ basis.T``, where r is of the size of n."""
        ...

    def scores(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Scores of rows [n, d]."""
        ...


@final
@dataclass(frozen=True, eq=False)
class LinearSpan:
    """The kernel ``<x, x'> + 1``: functions of d + 1 coefficients.

    With points P (a one appended to each) ``f(x) = <x, P'a>``. From ``P = U D V'`` the shortest a
    of a function is ``U z``, and its coefficients are ``V D z``.
    """

    basis: np.ndarray
    gamma: float
    _directions: np.ndarray

    @staticmethod
    def of(x: np.ndarray, points: np.ndarray) -> LinearSpan:
        """The span over points, looked at from rows x [n, d]."""
        extended = _with_one(points)
        squares, vectors = np.linalg.eigh(extended.T @ extended)
        kept = squares > 1e-10 * squares[-1]
        directions = vectors[:, kept] * np.sqrt(squares[kept])
        return LinearSpan(_with_one(x) @ directions, float("nan"), directions)

    @property
    def products(self) -> None:
        """There are many more rows than directions."""
        return None

    def scores(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Scores of rows [n, d]."""
        return _with_one(x) @ (self._directions @ z)


@final
@dataclass(frozen=True, eq=False)
class RBFSpan:
    """The kernel ``exp(-gamma |x - x'|^2)``, from the singular vectors of the kernel matrix."""

    basis: np.ndarray
    gamma: float
    _points: np.ndarray
    _directions: np.ndarray
    _singular: np.ndarray

    @staticmethod
    def of(x: np.ndarray, points: np.ndarray, gamma: float) -> RBFSpan:
        """The whole span over points."""
        kernel = rbf_kernel(x, points, gamma=gamma)
        left, singular, right = np.linalg.svd(kernel, full_matrices=False)
        return RBFSpan(left * singular, gamma, points, right.T, singular)

    def cut(self, least: float) -> RBFSpan:
        """The same without the directions of singular values below ``least``."""
        kept = self._singular > min(least, self._singular[0] / 2)
        basis, directions = self.basis[:, kept], self._directions[:, kept]
        return RBFSpan(basis, self.gamma, self._points, directions, self._singular[kept])

    @property
    def products(self) -> np.ndarray:
        """``basis @ basis.T``."""
        return self._products

    @cached_property
    def _products(self) -> np.ndarray:
        return self.basis @ self.basis.T

    def scores(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Scores of rows [n, d]."""
        coefficients = self._directions @ z
        parts = [
            rbf_kernel(x[start : start + _CHUNK], self._points, gamma=self.gamma) @ coefficients
            for start in range(0, len(x), _CHUNK)
        ]
        return np.concatenate(parts)


def _with_one(x: np.ndarray) -> np.ndarray:
    return np.hstack([x, np.ones((len(x), 1))])
