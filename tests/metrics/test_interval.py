import dataclasses
import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom, hypergeom, ks_2samp, norm

from apfex.metrics import (
    NotEstimableWarning,
    effective_counts,
    gap_interval,
    lower_of_pairs,
    upper_of_pairs,
)
from apfex.metrics import _interval as interval_module
from apfex.metrics import _null as null_module
from apfex.metrics import _pairs as pairs_module
from apfex.metrics._null import null_law, smoothed, statistic


@st.composite
def counts(draw, most=12):
    totals = draw(st.lists(st.integers(1, 60), min_size=2, max_size=most))
    return [draw(st.integers(0, total)) for total in totals], totals


def slow_statistic(p, s):
    return max((p[i] - p[j]) / (s[i] + s[j]) for i, j in permutations(range(len(p)), 2))


@given(counts())
def test_statistic_is_the_largest_over_pairs(data):
    p, s = smoothed(*map(np.array, data))
    assert p.tolist() == [(x + 1) / (n + 2) for x, n in zip(*data, strict=True)]
    assert (s**2).tolist() == pytest.approx(p * (1 - p) / (np.array(data[1]) + 2))
    assert float(statistic(p, s)) == pytest.approx(slow_statistic(p, s), rel=1e-12)


@pytest.mark.parametrize("k", [2, 7, 300])
def test_statistic_takes_many_draws_at_once(k):
    generator = np.random.default_rng(0)
    totals = generator.integers(1, 200, k)
    p, s = smoothed(generator.binomial(totals, 0.3, size=(20, k)), totals)
    expected = [slow_statistic(*row) for row in zip(p, s, strict=True)] if k < 100 else None
    found = statistic(p, s)
    if expected is None:  # the root of max(p - c s) = min(p + c s)
        c = found[:, None]
        assert (p - c * s).max(1) == pytest.approx((p + c * s).min(1), abs=1e-12)
    else:
        assert found == pytest.approx(expected, rel=1e-12)


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


def test_ends_do_not_depend_on_blocks_of_pairs(monkeypatch):
    generator = np.random.default_rng(1)
    for k in (2, 3, 40):
        n = generator.integers(1, 300, k)
        x = generator.binomial(n, generator.uniform(0, 1, k))
        lower, upper = slow_ends(x.tolist(), n.tolist(), 0.7)
        for block in (1, 50, 2**21):
            monkeypatch.setattr(pairs_module, "_BLOCK", block)
            assert interval_module._upper(x, n, 0.05) == pytest.approx(upper, abs=1e-12)
            assert interval_module._lower(x, n, 0.7, 0.05, k) == pytest.approx(lower, abs=1e-12)


@given(counts(), st.integers(2, 200))
def test_more_groups_and_a_stricter_level_lower_the_lower_bound(data, n_groups):
    (x, n) = map(np.array, data)
    high, low = (x[:, None], n[:, None]), (x, n)
    options: dict[str, Any] = {"critical": 1.4, "alpha": 0.05, "n_groups": n_groups}
    bound = lower_of_pairs(high, low, **options)
    others: list[dict[str, Any]] = [{"n_groups": n_groups + 1}, {"alpha": 0.01}, {"critical": 1.5}]
    for other in others:
        assert (lower_of_pairs(high, low, **options | other) <= bound + 1e-12).all()
    assert (bound <= x[:, None] / n[:, None] - x / n + 1e-12).all()
    assert (upper_of_pairs(high, low, alpha=0.05) >= bound).all()


def exact_p_value(successes, totals):
    """By enumeration of all tables of two groups with these margins."""
    n, t = np.array(totals), sum(successes)
    first = np.arange(max(0, t - n[1]), min(n[0], t) + 1)
    found = statistic(*smoothed(np.stack([first, t - first], axis=1), n))
    observed = float(statistic(*smoothed(np.array(successes), n)))
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


def test_null_law_keeps_margins_and_does_not_depend_on_blocks(monkeypatch):
    totals = np.array([3, 50, 20])
    whole = null_law(totals, 30, 500, np.random.default_rng(0))
    monkeypatch.setattr(null_module, "_BLOCK", 40)
    parts = null_law(totals, 30, 500, np.random.default_rng(0))
    assert np.array_equal(whole.statistics, parts.statistics)
    assert np.array_equal(whole.gaps, parts.gaps)
    alone, crowds = null_module._split(totals)
    draws, sizes = null_module._draw(alone, crowds, 30, 400, np.random.default_rng(0))
    assert sizes.tolist() == totals.tolist()
    assert (draws.sum(axis=1) == 30).all()
    assert (draws <= totals).all()


def same_law(first, second) -> bool:
    return ks_2samp(first, second).pvalue > 1e-3  # pyright: ignore[reportAttributeAccessIssue]


def test_a_tally_has_the_law_of_groups_drawn_one_by_one():
    n, g, t, size = 3, 20, 25, 20_000
    generator = np.random.default_rng(0)
    tally = null_module._tally(n, g, np.full(size, t), generator)
    assert (tally.sum(axis=1) == g).all()
    assert (tally @ np.arange(n + 1) == t).all()
    drawn = generator.multivariate_hypergeometric([n] * g, t, size=size)
    expected = (drawn[:, :, None] == np.arange(n + 1)).sum(axis=1)
    for shown in range(n + 1):
        assert same_law(tally[:, shown], expected[:, shown])
    assert np.cov(tally.T) == pytest.approx(np.cov(expected.T), abs=0.1)


@pytest.mark.parametrize("successes", [0, 3, 90, 237])
def test_crowds_of_small_groups_have_the_law_of_groups_drawn_one_by_one(successes, monkeypatch):
    totals = np.array([1] * 10 + [2] * 40 + [3] * 14 + [5] * 12 + [45])
    assert null_module._split(totals)[1] == [(1, 10), (2, 40), (3, 14)]
    crowded = null_law(totals, successes, 5_000, np.random.default_rng(0))
    monkeypatch.setattr(null_module, "_split", lambda totals: (totals, []))
    single = null_law(totals, successes, 5_000, np.random.default_rng(1))
    assert same_law(crowded.statistics.round(9), single.statistics.round(9))
    assert same_law(crowded.gaps.round(9), single.gaps.round(9))


def test_a_crossing_of_many_small_groups_is_drawn_by_tallies():
    totals = np.random.default_rng(0).poisson(5, 33_714) + 1
    alone, crowds = null_module._split(totals)
    assert len(alone) < 200
    draws, _ = null_module._draw(alone, crowds, 80_000, 3, np.random.default_rng(0))
    assert draws.shape[1] < 400


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


def at_parity(sizes, shares, n_tables=4_000):
    """Counts [n_tables, c, k] of the classes of one decision that all groups get alike."""
    return (
        np.random.default_rng(1).multinomial(sizes, shares, (n_tables, len(sizes))).swapaxes(1, 2)
    )


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


def test_many_groups_need_few_draws_of_their_classes(monkeypatch):
    sizes, shares = np.full(300, 20), [0.5, 0.3, 0.2]
    x, totals = at_parity(sizes, shares, 1)[0], np.broadcast_to(sizes, (3, 300))
    many = null_module.class_gaps(x, totals, 1_999, np.random.default_rng(0))
    assert len(many) == 1_999
    monkeypatch.setattr(null_module, "_JOINT", 1)
    few = null_module.class_gaps(x, totals, 1_999, np.random.default_rng(0))
    assert len(few) == 100
    assert few.mean() == pytest.approx(many.mean(), rel=0.03)
    monkeypatch.setattr(null_module, "_BLOCK", 1_000)
    parts = null_module.class_gaps(x, totals, 1_999, np.random.default_rng(0))
    assert np.array_equal(parts, few)


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


def test_more_rows_than_an_urn_can_hold_are_approximate():
    result = gap_interval([300_000_000, 300_100_000], [10**9, 10**9])
    assert result.approximate
    assert result.p_value <= 0.05
    assert not gap_interval([30, 31], [100, 100]).approximate
    # The binomial law of very large tables agrees with the hypergeometric one just below.
    near = gap_interval([120_000, 121_500], [400_000, 400_000])
    original = null_module._LARGEST_URN
    try:
        null_module._LARGEST_URN = 0
        far = gap_interval([120_000, 121_500], [400_000, 400_000])
    finally:
        null_module._LARGEST_URN = original
    assert far.critical == pytest.approx(near.critical, rel=0.08)
    assert far.lower == pytest.approx(near.lower, abs=3e-4)


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
        (([1.5, 2], [3, 3]), {}, "successes must be whole numbers.*effective_counts"),
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


@given(counts())
def test_equal_weights_give_back_the_counts(data):
    successes, totals = map(np.array, data)
    for weight in (1.0, 0.3, 7.0):
        found = effective_counts(successes * weight, totals * weight, totals * weight**2)
        assert found[0].tolist() == successes.tolist()
        assert found[1].tolist() == totals.tolist()


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30), st.floats(0, 1))
def test_unequal_weights_count_for_fewer_rows(weights, share):
    total, squares = math.fsum(weights), math.fsum(w * w for w in weights)
    ((x,), (n,)) = effective_counts([share * total], [total], [squares])
    assert 1 <= n <= len(weights)
    assert n == pytest.approx(total**2 / squares, abs=0.51)
    assert 0 <= x <= n
    assert effective_counts([0.0], [0.0], [0.0])[1].tolist() == [0]


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
