"""Many tables of groups at once, and the ends of their intervals."""

from functools import cache

import numpy as np
from tests.metrics.by_hand import smoothed

from apfex.metrics import lower_of_pairs, upper_of_pairs
from apfex.metrics._null import null_law, statistic

ALPHA, N_DRAWS = 0.05, 1999


@cache
def critical_value(totals, successes):
    """Of one table's margins; all tables that share them share it."""
    seed = np.random.default_rng([successes, *totals])
    draws = null_law(np.array(totals), successes, N_DRAWS, seed).statistics
    return np.sort(draws)[N_DRAWS - 100]


def intervals(x, totals):
    """Ends for many tables [r, k] at once; held to gap_interval by a test of coverage."""
    x, place = np.unique(x, axis=0, return_inverse=True)
    n, k = np.array(totals), len(totals)
    c = np.array([critical_value(totals, int(t)) for t in x.sum(axis=1)])
    high, low = (x[:, :, None], n[:, None]), (x[:, None], n)
    shown = lower_of_pairs(high, low, critical=c[:, None, None], alpha=ALPHA, n_groups=k)
    rejected = c < statistic(*smoothed(x, n)) * (1 - 1e-9)
    lower = np.where(rejected, np.maximum(shown.max((1, 2)), 0), 0)
    possible = np.where(np.eye(k, dtype=bool), 0, upper_of_pairs(high, low, alpha=ALPHA))
    return lower[place], np.minimum(possible.max((1, 2)), 1)[place]


def sizes(k, smallest, ratio):
    """From the smallest group to ``ratio`` times its size."""
    return tuple(int(size) for size in np.geomspace(smallest, smallest * ratio, k).round())
