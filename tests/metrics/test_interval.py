import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom
from tests.metrics.by_hand import at_parity, counts, slow_ends, slow_statistic, smoothed

from apfex.metrics import NotEstimableWarning, gap_interval


@given(counts(), st.sampled_from([0.8, 0.95]))
@settings(max_examples=60)
def test_ends_follow_the_formulas(data, confidence):
    result = gap_interval(*data, n_draws=99, confidence=confidence)
    lower, upper = slow_ends(data[0], data[1], result.critical, 1 - confidence)
    assert result.lower == pytest.approx(lower, abs=1e-9)
    assert result.upper == pytest.approx(upper, abs=1e-9)
    raw = [x / n for x, n in zip(*data, strict=True)]
    assert result.gap == pytest.approx(max(raw) - min(raw))
    assert 0 <= result.lower <= result.gap + 1e-12
    assert result.lower <= result.upper <= 1


@given(counts(), st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]))
def test_parity_is_rejected_where_the_lower_end_is_positive(data, confidence):
    result = gap_interval(*data, confidence=confidence, n_draws=199)
    assert result.lower == 0 or result.p_value <= 1 - confidence + 1e-12


def test_parity_may_be_rejected_where_the_lower_end_is_zero():
    result = gap_interval([14, 2], [1000, 20])
    assert result.p_value <= 0.05
    assert result.lower == 0.0


def exact_p_value(successes, totals):
    """By enumeration of all tables of two groups with these margins."""
    n, t = np.array(totals), sum(successes)
    first = np.arange(max(0, t - n[1]), min(n[0], t) + 1)
    tables = np.stack([first, t - first], axis=1)
    found = np.array([slow_statistic(*smoothed(table, n)) for table in tables])
    observed = slow_statistic(*smoothed(successes, n))
    chance = hypergeom.pmf(first, n.sum(), t, n[0])
    return chance[found >= observed * (1 - 1e-9)].sum()


@pytest.mark.parametrize("totals", [(10, 10), (40, 15), (5, 200)])
@pytest.mark.parametrize("share", [0.1, 0.4])
def test_p_value_is_that_of_the_hypergeometric_law(totals, share):
    for extra in (0, 1, 3, 5):
        successes = [round(share * totals[0]), min(totals[1], round(share * totals[1]) + extra)]
        exact = exact_p_value(successes, totals)
        found = gap_interval(successes, totals, n_draws=19_999).p_value
        error = math.sqrt(max(0.0, exact * (1 - exact)) / 20_000)
        assert found == pytest.approx(exact, abs=4.5 * error + 1e-4)


def test_equal_groups_count_as_two():
    one = gap_interval([1, 3, 3, 6], [8, 8, 8, 8], n_draws=99)
    many = gap_interval([1] * 4 + [3] * 4 + [6] * 4, [8] * 12, n_draws=99)
    assert many.gap == one.gap
    lower, upper = slow_ends([1] * 4 + [3] * 4 + [6] * 4, [8] * 12, many.critical)
    assert (many.lower, many.upper) == (pytest.approx(lower), pytest.approx(upper))


def test_noise_floor_is_the_raw_gap_at_parity():
    result = gap_interval([30, 30, 30], [100, 100, 100], n_draws=9_999)
    generator = np.random.default_rng(5)
    order = np.repeat([1, 0], [90, 210])
    gaps = [np.ptp(generator.permutation(order).reshape(3, 100).mean(1)) for _ in range(4_000)]
    assert result.noise_floor == pytest.approx(np.mean(gaps), abs=0.003)
    assert result.noise_floor_upper == pytest.approx(np.quantile(gaps, 0.95), abs=0.011)
    assert result.gap == 0.0
    assert result.p_value == 1.0


@pytest.mark.parametrize(
    ("sizes", "shares"),
    [
        ([200] * 6, [0.25] * 4),
        ([200] * 6, [0.49, 0.49, 0.02]),  # two classes that tell the same
        ([15, 20, 200], [0.5, 0.3, 0.2]),
    ],
)
def test_noise_floor_of_classes_is_that_of_their_largest_gap(sizes, shares):
    drawn = at_parity(sizes, shares)
    gaps = np.ptp(drawn / np.array(sizes), axis=2).max(1)
    totals = np.broadcast_to(sizes, drawn[0].shape)
    expected = np.outer(shares, sizes).round().astype(int)
    found = gap_interval(expected, totals)
    assert found.noise_floor == pytest.approx(gaps.mean(), rel=0.03)
    assert found.noise_floor_upper == pytest.approx(np.quantile(gaps, 0.95), rel=0.06)
    # Effective counts are rounded one by one; what they add up to is then near the totals only.
    rounded = expected.copy()
    rounded[0, 0] -= 1
    near = gap_interval(rounded, totals, approximate=True)
    assert near.noise_floor == pytest.approx(found.noise_floor, rel=0.03)
    order = np.random.default_rng(0).permutation(len(sizes))
    assert gap_interval(expected[:, order], totals[:, order]) == found


def test_noise_floor_of_two_rates_is_that_of_the_larger_gap():
    positives, negatives = np.array([120] * 6), np.array([80] * 6)
    generator = np.random.default_rng(2)
    tpr, fpr = (
        np.ptp(generator.binomial(n, rate, (20_000, 6)) / n, axis=1)
        for n, rate in ((positives, 0.6), (negatives, 0.4))
    )
    larger = np.maximum(tpr, fpr)
    x = np.stack([positives * 6 // 10, negatives * 4 // 10])
    found = gap_interval(x, np.stack([positives, negatives]))
    assert larger.mean() > 1.05 * max(tpr.mean(), fpr.mean())
    assert found.noise_floor == pytest.approx(larger.mean(), rel=0.02)
    assert found.noise_floor_upper == pytest.approx(np.quantile(larger, 0.95), rel=0.05)


@given(counts(), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_order_of_groups_and_groups_without_rows_do_not_matter(data, random):
    pairs = [*zip(*data, strict=True), (0, 0), (0, 0)]
    random.shuffle(pairs)
    successes, totals = zip(*pairs, strict=True)
    assert gap_interval(successes, totals, n_draws=99) == gap_interval(*data, n_draws=99)


def test_seeds_fix_the_draws():
    data = [12, 30, 25], [50, 60, 70]
    assert gap_interval(*data) == gap_interval(*data, random_state=np.random.default_rng(0))
    assert gap_interval(*data, random_state=1).critical != gap_interval(*data).critical
    np.random.seed(0)  # noqa: NPY002 - the global state must not matter
    assert gap_interval(*data) == gap_interval(*data, random_state=0)


def test_tables_without_any_success_or_failure_are_at_parity():
    for successes in ([0, 0], [100, 2]):
        result = gap_interval(successes, [100, 2])
        assert (result.gap, result.lower, result.p_value) == (0.0, 0.0, 1.0)
        assert 0 < result.upper < 1


def test_higher_confidence_widens_the_interval():
    results = [gap_interval([20, 60], [100, 100], confidence=c) for c in (0.8, 0.95, 0.99)]
    lowers, uppers = [r.lower for r in results], [r.upper for r in results]
    assert lowers == sorted(lowers, reverse=True)
    assert uppers == sorted(uppers)
    assert min(lowers) > 0


def test_thousands_of_groups_are_no_trouble():
    generator = np.random.default_rng(0)
    tables = generator.integers(1, 80, (9, 3_000))
    results = [gap_interval(generator.binomial(n, 0.4), n, n_draws=99) for n in tables]
    assert {result.n_groups for result in results} == {3_000}
    assert 0.1 < np.median([result.p_value for result in results]) < 0.9


@pytest.mark.parametrize("data", [([3], [5]), ([], []), ([0, 4], [0, 9])])
def test_fewer_than_two_groups_give_nan_and_a_warning(data):
    with pytest.warns(NotEstimableWarning, match="needs two groups with rows") as seen:
        result = gap_interval(*data)
    assert seen[0].filename == __file__
    assert np.isnan([result.gap, result.lower, result.upper, result.p_value]).all()
    assert result.n_groups == sum(total > 0 for total in data[1])


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (([1, 2], [3]), {}, r"one length, got shapes \[2\] and \[1\]"),
        (([[[1]]], [[[3]]]), {}, "one length"),
        (([1.5, 2], [3, 3]), {}, "successes must be whole numbers.*gap_inference"),
        (([1, 2], [3, np.nan]), {}, "totals must be whole numbers"),
        (([4, 1], [3, 3]), {}, "between 0 and totals, got 4 of 3 at 0"),
        (([1, -1], [3, 3]), {}, "between 0 and totals, got -1 of 3 at 1"),
        (([1, 2], [3, 3]), {"confidence": 1.0}, "confidence must lie between 0 and 1, got 1.0"),
        (([1, 2], [3, 3]), {"n_draws": 18}, "n_draws must be at least 19 for a .*0.95, got 18"),
    ],
)
def test_bad_counts_are_named(data, options, message):
    with pytest.raises(ValueError, match=message):
        gap_interval(*data, **options)


def test_result_is_a_value():
    result = gap_interval([1, 2], [3, 3])
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.gap = 0.0  # pyright: ignore[reportAttributeAccessIssue]


def test_rows_of_counts_are_corrected_for_one_another():
    successes, totals = (
        [[30, 60, 5], [40, 45, 0], [9, 0, 0]],
        [[100, 120, 20], [90, 90, 0], [9] * 3],
    )
    totals[2] = [9, 0, 0]  # one group: not tested
    found = gap_interval(successes, totals)
    strict = [gap_interval(successes[row], totals[row], confidence=0.975) for row in (0, 1)]
    plain = [gap_interval(successes[row], totals[row]) for row in (0, 1)]
    assert found.gap == max(one.gap for one in plain)
    assert found.lower == max(one.lower for one in strict)
    assert found.p_value == min(1, 2 * min(one.p_value for one in plain))
    assert found.upper == max(one.upper for one in plain)
    assert gap_interval([[5, 9]], [[20, 20]]) == gap_interval([5, 9], [20, 20])


def test_exact_limits_are_corrected_for_the_rows_of_counts():
    successes, totals = [[10, 6], [300, 6]], [[1000, 20], [1000, 20]]
    found = gap_interval(successes, totals)
    assert found.lower == pytest.approx(slow_ends([10, 6], [1000, 20], 0.0, n_tests=2)[0])
