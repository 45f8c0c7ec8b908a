import numpy as np
import pytest

from apfex.front import Rows
from apfex.front._rows import split
from apfex.groups import make_groups


def make_rows(codes, y):
    y = np.asarray(y)
    crossing = make_groups(np.asarray(codes))
    return Rows(None, y, np.unique(y), crossing, [crossing], None)


@pytest.mark.parametrize("fraction", [0.05, 0.2, 0.5, 0.9])
def test_the_parts_are_even_within_every_group_and_label(fraction):
    rng = np.random.default_rng(0)
    rows = make_rows(rng.integers(0, 3, 3000), rng.integers(0, 2, 3000))
    train, validation = split(rows, fraction, seed=0)
    assert sorted([*train, *validation]) == list(range(3000))
    assert rows.crossing is not None
    for group in range(3):
        for label in range(2):
            cell = (rows.crossing.codes == group) & (rows.y == label)
            assert abs(cell[validation].sum() - fraction * cell.sum()) <= 1


def test_small_cells_have_rows_in_both_parts():
    codes, y = [0] * 50 + [1] * 2 + [2] * 2, [0, 1] * 25 + [0, 0] + [1, 1]
    for seed in range(20):
        for fraction in (0.01, 0.2, 0.99):
            train, validation = split(make_rows(codes, y), fraction, seed)
            for part in (train, validation):
                assert set(np.array(codes)[part]) == {0, 1, 2}
                assert set(np.array(y)[part]) == {0, 1}


def test_every_row_chooses_as_often_as_any_other():
    rows = make_rows([0] * 30 + [1] + [2] * 29, [0, 1] * 30)
    chosen = np.zeros(60)
    for seed in range(600):
        chosen[split(rows, 0.25, seed)[1]] += 1
    assert np.abs(chosen / 600 - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 600)


def test_the_only_row_of_a_label_is_for_training():
    for seed in range(20):
        train, _ = split(make_rows([0, 1] * 10, [2] + [0, 1] * 9 + [0]), 0.5, seed)
        assert 0 in train


def test_the_split_follows_the_seed():
    rows = make_rows([0, 1] * 50, [0, 0, 1, 1] * 25)
    assert (split(rows, 0.2, 1)[1] == split(rows, 0.2, 1)[1]).all()
    assert set(split(rows, 0.2, 1)[1]) != set(split(rows, 0.2, 2)[1])
