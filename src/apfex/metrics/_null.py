"""The statistic of a gap, and its law where all groups are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_BLOCK = 2**21  # numbers in one block of draws
_LARGEST_URN = 10**9  # numpy draws without replacement from smaller urns only
_JOINT = 2**22  # numbers in all draws of the classes of one decision; a hundred draws at least


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
    alone, crowds = _split(totals)
    width = len(alone) + sum(n + 1 for n, _ in crowds)
    statistics, gaps = [], []
    for start in range(0, n_draws, block := max(1, _BLOCK // width)):
        size = min(block, n_draws - start)
        draws, sizes = _draw(alone, crowds, successes, size, generator)
        statistics.append(statistic(*smoothed(draws, sizes)))
        gaps.append(np.ptp(draws / sizes, axis=-1))
    return NullLaw(np.concatenate(statistics), np.concatenate(gaps))


def noise_floor(gaps: Sequence[np.ndarray]) -> tuple[float, float]:
    """Mean and 95% quantile of the largest of independent gaps, from draws of each.

    The law of the largest is the product of theirs, so draws need not be paired: those of one
    seed are alike.
    """
    if len(gaps) == 1:
        return float(gaps[0].mean()), float(np.quantile(gaps[0], 0.95))
    values = np.unique(np.concatenate(gaps))
    below = [np.searchsorted(np.sort(one), values, side="right") / len(one) for one in gaps]
    law = np.prod(below, axis=0)
    upper = values[np.searchsorted(law, 0.95)]
    return float(values @ np.diff(law, prepend=0.0)), float(upper)


def are_classes(successes: np.ndarray, totals: np.ndarray, approximate: bool) -> bool:
    """Whether counts [c, k] are of the classes of one decision; effective ones are rounded."""
    slack = len(totals) / 2 if approximate else 0
    adds_up = abs(successes.sum(0) - totals[0]) <= slack
    return bool((totals == totals[0]).all() and adds_up.all() and successes.any())


def class_gaps(
    successes: np.ndarray, totals: np.ndarray, n_draws: int, generator: np.random.Generator
) -> np.ndarray:
    """Draws of the largest gap over the classes [c, k] of one decision, shape [n_draws] or fewer.

    Multinomial, each group at the shares of all: within 1% of the law given all margins, for
    groups of fifteen rows and for three to ten classes.
    """
    known = totals[0] > 0
    order = np.lexsort((*successes[:, known], totals[0, known]))  # however groups are numbered
    sizes, shares = totals[0, known][order], successes.sum(1) / successes.sum()
    c, k = len(shares), len(sizes)
    n_draws = min(n_draws, max(100, _JOINT // (c * k)))
    gaps = []
    for start in range(0, n_draws, block := max(1, _BLOCK // (c * k))):
        shape = (min(block, n_draws - start), k)
        rates = generator.multinomial(sizes, shares, size=shape) / sizes[:, None]
        gaps.append(np.ptp(rates, axis=1).max(-1))
    return np.concatenate(gaps)


def is_exact(totals: np.ndarray) -> bool:
    """Whether the null law can be drawn exactly."""
    return int(totals.sum()) < _LARGEST_URN


def _split(totals: np.ndarray) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Groups to draw one by one, and crowds (n, g): so many groups g of n rows that tallies pay."""
    sizes, groups = np.unique(totals, return_counts=True)
    crowded = (groups > sizes * (sizes + 1)) & is_exact(totals)
    crowds = list(zip(sizes[crowded].tolist(), groups[crowded].tolist(), strict=True))
    return totals[~np.isin(totals, sizes[crowded])], crowds


def _draw(
    alone: np.ndarray,
    crowds: list[tuple[int, int]],
    successes: int,
    size: int,
    generator: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Successes [size, w] that groups of sizes [w] show: all that occur, some more than once."""
    urns = np.append(alone, [n * g for n, g in crowds]).astype(np.int64)
    if is_exact(urns):
        drawn = generator.multivariate_hypergeometric(
            urns, successes, size=size, method="marginals"
        )
    else:  # So many rows fix the common rate that conditioning on their sum no longer matters.
        drawn = generator.binomial(urns, successes / int(urns.sum()), size=(size, len(urns)))
    draws, sizes = [drawn[:, : len(alone)]], [alone]
    for (n, g), taken in zip(crowds, drawn.T[len(alone) :], strict=True):
        tally = _tally(n, g, taken, generator)
        # A number that no group shows gives way to the one that most show.
        draws.append(np.where(tally > 0, np.arange(n + 1), tally.argmax(1)[:, None]))
        sizes.append(np.full(n + 1, n))
    return np.concatenate(draws, axis=1), np.concatenate(sizes)


def _tally(n: int, g: int, successes: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """How many of g groups of n rows show 0, ..., n of the successes [size]; shape [size, n + 1].

    Exact, with about n^2 / 2 draws instead of g. All groups get their rows in turn: the first of
    each, the second of each, ... Of the g rows of a turn some are successes, and of these some
    fall on the groups that have shown n, n - 1, ..., 0 so far, which then show one more.
    """
    tally = np.zeros((n + 1, len(successes)), dtype=np.int64)
    tally[0] = g
    for turn in range(n):
        hits = generator.hypergeometric(successes, g * (n - turn) - successes, g)
        successes = successes - hits
        others = np.full_like(hits, g)
        for shown in range(turn, -1, -1):
            others -= tally[shown]
            moved = generator.hypergeometric(tally[shown], others, hits)
            hits = hits - moved
            tally[shown] -= moved
            tally[shown + 1] += moved
    return tally.T
