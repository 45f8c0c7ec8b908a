"""The statistic of a gap and its law where all groups are alike."""

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import ks_2samp
from tests.metrics.by_hand import at_parity, counts, slow_statistic, smoothed

from apfex.metrics import _null, gap_interval


@given(counts())
def test_statistic_is_the_largest_over_pairs(data):
    p, s = _null.smoothed(*map(np.array, data))
    assert p.tolist() == [(x + 1) / (n + 2) for x, n in zip(*data, strict=True)]
    assert (s**2).tolist() == pytest.approx(p * (1 - p) / (np.array(data[1]) + 2))
    assert float(_null.statistic(p, s)) == pytest.approx(slow_statistic(p, s), rel=1e-12)


@pytest.mark.parametrize("k", [2, 7, 300])
def test_statistic_takes_many_draws_at_once(k):
    generator = np.random.default_rng(0)
    totals = generator.integers(1, 200, k)
    p, s = smoothed(generator.binomial(totals, 0.3, size=(20, k)), totals)
    expected = [slow_statistic(*row) for row in zip(p, s, strict=True)] if k < 100 else None
    found = _null.statistic(p, s)
    if expected is None:  # the root of max(p - c s) = min(p + c s)
        c = found[:, None]
        assert (p - c * s).max(1) == pytest.approx((p + c * s).min(1), abs=1e-12)
    else:
        assert found == pytest.approx(expected, rel=1e-12)


def test_null_law_keeps_margins_and_does_not_depend_on_blocks(monkeypatch):
    totals = np.array([3, 50, 20])
    whole = _null.null_law(totals, 30, 500, np.random.default_rng(0))
    monkeypatch.setattr(_null, "_BLOCK", 40)
    parts = _null.null_law(totals, 30, 500, np.random.default_rng(0))
    assert np.array_equal(whole.statistics, parts.statistics)
    assert np.array_equal(whole.gaps, parts.gaps)
    alone, crowds = _null._split(totals)
    draws, sizes = _null._draw(alone, crowds, 30, 400, np.random.default_rng(0))
    assert sizes.tolist() == totals.tolist()
    assert (draws.sum(axis=1) == 30).all()
    assert (draws <= totals).all()


def same_law(first, second) -> bool:
    return ks_2samp(first, second).pvalue > 1e-3  # pyright: ignore[reportAttributeAccessIssue]


def test_a_tally_has_the_law_of_groups_drawn_one_by_one():
    n, g, t, size = 3, 20, 25, 20_000
    generator = np.random.default_rng(0)
    tally = _null._tally(n, g, np.full(size, t), generator)
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
    assert _null._split(totals)[1] == [(1, 10), (2, 40), (3, 14)]
    crowded = _null.null_law(totals, successes, 5_000, np.random.default_rng(0))
    monkeypatch.setattr(_null, "_split", lambda totals: (totals, []))
    single = _null.null_law(totals, successes, 5_000, np.random.default_rng(1))
    assert same_law(crowded.statistics.round(9), single.statistics.round(9))
    assert same_law(crowded.gaps.round(9), single.gaps.round(9))


def test_a_crossing_of_many_small_groups_is_drawn_by_tallies():
    totals = np.random.default_rng(0).poisson(5, 33_714) + 1
    alone, crowds = _null._split(totals)
    assert len(alone) < 200
    draws, _ = _null._draw(alone, crowds, 80_000, 3, np.random.default_rng(0))
    assert draws.shape[1] < 400


def test_many_groups_need_few_draws_of_their_classes(monkeypatch):
    sizes, shares = np.full(300, 20), [0.5, 0.3, 0.2]
    x, totals = at_parity(sizes, shares, 1)[0], np.broadcast_to(sizes, (3, 300))
    many = _null.class_gaps(x, totals, 1_999, np.random.default_rng(0))
    assert len(many) == 1_999
    monkeypatch.setattr(_null, "_JOINT", 1)
    few = _null.class_gaps(x, totals, 1_999, np.random.default_rng(0))
    assert len(few) == 100
    assert few.mean() == pytest.approx(many.mean(), rel=0.03)
    monkeypatch.setattr(_null, "_BLOCK", 1_000)
    parts = _null.class_gaps(x, totals, 1_999, np.random.default_rng(0))
    assert np.array_equal(parts, few)


def test_more_rows_than_an_urn_can_hold_are_approximate():
    result = gap_interval([300_000_000, 300_100_000], [10**9, 10**9])
    assert result.approximate
    assert result.p_value <= 0.05
    assert not gap_interval([30, 31], [100, 100]).approximate
    # The binomial law of very large tables agrees with the hypergeometric one just below.
    near = gap_interval([120_000, 121_500], [400_000, 400_000])
    original = _null._LARGEST_URN
    try:
        _null._LARGEST_URN = 0
        far = gap_interval([120_000, 121_500], [400_000, 400_000])
    finally:
        _null._LARGEST_URN = original
    assert far.critical == pytest.approx(near.critical, rel=0.08)
    assert far.lower == pytest.approx(near.lower, abs=3e-4)
