"""Synthetic tables with several attributes, whose crossing has from 4 to 10,000 cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from apfex.datasets import Dataset

LEVELS: dict[int, tuple[int, ...]] = {
    4: (2, 2),
    16: (2, 2, 2, 2),
    64: (2, 2, 2, 2, 2, 2),
    256: (2, 2, 2, 2, 4, 4),
    1_024: (2, 2, 2, 2, 2, 2, 4, 4),
    4_096: (2, 2, 2, 2, 4, 4, 4, 4),
    10_000: (2, 2, 2, 2, 5, 5, 5, 5),
}
"""Of each attribute, by the number of cells."""
SHARES = {2: (0.62, 0.38), 4: (0.45, 0.28, 0.17, 0.1), 5: (0.4, 0.26, 0.16, 0.11, 0.07)}
"""Of the levels of an attribute."""
ALONE, CROSSED = 0.7, 0.25
"""Log-odds of the label: a standard deviation by all attributes alone, and by each pair."""


def draw(cells: int, n: int, seed: int) -> Dataset:
    """Rows whose labels go with each attribute, and with three pairs beyond that.

    Inputs tell of the label, partly by way of the groups, and lean to the level of each attribute.
    """
    rng, levels = np.random.default_rng([seed, cells]), LEVELS[cells]
    codes = np.stack([rng.choice(size, n, p=SHARES[size]) for size in levels], 1)
    lean = _log_odds(codes, levels)
    y = (rng.random(n) < 1 / (1 + np.exp(0.2 - lean))).astype(np.int64)
    X = {"merit_1": rng.normal(y), "merit_2": rng.normal(0.8 * y + 0.3 * lean)}
    for place, (size, own) in enumerate(zip(levels, codes.T, strict=True)):
        if place % 3:
            X[f"proxy_{place}"] = rng.normal(own * (1.5 if place % 2 else 0.8))
        else:
            kept = rng.random(n) < 0.6
            X[f"proxy_{place}"] = np.where(kept, own, rng.integers(0, size, n)).astype(float)
    X["noise"] = rng.normal(size=n)
    names = [f"attribute_{place}" for place in range(len(levels))]
    return Dataset(
        X=pd.DataFrame(X),
        y=y,
        sensitive=pd.DataFrame(codes, columns=names).map("v{}".format),
        favorable_label=1,
        name=f"crossed-{cells}",
        description="Synthetic.",
        licence="None needed: made up.",
        citation="None needed: made up.",
    )


def _log_odds(codes: NDArray[np.int64], levels: tuple[int, ...]) -> NDArray[np.float64]:
    """What cells add to the log-odds of the label: the same for all rows that are drawn."""
    rng, r = np.random.default_rng([int(np.prod(levels)), 7]), len(levels)
    found = np.zeros(len(codes))
    for place, size in enumerate(levels):
        effects = rng.permutation(np.linspace(-1, 1, size))
        found += ALONE / np.sqrt(r) * effects[codes[:, place]]
    for first, second in dict.fromkeys([(0, 1), (r - 2, r - 1), (0, r - 1)]):
        signs = rng.choice([-1, 1], (levels[first], levels[second]))
        found += CROSSED * signs[codes[:, first], codes[:, second]]
    return found
