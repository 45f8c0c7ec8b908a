"""Metrics of confusion counts are scikit-learn's, and their errors those of a jackknife."""

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from apfex.groups import make_groups
from apfex.metrics import counted_metric, read_measures
from apfex.metrics._counted import COUNTED
from apfex.rates import count_rows

codes = hnp.arrays(np.int64, st.shared(st.integers(1, 30), key="n"), elements=st.integers(0, 1))
weights = hnp.arrays(np.float64, st.shared(st.integers(1, 30), key="n"), elements=st.floats(0.1, 9))


def counted(name, y, decided, weight=None):
    counts = count_rows(y, decided, make_groups(np.zeros(len(y))), weight)
    squares = counts.rows if counts.squares is None else counts.squares
    return [float(part[0]) for part in counted_metric(name, counts.sums[0], squares[0])]


@pytest.mark.filterwarnings("ignore")  # scikit-learn warns of labels that do not occur
@settings(max_examples=50)
@given(codes, codes, weights, st.sampled_from(sorted(COUNTED)))
def test_values_are_those_of_scikit_learn(y, decided, weight, name):
    function = getattr(sklearn.metrics, name)
    wanted = function(y, decided, sample_weight=weight)
    assert counted(name, y, decided, weight)[0] == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("name", sorted(COUNTED))
def test_errors_are_those_of_leaving_out_each_row(name):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    decided = np.where(rng.random(400) < 0.7, y, rng.integers(0, 2, 400))
    weight = rng.uniform(0.5, 2, 400)
    function = getattr(sklearn.metrics, name)
    kept = ~np.eye(400, dtype=bool)
    left = np.array([function(y[one], decided[one], sample_weight=weight[one]) for one in kept])
    wanted = np.sqrt(399 / 400 * np.square(left - np.mean(left)).sum())
    assert counted(name, y, decided, weight)[1] == pytest.approx(wanted, rel=0.02)


def test_names_and_functions_are_known():
    named = read_measures(["f1", "balanced_accuracy", "matthews_corrcoef", "auc", "precision"])
    assert [one.counted is not None for one in named] == [True, True, True, False, False]
    assert [one.is_of_sums for one in named] == [True, True, True, False, True]
    own = read_measures({"f1": lambda y, d: sklearn.metrics.f1_score(y, d)})
    assert not own[0].is_of_sums
