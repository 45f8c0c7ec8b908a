"""A sample of rows that has its share of every stratum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def stratified_sample(
    strata: np.ndarray, fraction: float, seed: int, *, both: Sequence[np.ndarray] = ()
) -> np.ndarray:
    """Choose a share of the rows, even within each stratum up to one row.

    Parameters
    ----------
    strata : int array of shape [n]
        Rows of one number belong together, such as those of one label within one group.
    fraction : float
        Share of the rows to choose, between 0 and 1.
    seed : int
    both : sequence of int arrays of shape [n]
        Further divisions of the rows. Each of their parts that has two rows or more has rows
        among those chosen and among the others, if need be at the cost of evenness.

    Returns
    -------
    bool array of shape [n]
        Whether a row is chosen.

    Notes
    -----
    Rows are put in order of their strata, at random within each, and chosen at even
    distances along that order, from a random start.

    Examples
    --------
    >>> chosen = stratified_sample(np.repeat([0, 1], [8, 4]), 0.25, seed=0)
    >>> chosen[:8].sum(), chosen[8:].sum()
    (np.int64(2), np.int64(1))
    """
    n = len(strata)
    generator = np.random.default_rng(seed)
    order = np.lexsort((generator.random(n), strata))
    chosen = np.zeros(n, dtype=bool)
    chosen[order] = systematic_sample(n, fraction, generator)
    for parts in both:
        _mend(chosen, parts, order)
    return chosen


def systematic_sample(n: int, fraction: float, generator: np.random.Generator) -> np.ndarray:
    """Choose among n places at even distances, from a random start; bool [n]."""
    return np.diff(np.floor(np.arange(n + 1) * fraction + generator.random())) > 0


def _mend(chosen: np.ndarray, parts: np.ndarray, order: np.ndarray) -> None:
    """Where two rows or more of a part are all on one side, send one to the other."""
    numbers, first, inverse, counts = np.unique(
        parts[order], return_index=True, return_inverse=True, return_counts=True
    )
    n_chosen = np.bincount(inverse, chosen[order], minlength=len(numbers))
    one_sided = (counts > 1) & ((n_chosen == 0) | (n_chosen == counts))
    rows = order[first[one_sided]]
    chosen[rows] = ~chosen[rows]
