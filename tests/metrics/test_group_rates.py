import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.by_hand import counts

from apfex.groups import make_groups
from apfex.metrics import GroupRates
from apfex.rates import count_rows


def rates_of_rows(decided, groups, weight) -> GroupRates:
    counted = count_rows(None, np.asarray(decided), make_groups(groups), np.asarray(weight))
    return GroupRates.of(counted, "dp")


@given(counts())
def test_equal_weights_give_back_the_counts(data):
    successes, totals = map(np.array, data)
    decided = np.concatenate([np.arange(n) < x for x, n in zip(*data, strict=True)]).astype(int)
    groups = np.repeat(np.arange(len(totals)), totals)
    for weight in (1.0, 0.3, 7.0):
        found = rates_of_rows(decided, groups, np.full(len(decided), weight))
        assert found.successes[0].tolist() == successes.tolist()
        assert found.totals[0].tolist() == totals.tolist()


@given(st.lists(st.tuples(st.floats(1e-3, 1e3), st.booleans()), min_size=1, max_size=30))
def test_unequal_weights_count_for_fewer_rows(rows):
    weights, decided = zip(*rows, strict=True)
    total, squares = math.fsum(weights), math.fsum(w * w for w in weights)
    found = rates_of_rows(np.array(decided, dtype=int), ["a"] * len(rows), weights)
    ((x,),), ((n,),) = found.successes, found.totals
    assert 1 <= n <= len(weights)
    assert n == pytest.approx(total**2 / squares, abs=0.51)
    assert 0 <= x <= n


def test_groups_without_weight_count_for_no_rows():
    found = rates_of_rows([1, 0, 1], ["a", "b", "b"], [0.0, 1.0, 1.0])
    assert found.totals.tolist() == [[0, 2]]
    assert found.counted.tolist() == [[False, True]]


def test_the_widest_table_is_the_one_that_is_not_known():
    groups = make_groups(["F", "F", "M", "M"])
    counted = count_rows(np.array([1, 0, 0, 0]), np.array([1, 0, 1, 1]), groups)
    tables: list[Any] = [GroupRates.of(counted, rate) for rate in ("dp", "fpr", "tpr")]
    assert GroupRates.widest(tables[:2]).rate == "fpr"
    assert GroupRates.widest(tables).rate == "tpr"
