"""Trivial decisions and groups that are levelled down: one definition each."""

import numpy as np
import pytest
import torch

from apfex.metrics import (
    balanced_accuracy,
    class_recalls,
    is_trivial,
    is_trivial_table,
    levelled_down,
)


def draw(n, c, right, seed=0):
    """Labels, and decisions of which about so many are right."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, c, n)
    decided = np.where(rng.random(n) < right, y, rng.integers(0, c, n))
    return torch.from_numpy(y), torch.from_numpy(decided)


@pytest.mark.parametrize("c", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_recall_is_the_balanced_accuracy(c, weighted):
    y, decided = draw(300, c, 0.5)
    weight = torch.rand(300, dtype=torch.float64) if weighted else None
    expected = balanced_accuracy(y, decided, sample_weight=weight)
    assert float(class_recalls(decided, y, c, weight).mean()) == pytest.approx(expected)


@pytest.mark.parametrize("c", [2, 3])
def test_constants_and_coins_are_trivial_and_good_models_are_not(c):
    y, good = draw(20_000, c, 0.8)
    coin = draw(20_000, c, 0.0)[1]
    nearly = torch.zeros_like(y)
    nearly[:3] = 1
    found = is_trivial(torch.stack([y * 0, y * 0 + 1, nearly, coin, good]), y, c)
    assert found.tolist() == [True] * 4 + [False]


def test_the_bound_is_two_points_and_the_noise_of_the_rows():
    y = torch.tensor([0, 1] * 5_000)
    for right, expected in ((0.51, True), (0.56, False)):
        n_right = round(5_000 * right)
        decided = y.clone()
        for label in (0, 1):
            decided[(y == label).nonzero()[n_right:, 0]] = 1 - label
        assert bool(is_trivial(decided, y, 2)) == expected
    few, many = (draw(n, 2, 0.02, seed=1) for n in (60, 60_000))
    assert not is_trivial(few[1], few[0], 2)  # so few rows might hide a better model
    assert is_trivial(many[1], many[0], 2)


@pytest.mark.parametrize("c", [2, 3])
def test_counts_of_weighted_rows_tell_the_same_as_the_rows(c):
    """Near the bound, where it matters by how many rows of a class the noise is told."""
    found, expected = [], []
    for seed in range(200):
        y, decided = draw(300, c, 0.0, seed)
        decided[:100] = 0  # columns of the table are not as full as its rows
        weight = torch.from_numpy(np.random.default_rng(seed).exponential(1, 300))
        rows, sums, squares = (
            np.bincount(y * c + decided, part, c * c).reshape(c, c)
            for part in (None, weight, weight**2)
        )
        found.append(bool(is_trivial_table(rows, sums, squares)))
        expected.append(bool(is_trivial(decided, y, c, weight)))
    assert found == expected
    assert 0.05 < np.mean(expected) < 0.95


def test_a_class_without_weight_is_left_out():
    y, decided = draw(200, 3, 0.9)
    weight = (y != 2).double()
    kept = y != 2
    assert bool(is_trivial(decided, y, 3, weight)) == bool(is_trivial(decided[kept], y[kept], 3))
    assert class_recalls(decided, y, 3, weight).isnan().tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ([-0.1, 0.0, -0.2], [True, False, True]),
        ([-0.1, 0.006, -0.2], [False, False, False]),
        ([-0.1, 0.005, -0.005], [True, False, False]),
        ([0.0, 0.0, 0.0], [False, False, False]),
        ([-1, 0, 0], [True, False, False]),
    ],
)
def test_levelled_down_are_those_who_lose_where_nobody_gains(change, expected):
    assert levelled_down(np.array(change)).tolist() == expected
