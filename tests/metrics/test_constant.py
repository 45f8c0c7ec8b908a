"""The constant decision against all constant decisions, row by row."""

import math

import numpy as np
import pytest

from apfex.groups import make_groups
from apfex.metrics import best_constant, error_of_counts, gain_share
from apfex.rates import count_rows


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_no_constant_decision_is_better(c, seed, weighted):
    draw = np.random.default_rng(seed)
    y, decided = draw.choice(c, (2, 200), p=draw.dirichlet(np.ones(c)))
    weight = draw.uniform(0.5, 3, 200) if weighted else None
    groups = make_groups({"sex": draw.integers(0, 3, 200)})
    counts = count_rows(y, decided, groups, weight, classes=range(c))
    errors = [np.average(y != label, weights=weight) for label in range(c)]
    found = best_constant(counts)
    assert found is not None
    assert found.place == int(np.argmin(errors))
    assert found.error == pytest.approx(min(errors))
    assert found.balanced_error == pytest.approx(1 - 1 / len(set(y)))
    assert error_of_counts(counts) == pytest.approx(np.average(y != decided, weights=weight))


def test_without_labels_there_is_none():
    groups = make_groups({"sex": [0, 1, 1]})
    assert best_constant(count_rows(None, np.array([0, 1, 1]), groups)) is None


def test_the_way_is_from_the_constant_to_the_best():
    assert gain_share(0.1, constant=0.4, best=0.1) == 1
    assert gain_share(0.4, constant=0.4, best=0.1) == 0
    assert gain_share(0.5, constant=0.4, best=0.1) < 0
    assert math.isnan(gain_share(0.4, constant=0.4, best=0.4))
