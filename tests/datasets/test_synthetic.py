from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from apfex.datasets import make_biased

N = 200_000
# Five standard deviations of a share in a quarter of the rows (each at most 0.5 / sqrt(N / 4)).
BOUND = 5 * 0.5 / np.sqrt(N / 4)


def rates(data, by):
    return data.sensitive.assign(y=data.y).groupby(by)["y"].mean()


def gap(values):
    return float(np.ptp(values.to_numpy()))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("crossing", [0.25, 0.55, 0.55, 0.25]),
        ("marginal", [0.25, 0.25, 0.55, 0.55]),
        ("none", [0.4, 0.4, 0.4, 0.4]),
    ],
)
def test_true_rates_are_those_of_the_docstring(kind, expected):
    true_rates = make_biased(10, kind=kind, strength=0.3, base_rate=0.4).true_rates
    assert true_rates is not None
    assert true_rates.tolist() == pytest.approx(expected)
    groups = [("female", "north"), ("female", "south"), ("male", "north"), ("male", "south")]
    assert true_rates.index.tolist() == groups


@pytest.mark.parametrize("kind", ["crossing", "marginal", "none"])
def test_groups_have_the_documented_rates(kind):
    data = make_biased(N, kind=kind, strength=0.3, base_rate=0.4, random_state=1)
    assert data.true_rates is not None
    found = rates(data, ["sex", "origin"])
    assert (found - data.true_rates).abs().max() < BOUND
    sizes = data.sensitive.value_counts()
    assert (sizes / N - 0.25).abs().max() < BOUND
    assert abs(data.y.mean() - 0.4) < BOUND


@pytest.mark.parametrize(
    ("kind", "sex", "origin", "both"),
    [("crossing", 0, 0, 0.3), ("marginal", 0.3, 0, 0.3), ("none", 0, 0, 0)],
)
def test_gaps_lie_where_they_should(kind, sex, origin, both):
    data = make_biased(N, kind=kind, strength=0.3, random_state=2)
    assert abs(gap(rates(data, ["sex"])) - sex) < 2 * BOUND
    assert abs(gap(rates(data, ["origin"])) - origin) < 2 * BOUND
    assert abs(gap(rates(data, ["sex", "origin"])) - both) < 2 * BOUND


def test_a_model_without_the_attributes_is_unfair_at_the_crossing_only():
    data = make_biased(N, kind="crossing", strength=0.4, random_state=3)
    merit = data.X["merit_1"].to_numpy() + data.X["merit_2"].to_numpy()
    chosen = replace(data, y=(merit > 1).astype(int))
    assert gap(rates(chosen, ["sex", "origin"])) > 0.15
    assert gap(rates(chosen, ["sex"])) < 2 * BOUND
    assert gap(rates(chosen, ["origin"])) < 2 * BOUND


def test_same_seed_same_table():
    one, two, three = (make_biased(50, random_state=seed) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(one.X, two.X)
    pd.testing.assert_frame_equal(one.sensitive, two.sensitive)
    assert not one.X.equals(three.X)
    assert list(one.X.index) == list(one.sensitive.index)
    assert set(one.y) == {0, 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n must be an integer of at least 1, got 0"),
        ({"kind": "crossed"}, "kind must be one of crossing, marginal, none, got 'crossed'"),
        ({"strength": 0.9, "base_rate": 0.2}, "must lie between 0 and 1, got base_rate=0.2"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_biased(**arguments)
