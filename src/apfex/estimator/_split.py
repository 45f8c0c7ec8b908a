"""Which rows learn and which choose."""

from __future__ import annotations

import numpy as np

from apfex.estimator._inputs import Rows
from apfex.tables import stratified_sample


def strata(rows: Rows) -> np.ndarray:
    """Number of the label within the group of each row."""
    codes = np.zeros(len(rows.y), dtype=np.int64) if rows.crossing is None else rows.crossing.codes
    return codes * len(rows.classes) + rows.y


def split(rows: Rows, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and validation rows, even within each label and group.

    A label within a group has rows in both parts if it has two, and so has every label. The
    only row of a label is for training.
    """
    parts = strata(rows)
    chosen = stratified_sample(parts, fraction, seed, both=(parts, rows.y))
    chosen[np.bincount(rows.y)[rows.y] == 1] = False
    check_enough(rows)
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def deal(parts: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """Fold of each row, from 0 on; even within each of the parts [n]."""
    generator = np.random.default_rng([seed, n_folds])
    order = np.lexsort((generator.random(len(parts)), parts))
    folds = np.empty(len(parts), dtype=np.int64)
    folds[order] = np.arange(len(parts)) % n_folds
    return folds


def check_enough(rows: Rows) -> None:
    """Refuse rows of which none could choose."""
    if np.bincount(rows.y).max() < 2:
        raise ValueError(
            "y must have two rows of a class, one to learn from and one to choose by, got "
            f"n_samples={len(rows.y)} of {len(rows.classes)} classes."
        )
