"""What the interval of a gap promises, by simulation and by enumeration."""

from typing import NamedTuple

import numpy as np
import pytest
from benchmarks.bench_verdicts import enumerate_ends, false_verdicts
from scipy.stats import norm
from tests.metrics.by_hand import smoothed
from tests.metrics.simulated import ALPHA, critical_value, intervals, sizes

from apfex.metrics import gap_interval


class Coverage(NamedTuple):
    share: float
    width: float
    wilson_width: float


def wilson_intervals(x, n):
    """Bonferroni-Wilson: an interval for each rate at 1 - alpha / k, and the gaps they allow."""
    z = norm.ppf(1 - ALPHA / len(n) / 2)
    centre = (x + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * np.sqrt(x * (n - x) / n + z**2 / 4)
    low, high = centre - half, centre + half
    lower = np.maximum(0, low.max(axis=1) - high.min(axis=1))
    return lower, np.minimum(1, high.max(axis=1) - low.min(axis=1))


def simulate(totals, rates, n_tables, seed=0):
    rates = np.asarray(rates)
    x = np.random.default_rng(seed).binomial(totals, rates, size=(n_tables, len(totals)))
    lower, upper = intervals(x, totals)
    low, high = wilson_intervals(x, np.array(totals))
    gap = np.ptp(rates)
    covered = (lower <= gap + 1e-12) & (gap - 1e-12 <= upper)
    return Coverage(covered.mean(), (upper - lower).mean(), (high - low).mean())


def layouts(k, low, gap):
    middle = [low + gap / 2] * (k - 2)
    return [
        np.linspace(low, low + gap, k),
        np.array([low, *middle, low + gap]),
        np.array([low + gap, *[low] * (k - 1)]),  # the smallest group is best off
        np.array([*[low] * (k - 1), low + gap]),  # the largest is
    ]


@pytest.mark.parametrize("totals", [(12, 30), (20, 20, 90)])
def test_the_simulated_interval_is_that_of_the_package(totals):
    generator = np.random.default_rng(3)
    x = generator.binomial(totals, generator.uniform(0.1, 0.9, (25, len(totals))))
    lower, upper = intervals(x, totals)
    for row in range(len(x)):
        result = gap_interval(x[row], totals)
        assert result.upper == pytest.approx(upper[row])
        _, s = smoothed(x[row], np.array(totals))
        c = critical_value(totals, int(x[row].sum()))
        # Another seed, so another critical value; each moves the end by its share only.
        slack = abs(c - result.critical) * 2 * s.max() + 1e-9
        assert result.lower == pytest.approx(lower[row], abs=slack)


def check_parity(k, smallest, ratio, rate, n_tables):
    totals = sizes(k, smallest, ratio)
    share = simulate(totals, np.full(k, rate), n_tables).share
    assert share >= 0.93
    if smallest * min(rate, 1 - rate) >= 20:
        assert share <= 0.97


def check_gap(k, smallest, ratio, low, n_tables):
    totals = sizes(k, smallest, ratio)
    for rates in layouts(k, low, 0.15):
        found = simulate(totals, rates, n_tables)
        assert found.share >= 0.93, rates
        assert found.width < found.wilson_width, rates


@pytest.mark.parametrize(
    ("k", "smallest", "ratio", "rate"),
    [(2, 10, 1, 0.5), (2, 40, 8, 0.5), (4, 10, 8, 0.05), (4, 100, 1, 0.2), (16, 40, 1, 0.5)],
)
def test_coverage_at_parity(k, smallest, ratio, rate):
    check_parity(k, smallest, ratio, rate, 2_000)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 4, 8, 16, 64])
@pytest.mark.parametrize("ratio", [1, 8])
@pytest.mark.parametrize(
    ("smallest", "rate"), [(10, 0.5), (10, 0.05), (20, 0.25), (40, 0.5), (50, 0.1), (100, 0.2)]
)
def test_coverage_at_parity_everywhere(k, ratio, smallest, rate):
    check_parity(k, smallest, ratio, rate, 2_000 if k < 64 else 1_000)


@pytest.mark.parametrize(
    ("k", "smallest", "ratio", "low"), [(2, 100, 8, 0.2), (4, 20, 1, 0.05), (8, 50, 1, 0.4)]
)
def test_coverage_and_width_at_a_gap(k, smallest, ratio, low):
    check_gap(k, smallest, ratio, low, 1_000)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 4, 8, 16, 64])
@pytest.mark.parametrize("low", [0.01, 0.05, 0.2, 0.425, 0.8])
@pytest.mark.parametrize("smallest", [20, 100])
def test_coverage_and_width_at_a_gap_between_equal_groups(k, smallest, low):
    if smallest * k <= 2_000:
        check_gap(k, smallest, 1, low, 1_000)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 4, 8, 16])
@pytest.mark.parametrize("low", [0.2, 0.425, 0.65])
def test_coverage_and_width_at_a_gap_between_unequal_groups(k, low):
    check_gap(k, 100, 8, low, 1_000)


def enumerate_coverage(totals, rates):
    """Exact for two groups."""
    given = np.array(rates[:1]), np.array(rates[1:])
    found = false_verdicts(enumerate_ends(totals), given, float(np.ptp(rates)))
    return 1 - found.violation[0] - found.within[0]


@pytest.mark.parametrize("ratio", [1, 2, 8])
@pytest.mark.parametrize(("smallest", "rate"), [(40, 0.5), (60, 0.35), (100, 0.2), (200, 0.1)])
def test_two_groups_at_parity_exactly(ratio, smallest, rate):
    assert 0.95 <= enumerate_coverage((smallest, smallest * ratio), (rate, rate)) <= 0.97


@pytest.mark.parametrize("ratio", [1, 4, 16])
@pytest.mark.parametrize(("small", "large"), [(0.32, 0.02), (0.2, 0.05), (0.425, 0.575)])
@pytest.mark.parametrize("smallest", [10, 30, 100])
def test_two_groups_at_a_gap_exactly(ratio, small, large, smallest):
    assert enumerate_coverage((smallest, smallest * ratio), (small, large)) >= 0.95


@pytest.mark.parametrize(
    ("totals", "rates", "expected"),
    [
        ((10, 10), (0.5, 0.5), 0.987),
        ((30, 240), (0.16, 0.01), 0.980),
        ((20, 80), (0.06, 0.01), 0.984),
    ],
)
def test_what_is_documented_below_twenty_expected_of_each_kind(totals, rates, expected):
    assert enumerate_coverage(totals, rates) == pytest.approx(expected, abs=0.001)


def test_power_against_parity():
    x = np.random.default_rng(0).binomial(100, [0.3, 0.45], size=(1_000, 2))
    lower, _ = intervals(x, (100, 100))
    low, _ = wilson_intervals(x, np.array([100, 100]))
    assert (lower > 0).mean() > 0.5 > 0.3 > (low > 0).mean()
