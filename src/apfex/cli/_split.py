"""Rows that are held back, so that the report is on rows that nothing was fitted to."""

from __future__ import annotations

import numpy as np

from apfex.cli._errors import CommandError


def hold_back(
    y: np.ndarray, codes: np.ndarray, fraction: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit, and rows to report on.

    Rows are shuffled, put in order of group and label, and every so-maniest one is held back:
    every group and label has its share in both parts, up to one row.

    Parameters
    ----------
    y, codes : int arrays of shape [n]
        Label and group of each row.
    fraction : float
        Share that is held back.
    """
    if not 0 < fraction < 1:
        raise CommandError(f"--test-fraction must lie between 0 and 1, got {fraction:g}.")
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(y))
    order = shuffled[np.lexsort((y[shuffled], codes[shuffled]))]
    steps = np.floor(np.arange(len(y) + 1) * fraction + rng.random())
    held = steps[1:] > steps[:-1]
    fit, test = np.sort(order[~held]), np.sort(order[held])
    for part, name in ((fit, "left to fit"), (test, "held back")):
        if len(np.unique(y[part])) < 2:
            raise CommandError(
                f"{len(y):,} rows are too few: the {len(part):,} {name} must have both labels."
            )
    return fit, test
