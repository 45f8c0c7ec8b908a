"""A stratified sample: every stratum has its share, and no part is all on one side."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from apfex.tables import stratified_sample

ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=200)


@given(ROWS, st.floats(0.01, 0.99), st.integers(0, 5))
def test_every_stratum_has_its_share_up_to_one_row(rows, fraction, seed):
    y, codes = np.array(rows).T
    strata = 2 * codes + y
    chosen = stratified_sample(strata, fraction, seed)
    assert abs(chosen.sum() - fraction * len(y)) <= 1
    for stratum in np.unique(strata):
        own = strata == stratum
        assert abs(chosen[own].sum() - fraction * own.sum()) <= 1


@given(ROWS, st.floats(0.01, 0.99), st.integers(0, 5))
def test_what_must_be_on_both_sides_is(rows, fraction, seed):
    y, codes = np.array(rows).T
    chosen = stratified_sample(2 * codes + y, fraction, seed, both=(y,))
    for label in np.unique(y):
        own = chosen[y == label]
        assert len(own) == 1 or own.any() > own.all()


def test_the_seed_decides():
    strata = np.tile([0, 1], 100)
    one, again, other = (stratified_sample(strata, 0.25, seed).tolist() for seed in (0, 0, 1))
    assert one == again != other
