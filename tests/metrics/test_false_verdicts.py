"""How often a true gap that equals the tolerance is called a violation, or within tolerance.

The aim is 2.5% for either. Two groups are enumerated exactly, more are simulated. A true gap below
the noise floor cannot be told from parity: the pair that leads is then another one, or the other
way round, and the level is the 5% of the parity test.
"""

import numpy as np
import pytest
from benchmarks import bench_verdicts
from benchmarks.bench_verdicts import enumerate_ends, false_verdicts, whole_grid
from tests.metrics.simulated import intervals, sizes

from apfex.metrics import gap_interval

AIM, AT_PARITY = 0.025, 0.05


@pytest.mark.parametrize("totals", [(10, 10), (12, 30), (80, 20), (15, 200)])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_enumerated_ends_are_those_of_the_package(totals, alpha):
    ends = enumerate_ends(totals, alpha)
    generator = np.random.default_rng(0)
    moves = 0
    for x in generator.binomial(totals, generator.uniform(0, 0.9, (20, 2))).tolist():
        found = gap_interval(x, totals, confidence=1 - alpha, n_draws=9_999)
        assert found.upper == pytest.approx(ends.upper["now"][*x], abs=1e-12)
        critical = bench_verdicts.critical_values(totals, alpha)[sum(x)]
        # Draws of the parity test may end on the neighbour of the exact critical value.
        if found.critical == pytest.approx(critical, rel=1e-9):
            assert found.lower == pytest.approx(ends.lower["now"][*x], abs=1e-12)
        else:
            moves += 1
    assert moves <= 2


@pytest.fixture(scope="module")
def grid():
    """12,960 designs: from 10 rows, up to 100 to 1, rates from .001, gaps from .005 to .49."""
    return whole_grid()


def test_two_groups_are_enumerated_over_a_wide_grid(grid):
    smallest, largest = grid[:, :2].min(1), grid[:, :2].max(1)
    assert len(grid) > 12_000
    assert smallest.min() == 10
    assert (largest / smallest).max() == 100
    assert grid[:, 3:5].min() == 0.001
    assert np.abs(grid[:, 3] - grid[:, 4]) == pytest.approx(grid[:, 2], abs=1e-12)


def test_within_tolerance_is_false_in_at_most_two_and_a_half_per_cent(grid):
    assert grid[:, 7].max() <= AIM


def test_violation_is_false_in_at_most_two_and_a_half_per_cent(grid):
    violation, of_that_pair, gap, floor = grid[:, 5], grid[:, 6], grid[:, 2], grid[:, 8]
    assert of_that_pair.max() <= AIM
    assert violation[gap >= floor].max() <= AIM
    assert violation.max() <= AT_PARITY


@pytest.mark.parametrize(
    ("totals", "rates", "before"),
    [
        ((80, 20), (0.01, 0.06), 0.199),
        ((240, 30), (0.01, 0.16), 0.123),
        ((1000, 10), (0.001, 0.051), 0.406),
    ],
)
def test_margin_of_the_parity_test_alone_is_too_small_for_rare_outcomes(totals, rates, before):
    ends, gap = enumerate_ends(totals), abs(rates[0] - rates[1])
    given = np.array(rates[:1]), np.array(rates[1:])
    alone = false_verdicts(ends, given, gap, "before").violation[0]
    assert alone == pytest.approx(before, abs=5e-4)
    assert false_verdicts(ends, given, gap).violation[0] <= AIM
    # The package itself, on the tables that are drawn most often.
    chance = bench_verdicts.table_chances(ends, given)
    likely = np.argwhere(chance > 0.002)
    wrong = sum(chance[*x] for x in likely if gap_interval(x, totals, n_draws=999).lower > gap)
    assert wrong <= AIM
    assert chance[chance > 0.002].sum() > 0.8


def layouts(k, low, gap):
    """Where the rates of groups, from the smallest to the largest, may lie."""
    few, many, high = k // 2, k - k // 2, low + gap
    return {
        "spread": np.linspace(low, high, k),
        "two ends": np.array([high, *[low + gap / 2] * (k - 2), low]),
        "smallest high": np.array([high, *[low] * (k - 1)]),
        "largest high": np.array([*[low] * (k - 1), high]),
        "smallest low": np.array([low, *[high] * (k - 1)]),
        "largest low": np.array([*[high] * (k - 1), low]),
        "small high": np.array([high] * few + [low] * many),
        "small low": np.array([low] * few + [high] * many),
    }


def check_groups(totals, rates, n_tables):
    """At most the aim, and what chance allows in so many tables: four standard errors."""
    generator = np.random.default_rng(0)
    lower, upper = intervals(generator.binomial(totals, rates, (n_tables, len(rates))), totals)
    pooled = np.average(rates, weights=totals)
    floor = np.ptp(generator.binomial(totals, pooled, (500, len(rates))) / totals, axis=1).mean()
    gap = np.ptp(rates)
    level = AIM if gap >= floor else AT_PARITY
    assert (lower > gap + 1e-12).mean() <= level + 4 * np.sqrt(level * (1 - level) / n_tables)
    assert (upper < gap - 1e-12).mean() <= AIM + 4 * np.sqrt(AIM * (1 - AIM) / n_tables)


@pytest.mark.parametrize(
    ("k", "smallest", "ratio", "low", "gap", "layout"),
    [
        (3, 10, 8, 0.001, 0.15, "smallest high"),  # 19% with the margin of the parity test alone
        (4, 10, 100, 0.001, 0.3, "largest low"),
        (8, 10, 100, 0.001, 0.3, "small high"),  # 12%, also with 1.96 standard errors
        (8, 100, 1, 0.45, 0.15, "small low"),
        (16, 10, 100, 0.01, 0.15, "small high"),  # 11% without correction for 15 others
        (16, 10, 1, 0.45, 0.05, "spread"),  # below the noise floor
    ],
)
def test_verdicts_on_more_groups(k, smallest, ratio, low, gap, layout):
    check_groups(sizes(k, smallest, ratio), layouts(k, low, gap)[layout], 2_000)


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 4, 8, 16])
@pytest.mark.parametrize(
    ("smallest", "ratio"), [(10, 1), (10, 8), (10, 100), (30, 8), (100, 1), (100, 10)]
)
@pytest.mark.parametrize("low", [0.001, 0.01, 0.05, 0.2, 0.45])
def test_verdicts_on_more_groups_everywhere(k, smallest, ratio, low):
    for gap in (0.05, 0.15, 0.3):
        for rates in layouts(k, low, gap).values():
            check_groups(sizes(k, smallest, ratio), rates, 1_000)
