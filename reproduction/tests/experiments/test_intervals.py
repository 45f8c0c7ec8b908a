"""Intervals of means over splits, held to the formula and to simulation by hand."""

import numpy as np
import pytest
from scipy import stats

from apfex_reproduction.experiments._intervals import difference_from_print, mean_interval

VALUES = [0.01, 0.03, 0.02, 0.05, 0.04, 0.02, 0.03, 0.01, 0.06, 0.03]


def test_the_variance_counts_the_overlap_of_training_parts():
    found = mean_interval(VALUES, 0.15 / 0.70)
    spread = np.std(VALUES, ddof=1) * np.sqrt(1 / 10 + 0.15 / 0.70)
    half = stats.t.ppf(0.975, 9) * spread
    assert (found.low, found.high) == pytest.approx((0.03 - half, 0.03 + half))


def test_without_overlap_it_is_students():
    found = mean_interval(VALUES, 0.0)
    expected = stats.t.interval(0.95, 9, loc=0.03, scale=stats.sem(VALUES))
    assert (found.low, found.high) == pytest.approx(expected)


@pytest.mark.parametrize(("shift", "says"), [(0.0, "level"), (0.2, "above"), (-0.2, "below")])
def test_it_says_on_which_side_of_zero(shift, says):
    centred = np.array(VALUES) - 0.03 + shift
    assert mean_interval(centred, 0.2).says == says


def test_one_value_has_no_interval():
    found = mean_interval([0.3], 0.2)
    assert (found.low, found.mean, found.high) == (0.3, 0.3, 0.3)


def test_a_printed_spread_widens_the_difference():
    exact = difference_from_print(VALUES, 0.02, 0.0, 0.2)
    loose = difference_from_print(VALUES, 0.02, 0.05, 0.2)
    assert exact.mean == loose.mean == pytest.approx(0.01)
    assert loose.low < exact.low
    assert loose.high > exact.high
    assert exact.high - exact.low == pytest.approx(
        mean_interval(VALUES, 0.2).high - mean_interval(VALUES, 0.2).low
    )
