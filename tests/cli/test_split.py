"""Rows held back: every group and label has its share, and nothing is lost."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from apfex.cli._errors import CommandError
from apfex.cli._split import hold_back


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), min_size=20, max_size=200),
    st.floats(0.1, 0.9),
    st.integers(0, 5),
)
def test_parts_are_disjoint_whole_and_stratified(rows, fraction, seed):
    y, codes = np.array(rows).T
    try:
        fit, test = hold_back(y, codes, fraction, seed)
    except CommandError:
        assume(False)
        return
    assert sorted([*fit, *test]) == list(range(len(y)))
    assert abs(len(test) - fraction * len(y)) <= 1
    for label, code in set(rows):
        cell = (y == label) & (codes == code)
        assert abs(cell[test].sum() - fraction * cell.sum()) <= 1


def test_the_seed_decides():
    y, codes = np.tile([0, 1], 100), np.repeat([0, 1], 100)
    one, again, other = (hold_back(y, codes, 0.25, seed)[1] for seed in (0, 0, 1))
    assert one.tolist() == again.tolist() != other.tolist()


@pytest.mark.parametrize("fraction", [0.0, 1.0, -1.0, float("nan")])
def test_a_share_must_be_one(fraction):
    with pytest.raises(CommandError, match="--test-fraction must lie between 0 and 1"):
        hold_back(np.array([0, 1] * 9), np.zeros(18, int), fraction, 0)


def test_too_few_rows_are_told():
    with pytest.raises(CommandError, match=r"too few: the .* must have both labels"):
        hold_back(np.array([0, 1, 0]), np.zeros(3, int), 0.3, 0)
