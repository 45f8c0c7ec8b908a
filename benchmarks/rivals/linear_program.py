"""Least expected error under bounds on gaps, by a linear program on P(group, label | x)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, linprog
from scipy.sparse import csr_array, hstack

LEAST_MASS = 1e-9
"""Groups count from this expected number of rows on."""


@dataclass(frozen=True, eq=False)
class FairRule:
    """The best rule: decide 1 where the sum over (group, label) of coefficient times q is positive.

    Attributes
    ----------
    coefficients
        [k, 2], from the multipliers of the bounds.
    error
        Expected error of the best decisions, which may be drawn at random on a few rows.
    shares
        [n]: probability of deciding 1, of those decisions.
    """

    coefficients: NDArray[np.float64]
    error: float
    shares: NDArray[np.float64]

    def decide(self, q: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.einsum("nky,ky->n", q, self.coefficients) > 0


def fair_rule(q: NDArray[np.float64], bounds: Mapping[str, float]) -> FairRule:
    """Solve for the probabilities q [n, k, 2] and for bounds on the gaps of "dp", "tpr" or "fpr".

    Notes
    -----
    With d_i the share of row i that is decided 1, minimise sum_i d_i (q_i(., 0) - q_i(., 1)) / n
    subject to ``|rate_g(d) - m| <= bound / 2`` for all groups g, where m is free for each rate, and
    rate_g is linear in d. With multiplier l_g of ``rate_g``, d_i is 1 where the reduced cost is
    negative: that is the rule. Each bound is one row with a slack between -bound/2 and bound/2.
    """
    n, k, _ = q.shape
    costs = (q[:, :, 0] - q[:, :, 1]).sum(1) / n
    names, cells, rows = [], [], []
    for name in bounds:
        part = {"dp": [0, 1], "tpr": [1], "fpr": [0]}[name]
        mass = q[:, :, part].sum((0, 2))
        for group in np.flatnonzero(mass > LEAST_MASS):
            weights = np.zeros((k, 2))
            weights[group, part] = 1 / mass[group]
            names.append(name)
            cells.append(weights)
            rows.append(q[:, group, part].sum(1) / mass[group])
    solution = _solve(costs, np.array(rows), names, bounds)
    prices = np.tensordot(solution.eqlin.marginals, np.array(cells), axes=1)  # [k, 2]
    own = np.array([-1.0, 1.0]) / n
    error = float(solution.fun) + float(q[:, :, 1].sum()) / n
    return FairRule(own + prices, error, solution.x[:n])


def _solve(
    costs: NDArray[np.float64],
    rows: NDArray[np.float64],
    names: list[str],
    bounds: Mapping[str, float],
) -> OptimizeResult:
    """Variables: decisions, a slack for each row, and the middle of each rate."""
    slacks = -np.eye(len(rows))
    middles = -np.array([[float(name == other) for other in bounds] for name in names])
    table = hstack([csr_array(rows), csr_array(slacks), csr_array(middles)])
    half = np.array([bounds[name] / 2 for name in names])
    low = np.concatenate([np.zeros(len(costs)), -half, np.full(len(bounds), -np.inf)])
    high = np.concatenate([np.ones(len(costs)), half, np.full(len(bounds), np.inf)])
    for solver in ("highs-ds", "highs-ipm"):  # on a few programs the first one gives up
        solution = linprog(
            np.concatenate([costs, np.zeros(len(rows) + len(bounds))]),
            A_eq=table,
            b_eq=np.zeros(len(rows)),
            bounds=np.stack([low, high], 1),
            method=solver,
        )
        if solution.status == 0:
            return solution
    raise RuntimeError(f"The linear program was not solved: {solution.message}")
