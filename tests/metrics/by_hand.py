"""The statistics of a gap in plain loops, and counts to try them on."""

import math
from itertools import permutations

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom, norm


@st.composite
def counts(draw, most=12):
    totals = draw(st.lists(st.integers(1, 60), min_size=2, max_size=most))
    return [draw(st.integers(0, total)) for total in totals], totals


def smoothed(successes, totals):
    """Rates and standard errors with one success and one failure more."""
    p = (np.asarray(successes) + 1) / (np.asarray(totals) + 2)
    return p, np.sqrt(p * (1 - p) / (np.asarray(totals) + 2))


def slow_statistic(p, s):
    return max((p[i] - p[j]) / (s[i] + s[j]) for i, j in permutations(range(len(p)), 2))


def at_parity(sizes, shares, n_tables=4_000):
    """Counts [n_tables, c, k] of the classes of one decision that all groups get alike."""
    return (
        np.random.default_rng(1).multinomial(sizes, shares, (n_tables, len(sizes))).swapaxes(1, 2)
    )


def exact_limits(x, n, level):
    """Of Clopper and Pearson, from the law of the counts itself."""
    low = brentq(lambda p: binom.sf(x - 1, n, p) - level, 0, 1, xtol=1e-13) if x else 0.0
    high = brentq(lambda p: binom.cdf(x, n, p) - level, 0, 1, xtol=1e-13) if x < n else 1.0
    return low, high


def slow_ends(successes, totals, critical, alpha=0.05, n_tests=1):
    """Over all pairs, in plain loops."""
    p, s = (values.tolist() for values in smoothed(np.array(successes), np.array(totals)))
    r = [x / n for x, n in zip(successes, totals, strict=True)]
    groups = list(zip(successes, totals, strict=True))
    strict = [exact_limits(*one, alpha / n_tests / 2 / (len(p) - 1)) for one in groups]
    plain = [exact_limits(*one, alpha / 2) for one in groups]
    lower, upper = 0.0, -1.0
    for i, j in permutations(range(len(p)), 2):
        at_parity = p[i] - p[j] - critical * (s[i] + s[j])
        exact = r[i] - r[j] - math.hypot(r[i] - strict[i][0], strict[j][1] - r[j])
        lower = max(lower, min(at_parity, exact))
        normal = p[i] - p[j] + norm.ppf(1 - alpha / 10) * math.hypot(s[i], s[j])
        exact = r[i] - r[j] + math.hypot(plain[i][1] - r[i], r[j] - plain[j][0])
        upper = max(upper, normal, exact)
    return lower, min(1.0, upper)
