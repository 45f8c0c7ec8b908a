"""What is measured of decisions, against other people's code and on cases worked out by hand."""

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame, selection_rate, true_positive_rate
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from apfex.metrics import dp_gap, tpr_gap, worst_group_accuracy
from apfex_reproduction.experiments._measure import Ruler
from apfex_reproduction.experiments._protocol import Part

GROUPINGS = {"sex": ["sex"], "race": ["race"], "sex x race": ["sex", "race"]}
CROSSING = "sex x race"


def part(y: Any, sex: Any, race: Any) -> Part:
    y = np.asarray(y, dtype=np.int64)
    sensitive = pd.DataFrame({"sex": list(sex), "race": list(race)})
    return Part(pd.DataFrame({"x": np.zeros(len(y))}), y, sensitive)


def people(n: int, seed: int, share: float = 0.5) -> tuple[Part, np.ndarray]:
    """Random rows and decisions that are right more often than not."""
    generator = np.random.default_rng(seed)
    y = generator.random(n) < share
    sex, race = generator.choice(list("fm"), n), generator.choice(list("abc"), n)
    decided = np.where(generator.random(n) < 0.7, y, generator.random(n) < 0.5)
    return part(y, sex, race), decided.astype(np.int64)


def known(gaps: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in gaps.items() if value is not None}


@pytest.mark.parametrize(("n", "seed"), [(14, 2), (300, 1)])  # the small one leaves cells out
def test_it_agrees_with_fairlearn_and_scikit_learn(n, seed):
    rows, decided = people(n, seed)
    found = Ruler(rows, GROUPINGS).measure(decided)
    assert found["accuracy"] == pytest.approx(accuracy_score(rows.y, decided), abs=1e-6)
    balanced = balanced_accuracy_score(rows.y, decided)
    assert found["balanced_accuracy"] == pytest.approx(balanced, abs=1e-6)
    assert found["positive_rate"] == pytest.approx(decided.mean(), abs=1e-6)
    for name, columns in GROUPINGS.items():
        groups = rows.sensitive[columns]
        selected = MetricFrame(
            metrics=selection_rate, y_true=rows.y, y_pred=decided, sensitive_features=groups
        )
        assert found["gaps"][name]["dp"] == pytest.approx(selected.difference(), abs=1e-6)
        positives = rows.y == 1
        rates = MetricFrame(
            metrics=true_positive_rate,
            y_true=rows.y[positives],
            y_pred=decided[positives],
            sensitive_features=groups[positives],
        )
        assert found["gaps"][name]["tpr"] == pytest.approx(rates.difference(), abs=1e-6)
        missing = len(set(map(tuple, groups.to_numpy()))) - len(rates.by_group.dropna())
        assert found.get("left_out", {}).get(name, {}).get("tpr", 0) == missing
        assert missing == 0 or n == 14


@given(st.integers(12, 300), st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_it_agrees_with_our_own_metrics(n, seed):
    rows, decided = people(n, seed)
    found = Ruler(rows, GROUPINGS).measure(decided)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, columns in GROUPINGS.items():
            groups, gaps = rows.sensitive[columns], found["gaps"][name]
            for rate, gap in (("dp", dp_gap), ("tpr", tpr_gap)):
                expected = gap(rows.y, decided, sensitive_features=groups)
                if np.isnan(expected):
                    assert gaps[rate] is None
                else:
                    assert gaps[rate] == pytest.approx(expected, abs=1e-6)
        worst = worst_group_accuracy(rows.y, decided, sensitive_features=rows.sensitive)
    assert found["worst_group_accuracy"] == pytest.approx(worst, abs=1e-6)


@given(st.integers(40, 400), st.integers(0, 10_000), st.floats(0.2, 0.8))
@settings(max_examples=30, deadline=None)
def test_no_attribute_has_a_larger_gap_than_the_crossing(n, seed, share):
    """Its rates are averages of the cells' rates; so where no cell is left out."""
    rows, decided = people(n, seed, share)
    found = Ruler(rows, GROUPINGS).measure(decided)
    left_out = found.get("left_out", {}).get(CROSSING, {})
    for rate in ("dp", "tpr"):
        if rate not in left_out:
            for name in ("sex", "race"):
                assert found["gaps"][name][rate] <= found["gaps"][CROSSING][rate] + 2e-6


def test_a_cell_that_is_left_out_may_hide_a_gap_and_is_counted():
    # The women of race b have no positives: the crossing has three rates, all 1 or 0.
    rows = part([1, 1, 0, 0, 1, 1, 1, 1], "ffffmmmm", "aabbaabb")
    found = Ruler(rows, GROUPINGS).measure(np.array([1, 1, 0, 0, 1, 1, 0, 0]))
    assert found["left_out"] == {CROSSING: {"tpr": 1}}
    assert found["gaps"][CROSSING]["tpr"] == 1.0
    assert found["gaps"]["sex"] == {"dp": 0.0, "tpr": 0.5}


def test_a_gap_of_a_single_group_is_not_known():
    rows = part([1, 0, 0, 0], "ffmm", "aabb")
    found = Ruler(rows, GROUPINGS).measure(np.array([1, 0, 1, 0]))
    assert found["gaps"][CROSSING] == {"dp": 0.0, "tpr": None}
    assert found["left_out"] == {name: {"tpr": 1} for name in GROUPINGS}
    assert known(found["gaps"]["sex"]) == {"dp": 0.0}


def test_a_case_worked_out_by_hand():
    rows = part([1, 1, 0, 0, 1, 0], "ffffmm", "abaaab")
    found = Ruler(rows, GROUPINGS).measure(np.array([1, 0, 1, 0, 1, 0]))
    assert found == {
        "accuracy": 0.666667,
        "balanced_accuracy": 0.666667,
        "positive_rate": 0.5,
        "worst_group_accuracy": 0.0,
        "constant": False,
        "gaps": {
            "sex": {"dp": 0.0, "tpr": 0.5},
            "race": {"dp": 0.75, "tpr": 1.0},
            CROSSING: {"dp": 1.0, "tpr": 1.0},
        },
        "left_out": {CROSSING: {"tpr": 1}},
    }


@pytest.mark.parametrize("decision", [0, 1])
def test_the_same_for_everybody_is_constant_and_has_no_gaps(decision):
    rows, _ = people(80, 0)
    found = Ruler(rows, GROUPINGS).measure(np.full(80, decision))
    assert found["constant"] is True
    assert found["positive_rate"] == decision
    assert found["balanced_accuracy"] == 0.5
    assert {gap for gaps in found["gaps"].values() for gap in gaps.values()} == {0.0}


def told(n: int, right: float) -> tuple[Part, np.ndarray]:
    """n rows of each label, and decisions of which so many of either label are right."""
    y = np.repeat([0, 1], n)
    wrong = np.tile(np.arange(n) >= round(right * n), 2)
    return part(y, np.tile(["f", "m"], n), ["a"] * (2 * n)), np.where(wrong, 1 - y, y)


@pytest.mark.parametrize(
    ("n", "right", "constant"),
    [
        (20_000, 0.500, True),
        (20_000, 0.515, True),  # upper limit .519
        (20_000, 0.525, False),
        (100, 0.45, True),  # .45 + 1.645 * .0352 = .508
        (100, 0.50, False),  # .50 + 1.645 * .0354 = .558: too few rows to tell
        (100, 0.46, True),  # .46 + 1.645 * .0352 = .518
        (100, 0.47, False),  # .47 + 1.645 * .0353 = .528
        (50, 0.0, True),  # always wrong is no better than constant either
    ],
)
def test_constant_is_what_is_no_better_than_a_constant(n, right, constant):
    rows, decided = told(n, right)
    assert Ruler(rows, GROUPINGS).measure(decided)["constant"] is constant


def test_a_few_decisions_that_differ_do_not_hide_a_constant():
    y = np.repeat([0, 1], [900, 100])
    rows = part(y, np.tile(["f", "m"], 500), ["a"] * 1000)
    decided = np.zeros(1000, dtype=np.int64)
    decided[-1] = 1  # recalls 1 and .01: .505 + 1.645 * .005 = .513
    assert Ruler(rows, GROUPINGS).measure(decided)["constant"] is True
    decided[-4:] = 1  # recalls 1 and .04: .520 + 1.645 * .010 = .536
    assert Ruler(rows, GROUPINGS).measure(decided)["constant"] is False


def test_without_a_class_balanced_accuracy_is_not_known():
    rows = part([0] * 6, "fffmmm", "ababab")
    found = Ruler(rows, GROUPINGS).measure(np.array([0, 1, 0, 0, 0, 1]))
    assert found["balanced_accuracy"] is None
    assert found["constant"] is False
    json.dumps(found, allow_nan=False)


def test_trade_offs_are_those_of_each_decision():
    rows, _ = people(90, 1)
    ruler = Ruler(rows, GROUPINGS)
    decided = np.random.default_rng(0).integers(0, 2, (5, 90))
    together = ruler.trade_offs(decided)
    for one, values in zip(decided, together, strict=True):
        found = ruler.measure(one)
        expected = [1 - found["accuracy"], *found["gaps"][CROSSING].values()]
        np.testing.assert_allclose(values, expected, atol=2e-6)


def test_trade_offs_that_are_not_known_are_not_numbers():
    ruler = Ruler(part([1, 0, 0, 0], "ffmm", "aabb"), GROUPINGS)
    assert np.isnan(ruler.trade_offs(np.array([[1, 0, 1, 0]]))).tolist() == [[False, False, True]]


def test_decisions_of_any_kind_of_integer_are_measured_alike():
    rows, decided = people(50, 2)
    ruler = Ruler(rows, GROUPINGS)
    for kind in (np.int32, np.int8, np.float64, bool):
        assert ruler.measure(decided.astype(kind)) == ruler.measure(decided)
