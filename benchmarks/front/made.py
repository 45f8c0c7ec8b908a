"""Synthetic tables whose P(group, label | x) is known, and with it the best front there is."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rivals.linear_program import fair_rule

from apfex.datasets import Dataset

N_TRAIN, N_TEST, N_NOISE = 10_000, 6_000, 2
TEST_SEED = 20_000
BOUNDS = np.linspace(0.0, 0.5, 41) ** 2 * 2
"""Of the best front, denser where gaps are small."""
PAIRS = np.linspace(0.0, 0.5, 10) ** 2 * 2


@dataclass(frozen=True, eq=False)
class Mixture:
    """Every group and label has its share, and normal inputs of unit variance around its mean."""

    shares: NDArray[np.float64]  # [k, 2]
    means: NDArray[np.float64]  # [k, 2, d]

    def draw(self, n: int, seed: int) -> Dataset:
        """Rows with two more inputs that tell nothing."""
        rng = np.random.default_rng(seed)
        cells = rng.choice(self.shares.size, n, p=self.shares.ravel())
        means = self.means.reshape(self.shares.size, -1)[cells]
        x = np.hstack([rng.normal(means), rng.normal(size=(n, N_NOISE))])
        groups = np.array([f"g{code}" for code in range(len(self.shares))])[cells // 2]
        return Dataset(
            X=pd.DataFrame(x, columns=[f"x{place}" for place in range(x.shape[1])]),
            y=cells % 2,
            sensitive=pd.DataFrame({"group": groups}),
            favorable_label=1,
            name="mixture",
            description="Synthetic.",
            licence="None needed: made up.",
            citation="None needed: made up.",
        )

    def probabilities(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(group, label | x) [n, k, 2]."""
        known = x[:, None, None, : self.means.shape[2]]
        logs = np.log(self.shares) - 0.5 * ((known - self.means) ** 2).sum(3)
        found = np.exp(logs - logs.max((1, 2), keepdims=True))
        return found / found.sum((1, 2), keepdims=True)


def _mixture(sizes: list[float], rates: list[float], lean: float, shift: float) -> Mixture:
    """Two inputs tell of the label, one of them favours groups; k more lean to a group each."""
    k = len(sizes)
    rate = np.array(rates)
    shares = np.array(sizes)[:, None] * np.stack([1 - rate, rate], 1)
    means = np.zeros((k, 2, 2 + k))
    means[:, 1, :2] = 1.2, 0.8
    means[:, :, 0] += shift * np.linspace(-1, 1, k)[:, None]
    means[:, :, 2:] = lean * np.eye(k)[:, None, :]
    return Mixture(shares, means)


MIXTURES = {
    "made-even": _mixture([0.25] * 4, [0.3, 0.6, 0.6, 0.3], lean=1.2, shift=0.0),
    "made-uneven": _mixture(
        [0.35, 0.25, 0.15, 0.1, 0.1, 0.05], [0.5, 0.4, 0.3, 0.3, 0.2, 0.15], lean=1.5, shift=0.4
    ),
}


@functools.cache
def best_values(name: str) -> dict[str, NDArray[np.float64]]:
    """For each problem the error and gaps [points, 1 + gaps] of the best rules on the test rows."""
    q = MIXTURES[name].probabilities(MIXTURES[name].draw(N_TEST, TEST_SEED).X.to_numpy())
    limits: dict[str, list[dict[str, float]]] = {
        "dp": [{"dp": bound} for bound in BOUNDS],
        "tpr": [{"tpr": bound} for bound in BOUNDS],
        "eo": [{"tpr": bound, "fpr": bound} for bound in BOUNDS],
        "both": [{"dp": a, "tpr": b} for a, b in product(PAIRS, PAIRS)],
    }
    found = {}
    for problem, asked in limits.items():
        bounds = [list(one.values())[: 2 if problem == "both" else 1] for one in asked]
        errors = [[fair_rule(q, one).error] for one in asked]
        found[problem] = np.hstack([np.array(errors), np.array(bounds)])
    return found
