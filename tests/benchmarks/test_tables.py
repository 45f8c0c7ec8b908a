# pyright: reportMissingImports=false
import numpy as np
import pytest
from front.tables import deal


@pytest.mark.parametrize("pattern", [[0] * 14 + [1] * 3 + [2] * 3, range(5), [0, 0, 0, 0, 1]])
def test_deal_gives_every_stratum_the_pattern(pattern):
    strata = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [100, 40, 20]))
    dealt = deal(strata, pattern, np.random.default_rng(1))
    expected = np.bincount(pattern) / len(pattern)
    for stratum in range(3):
        counts = np.bincount(dealt[strata == stratum], minlength=len(expected))
        np.testing.assert_array_equal(counts, expected * counts.sum())


def test_deal_is_at_most_a_block_off_where_strata_do_not_divide():
    strata = np.repeat([0, 1, 2], [7, 3, 101])
    dealt = deal(strata, range(5), np.random.default_rng(0))
    counts = np.bincount(dealt[strata == 2], minlength=5)
    assert np.ptp(counts) <= 2
    assert len(dealt) == len(strata)


def test_folds_cover_all_rows_once_and_parts_are_disjoint(tiny):
    splits = tiny.make_splits("tiny", seed=0)
    assert sorted(np.concatenate([split.test for split in splits])) == list(range(400))
    for split in splits:
        together = np.concatenate([split.train, split.validation, split.test])
        assert sorted(together) == list(range(400))
        assert len(split.validation) == pytest.approx(0.2 * 320, abs=2)


def test_one_split_has_the_stated_shares(tiny):
    (split,) = tiny.make_splits("tiny-one", seed=0)
    sizes = [len(part) for part in (split.train, split.validation, split.test)]
    assert sizes == pytest.approx([560, 120, 120], abs=8)


def test_seeds_differ_and_repeat(tiny):
    tests = [tiny.make_splits("tiny", seed)[0].test.tolist() for seed in (0, 1, 0)]
    assert tests[0] == tests[2] != tests[1]


def test_parts_hold_the_rows_of_the_split(tiny):
    data, groups = tiny.read_table("tiny")
    split = tiny.make_splits("tiny", seed=3)[2]
    parts = tiny.make_parts("tiny", 3, 2, "tree")
    for part, rows in zip(parts, (split.train, split.validation, split.test), strict=True):
        np.testing.assert_array_equal(part.y, data.y[rows])
        np.testing.assert_array_equal(part.group, groups.codes[rows])
        assert part.x.shape[0] == len(part) == len(rows)
        assert not set(part.table) & set(part.sensitive)
