"""Figures on validation rows are those of the metrics, and rules choose as they say."""

import numpy as np
import pytest
import torch
from reproduction.tests.baselines.tables import DATA

from apfex.front import FrontPoint, ParetoFront
from apfex.groups import make_groups
from apfex.metrics import accuracy, dp_gap, tpr_gap
from apfex_reproduction.baselines._inputs import Rows
from apfex_reproduction.baselines._judge import Judge, Snapshot, check_rule, choose

WEIGHT = np.random.default_rng(0).random(600) + 0.5


def judge(weight=None, axes=(("dp", 0), ("tpr", 1)), y=DATA.y):
    return Judge(Rows(DATA.X, y, make_groups(DATA.sensitive), weight), axes)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_values_are_those_of_the_metrics(weight):
    decisions = np.random.default_rng(1).integers(0, 2, (3, 600))
    found = judge(weight)
    assert found.names == ["error", "sex_dp_gap", "origin_tpr_gap"]
    for row, values in zip(decisions, found.values(torch.from_numpy(decisions)), strict=True):
        given = {"sample_weight": weight}
        expected = [
            1 - accuracy(DATA.y, row, **given),
            dp_gap(DATA.y, row, sensitive_features=DATA.sensitive["sex"], **given),
            tpr_gap(DATA.y, row, sensitive_features=DATA.sensitive["origin"], **given),
        ]
        np.testing.assert_allclose(values, expected)


def test_constants_and_what_is_no_better_are_flagged():
    coin = np.random.default_rng(99).integers(0, 2, 600)
    nearly = np.where(np.arange(600) < 3, DATA.y, 0)
    decisions = np.stack([0 * DATA.y, 0 * DATA.y + 1, coin, nearly, DATA.y, 1 - DATA.y])
    flags = judge().constant(torch.from_numpy(decisions))
    assert flags.tolist() == [True, True, False, True, False, True]
    large = Rows(None, np.tile(DATA.y, 100), make_groups(np.tile(np.arange(600) % 2, 100)))
    assert Judge(large, []).constant(torch.from_numpy(np.tile(coin, 100)[None]))[0]


def test_gaps_that_cannot_be_told_are_left_out():
    y = np.where(DATA.sensitive["sex"] == "male", DATA.y, 0)
    with pytest.warns(UserWarning, match=r"Gaps \['sex_tpr_gap'\] are left out of the choice"):
        found = judge(axes=(("dp", 0), ("tpr", 0)), y=y)
    assert found.names == ["error", "sex_dp_gap"]


POINTS = [
    ((0.15, 0.30, 0.20), 1, False),
    ((0.18, 0.10, 0.12), 2, False),
    ((0.20, 0.02, 0.11), 3, False),
    ((0.24, 0.00, 0.00), 4, True),
]


def archive():
    return ParetoFront(
        [FrontPoint(values, Snapshot(place, None, constant)) for values, place, constant in POINTS]
    )


@pytest.mark.parametrize(
    ("rule", "min_accuracy", "place"),
    [
        ("last", None, 9),
        ("nearest", None, 3),
        ("accurate", None, 1),
        ("fairest", 0.81, 2),
        ("fairest", 0.8, 3),
        ("fairest", 0.0, 3),  # the constant one is never chosen
    ],
)
def test_rules_choose_as_they_say(rule, min_accuracy, place):
    last = FrontPoint((0.5, 0.5, 0.5), Snapshot(9, None, False))
    assert choose(archive(), last, rule, min_accuracy).payload.place == place


def test_a_rule_without_candidates_warns_and_takes_the_most_accurate():
    with pytest.warns(UserWarning, match=r"No candidate has validation accuracy 0\.9000"):
        assert choose(archive(), next(iter(archive())), "fairest", 0.9).payload.place == 1


def test_some_values_need_not_count_as_gaps():
    point = choose(archive(), next(iter(archive())), "fairest", 0.0, n_gaps=1)
    assert point.payload.place == 3
    assert choose(archive(), point, "fairest", 0.83, n_gaps=1).payload.place == 1


def test_unknown_rules_are_named():
    with pytest.raises(ValueError, match=r"selection must be one of .* got 'best'"):
        check_rule("best", None)
    with pytest.raises(ValueError, match=r"min_accuracy must lie between 0 and 1 .* got None"):
        check_rule("fairest", None)
