"""The search of SearchFair: a convex problem for each weight of the bound, and a bisection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from apfex_reproduction.baselines._hinge import minimise_hinges
from apfex_reproduction.baselines._inputs import Rows
from apfex_reproduction.baselines._kernels import Span

_TOLERANCE = 1e-4
"""Duality gap of each convex problem, whose values are of the order of 1."""


@final
@dataclass(frozen=True, eq=False)
class GapProblem:
    """Signs of labels and groups, and the weights of both hinges [2, n]."""

    labels: np.ndarray
    groups: np.ndarray
    weights: np.ndarray

    @staticmethod
    def of(rows: Rows, notion: str) -> GapProblem:
        """The problem of rows with one two-valued attribute."""
        labels = 2.0 * rows.y - 1
        (attribute,) = rows.attributes
        groups = 2.0 * attribute.codes - 1
        counted = rows.weight * ((rows.y == 1) if notion == "tpr" else 1.0)
        sizes = np.bincount(attribute.codes, counted, minlength=2)
        if not sizes.all():
            raise ValueError(
                f"sensitive_features must have rows of both values {list(attribute.names)} that "
                f"count for {notion!r}, got {sizes.tolist()} in weight; use 'dp', or more rows."
            )
        bound = counted / sizes[attribute.codes]
        return GapProblem(labels, groups, np.stack([rows.weight / rows.weight.sum(), bound]))

    def gap(self, scores: np.ndarray) -> float:
        """Rate of the second group minus that of the first."""
        return float((self.groups * self.weights[1]) @ (scores > 0))


@final
@dataclass(frozen=True, eq=False)
class Model:
    """The solution for one lam, and its gap on the training rows."""

    z: np.ndarray
    lam: float
    gap: float
    value: float
    duality_gap: float

    def figures(self) -> dict[str, float]:
        """All but the solution itself."""
        return {
            "lam": self.lam,
            "gap": self.gap,
            "value": self.value,
            "duality_gap": self.duality_gap,
        }


def search(
    span: Span, problem: GapProblem, beta: float, tolerance: float, max_steps: int
) -> tuple[Model, list[Model]]:
    """Solve lam = 0 and 1, then bisect on the sign of the gap."""
    tried = [solve(span, problem, beta, 0.0, 1.0)]
    side = 1.0 if tried[0].gap > 0 else -1.0
    if abs(tried[0].gap) >= tolerance:
        tried.append(solve(span, problem, beta, 1.0, side, tried[0].z))
        low, high = 0.0, 1.0
        if tried[1].gap * tried[0].gap < 0:
            while len(tried) < max_steps + 2 and min(abs(m.gap) for m in tried) >= tolerance:
                tried.append(solve(span, problem, beta, (low + high) / 2, side, tried[-1].z))
                too_little = tried[-1].gap * tried[0].gap > 0
                low, high = (tried[-1].lam, high) if too_little else (low, tried[-1].lam)
    return min(tried, key=lambda model: abs(model.gap)), tried


def solve(
    span: Span,
    problem: GapProblem,
    beta: float,
    lam: float,
    side: float,
    start: np.ndarray | None = None,
) -> Model:
    """The model of one lam; ``side`` 1 bounds the gap from above, -1 from below."""
    signs = np.stack([problem.labels, -side * problem.groups])
    weights = problem.weights * np.array([[1.0], [lam]])
    solution = minimise_hinges(span.basis, signs, weights, beta, _TOLERANCE, start, span.products)
    gap = problem.gap(span.basis @ solution.z)
    return Model(solution.z, lam, gap, solution.value, solution.gap)
