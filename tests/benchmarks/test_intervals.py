# pyright: reportMissingImports=false
import math

import numpy as np
import pytest
from front.intervals import corrected_interval, overlap_of_pooled_folds, ratio
from front.tables import TABLES


def test_the_published_correction_by_hand():
    # Nadeau and Bengio's corrected resampled t: t = mean / sqrt((1/J + n2/n1) variance). Values
    # 1, 2, 3: mean 2, variance 1; J = 3, n2/n1 = 1/9: standard error sqrt(4/9) = 2/3.
    middle, low, high = corrected_interval([1.0, 2.0, 3.0], overlap=10 / 90)
    t = 4.302652729911275  # 97.5% of two degrees of freedom
    assert middle == 2.0
    assert (low, high) == pytest.approx((2 - t * 2 / 3, 2 + t * 2 / 3))


def test_ten_splits_with_15_per_cent_test_rows_are_1_77_times_wider():
    values = np.random.default_rng(0).normal(size=10)
    wide, plain = (np.diff(corrected_interval(values, o)[1:])[0] for o in (0.15 / 0.7, 0.0))
    assert wide / plain == pytest.approx(1.77, abs=0.005)


def test_pooled_folds_are_corrected_as_their_folds():
    # r repeats of k folds: (1/(k r) + 1/(k - 1)) s^2 of single folds, with s^2 = k times the
    # variance of pooled values.
    k, r = 5, 10
    of_folds = (1 / (k * r) + 1 / (k - 1)) * k
    assert 1 / r + overlap_of_pooled_folds(k) == pytest.approx(of_folds)


def test_which_overlap_a_table_has():
    overlaps = {name: TABLES[name].overlap for name in ("adult", "heart", "made-even")}
    assert overlaps == pytest.approx({"adult": 3 / 7, "heart": 5 / 4, "made-even": 0})


def test_one_split_has_no_interval():
    assert corrected_interval([0.3], 0.1) == (0.3, -math.inf, math.inf)


def test_ratio_is_paired_over_common_seeds():
    found = ratio({0: 0.2, 1: 0.4, 7: 9.0}, {0: 0.1, 1: 0.2, 8: 9.0}, 0.5)
    assert found == pytest.approx((2.0, 2.0, 2.0))


def test_interval_of_a_ratio_by_hand():
    # Logarithms 0, a, 2a: mean a, standard deviation a; t of two degrees is 4.3027.
    a = math.log(1.1)
    found = ratio({0: 0.1, 1: 0.11, 2: 0.121}, dict.fromkeys(range(3), 0.1), 1 / 3)
    half = 4.302652729911275 * a * math.sqrt(2 / 3)
    assert found == pytest.approx((1.1, math.exp(a - half), math.exp(a + half)))


@pytest.mark.parametrize("other", [{0: 0.0}, {1: 0.5}])
def test_no_ratio_without_volume_or_common_seed(other):
    assert ratio({0: 0.5}, other, 0.1) is None
