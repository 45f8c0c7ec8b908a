# pyright: reportMissingImports=false
import numpy as np
import pandas as pd
import pytest
from front.tables import TABLES, _with_age
from rivals.common import deal

from apfex.datasets import make_biased


@pytest.mark.parametrize("pattern", [[0] * 7 + [1] * 3, range(5), [0, 0, 0, 0, 1]])
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
        assert sorted(np.concatenate([split.train, split.test])) == list(range(400))


def test_one_split_has_the_stated_shares(tiny):
    (split,) = tiny.make_splits("tiny-one", seed=0)
    assert [len(split.train), len(split.test)] == pytest.approx([560, 240], abs=8)


def test_seeds_differ_and_repeat(tiny):
    tests = [tiny.make_splits("tiny", seed)[0].test.tolist() for seed in (0, 1, 0)]
    assert tests[0] == tests[2] != tests[1]


@pytest.mark.parametrize("encoding", ["numbers", "codes"])
def test_parts_hold_the_rows_of_the_split(tiny, encoding):
    data, groups = tiny.read_table("tiny", 3)
    split = tiny.make_splits("tiny", seed=3)[2]
    parts = tiny.make_parts("tiny", 3, 2, encoding)
    for part, rows in zip(parts, (split.train, split.test), strict=True):
        np.testing.assert_array_equal(part.y, data.y[rows])
        np.testing.assert_array_equal(part.group, groups.codes[rows])
        assert part.x.shape[0] == len(part) == len(rows)
        assert not set(part.table) & set(part.sensitive)
        assert ("c" in part.feature_types) is (encoding == "codes")


def test_made_tables_learn_from_new_rows_and_are_tested_on_the_same(tiny):
    first, second = (tiny.read_table("made-even", seed) for seed in (0, 1))
    (split,) = tiny.make_splits("made-even", 0)
    tables = [data.X.to_numpy() for data, _ in (first, second)]
    np.testing.assert_array_equal(tables[0][split.test], tables[1][split.test])
    assert not (tables[0][split.train] == tables[1][split.train]).any()
    _, groups = first
    codes = first[0].sensitive["group"].str[1:].astype(int)
    np.testing.assert_array_equal(groups.codes, codes)  # the order of the known probabilities


def test_age_becomes_an_attribute_and_is_no_input():
    data = make_biased(4, random_state=0)
    data.X["age"] = [29, 30, 44, 45]
    found = _with_age(data)
    assert "age" not in found.X
    expected = ["under 30", "30 to 44", "30 to 44", "45 and over"]
    pd.testing.assert_series_equal(
        found.sensitive["age"], pd.Series(expected, name="age"), check_dtype=False
    )


def test_tables_of_the_protocol():
    assert {name for name, table in TABLES.items() if table.with_attributes} == {
        *("adult-with-attributes", "compas-with-attributes"),
    }
    assert {name for name, table in TABLES.items() if table.folds} == {
        *("compas", "compas-with-attributes", "german", "heart"),
    }
