"""Searches over the unit square: every point of a grid, or evolutionary ones by pymoo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Evaluate = Callable[[np.ndarray], np.ndarray]
"""Variables [e, 2] in [0, 1] in, values [e, 3] out, all to be minimised."""


_GRID = (100, 50)
"""Points along each variable."""


def exhaustive(evaluate: Evaluate, seed: int) -> None:  # noqa: ARG001 - the seam's signature
    """Every point of the grid, at once."""
    axes = [np.linspace(0, 1, size) for size in _GRID]
    evaluate(np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2))


def nsga2(evaluate: Evaluate, seed: int) -> None:
    """NSGA-II with simulated binary crossover and polynomial mutation: 100 x 50 looks."""
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.operators.crossover.sbx import SBX
    from pymoo.operators.mutation.pm import PM

    algorithm = NSGA2(pop_size=100, crossover=SBX(), mutation=PM())
    _run(_problem(3, evaluate), algorithm, 50, seed)


def pso(evaluate: Evaluate, seed: int) -> None:
    """A particle swarm on the distance from the ideal point: 30 particles, 50 iterations."""
    from pymoo.algorithms.soo.nonconvex.pso import PSO

    algorithm = PSO(pop_size=30, w=0.9, c1=0.5, c2=0.3, adaptive=False)
    _run(_problem(1, lambda x: np.linalg.norm(evaluate(x), axis=1)), algorithm, 50, seed)


def _run(problem: Any, algorithm: Any, n_generations: int, seed: int) -> None:
    from pymoo.optimize import minimize

    minimize(problem, algorithm, ("n_gen", n_generations), seed=seed % 2**31, verbose=False)


def _problem(n_objectives: int, evaluate: Evaluate) -> Any:
    from pymoo.core.problem import Problem

    class Square(Problem):
        def __init__(self) -> None:
            super().__init__(n_var=2, n_obj=n_objectives, xl=0.0, xu=1.0)

        def _evaluate(self, x: np.ndarray, out: dict, *_: Any, **__: Any) -> None:
            out["F"] = evaluate(x)

    return Square()
