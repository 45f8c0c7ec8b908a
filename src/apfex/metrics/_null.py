"""The statistic of a gap, and its law where all groups are alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_BLOCK = 2**21  # numbers in one block of draws
_LARGEST_URN = 10**9  # numpy draws without replacement from smaller urns only


@dataclass(frozen=True, eq=False)
class NullLaw:
    """Draws of the statistic and of the raw gap at parity, shape [n_draws]."""

    statistics: np.ndarray
    gaps: np.ndarray


def smoothed(successes: np.ndarray, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rates and their standard errors, one success and one failure added to each group."""
    rates = (successes + 1) / (totals + 2)
    return rates, np.sqrt(rates * (1 - rates) / (totals + 2))


def statistic(rates: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Largest ``(p_i - p_j) / (s_i + s_j)`` over the pairs of groups, [..., k] to [...].

    It is the root of ``max(p - c s) - min(p + c s)``, found by Dinkelbach's iteration: from the
    pair that leads at c, its ratio is the next c. Rises from 0 and ends at a pair in a few rounds.
    """
    c = np.zeros(rates.shape[:-1])
    while True:
        high = np.argmax(rates - c[..., None] * errors, axis=-1)[..., None]
        low = np.argmin(rates + c[..., None] * errors, axis=-1)[..., None]
        difference = np.take_along_axis(rates, high, -1) - np.take_along_axis(rates, low, -1)
        scale = np.take_along_axis(errors, high, -1) + np.take_along_axis(errors, low, -1)
        ratio = np.maximum((difference / scale)[..., 0], c)
        if np.all(ratio <= c * (1 + 1e-12)):
            return ratio
        c = ratio


def null_law(
    totals: np.ndarray, successes: int, n_draws: int, generator: np.random.Generator
) -> NullLaw:
    """Draw what groups of these sizes show if all ``successes`` fall on rows at random."""
    k = len(totals)
    statistics, gaps = [], []
    for start in range(0, n_draws, block := max(1, _BLOCK // k)):
        size = min(block, n_draws - start)
        draws = _draw(totals, successes, size, generator)
        statistics.append(statistic(*smoothed(draws, totals)))
        gaps.append(np.ptp(draws / totals, axis=-1))
    return NullLaw(np.concatenate(statistics), np.concatenate(gaps))


def is_exact(totals: np.ndarray) -> bool:
    """Whether the null law can be drawn exactly."""
    return int(totals.sum()) < _LARGEST_URN


def _draw(
    totals: np.ndarray, successes: int, size: int, generator: np.random.Generator
) -> np.ndarray:
    if is_exact(totals):
        return generator.multivariate_hypergeometric(
            totals, successes, size=size, method="marginals"
        )
    # So many rows fix the common rate that conditioning on their sum no longer matters.
    return generator.binomial(totals, successes / int(totals.sum()), size=(size, len(totals)))
