"""Rows of a stream are dealt as those in memory are, whatever chunks they are read in."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apfex.front._dealing import Dealer

COUNTS = st.lists(st.lists(st.integers(0, 60), min_size=2, max_size=3), min_size=1, max_size=5)


def dealt(counts, chunks, *, fraction=0.2, rule_rows=10**6, folds=5, seed=0):
    """Parts and folds of shuffled rows, that are read in so many chunks."""
    dealer = Dealer(counts, fraction, rule_rows, folds, seed)
    strata = np.repeat(np.arange(counts.size), counts.ravel())
    strata = np.random.default_rng(1).permutation(strata)
    parts = [dealer.deal(part) for part in np.array_split(strata, chunks)]
    return dealer, strata, [np.concatenate(one) for one in zip(*parts, strict=True)]


@settings(max_examples=60, deadline=None)
@given(COUNTS.filter(lambda c: len({len(r) for r in c}) == 1), st.sampled_from([0.1, 0.2, 0.5]))
@example([[0, 2]], 0.1)  # the last of three chunks is empty
def test_a_stratum_is_on_both_sides_and_has_its_share(counts, fraction):
    counts = np.array(counts)
    if counts.sum() < 2:
        return
    dealer, strata, (measures, _, folds) = dealt(counts, 3, fraction=fraction)
    found = np.bincount(strata[measures], minlength=counts.size).reshape(counts.shape)
    assert np.array_equal(found, dealer.validation)
    several = counts > 1
    assert (found[several] >= 1).all()
    assert (found[several] < counts[several]).all()
    assert (abs(found - fraction * counts)[counts > 1 / fraction] < 2).all()
    for label, total in enumerate(counts.sum(0)):
        assert found[:, label].sum() >= (total > 1)
        assert found[:, label].sum() < max(1, total)
    for stratum in range(counts.size):
        own = np.bincount(folds[(strata == stratum) & ~measures], minlength=5)
        assert own.max() - own.min() <= 1


def test_chunks_leave_no_trace():
    counts = np.array([[5_000, 300], [40, 7]])
    for rule_rows in (10**6, 2_000):
        _, _, first = dealt(counts, 1, rule_rows=rule_rows)
        for chunks in (7, 60):
            _, _, other = dealt(counts, chunks, rule_rows=rule_rows)
            assert all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
        _, _, seeded = dealt(counts, 1, rule_rows=rule_rows, seed=1)
        assert not np.array_equal(first[0], seeded[0])


def test_small_groups_are_whole_among_the_rows_of_rules():
    counts = np.array([[50_000, 20_000], [900, 80]])
    dealer, strata, (measures, judges, _) = dealt(counts, 9, rule_rows=4_000)
    found = np.bincount(strata[judges], minlength=4).reshape(2, 2)
    assert np.array_equal(found, dealer.rules)
    assert np.array_equal(found[1], dealer.training[1])
    assert found[0, 0] == found[0, 1]
    assert 3_990 <= found.sum() <= 4_000
    assert not (judges & measures).any()


def test_draws_do_not_follow_the_order_of_rows():
    """Of a stratum in which every fifth row is another, both kinds measure alike."""
    counts = np.array([[20_000, 1]])
    dealer = Dealer(counts, 0.2, 10**6, 5, 0)
    measures, _, folds = dealer.deal(np.zeros(20_000, dtype=np.int64))
    every_fifth = np.arange(20_000) % 5 == 0
    assert abs(measures[every_fifth].mean() - 0.2) < 0.03
    assert abs(folds[every_fifth & ~measures].mean() - 2) < 0.1
