from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from tests.generators import people

from apfex import audit, metrics
from apfex.groups import make_groups
from apfex.metrics import (
    accuracy,
    dp_gap,
    equalized_odds_gap,
    group_rates,
    tpr_gap,
    worst_group_accuracy,
)
from apfex.rates import RATES, RateName

GAPS: dict[RateName, Any] = {name: getattr(metrics, f"{name}_gap") for name in RATES}


def test_every_form_of_input_gives_the_same_gap():
    y, decided, table, weight = people(n=60)
    expected = equalized_odds_gap(y, decided, sensitive_features=table, sample_weight=weight)
    for form in (list, tuple, pd.Series, pl.Series, torch.tensor, lambda v: v.astype(float)):
        found = equalized_odds_gap(
            form(y), form(decided), sensitive_features=table, sample_weight=form(weight)
        )
        assert found == expected
    for frame in (pd.DataFrame(table), pl.DataFrame(table), make_groups(table)):
        found = equalized_odds_gap(y, decided, sensitive_features=frame, sample_weight=weight)
        assert found == expected


@pytest.mark.parametrize(
    ("values", "pos_label"), [((-1, 1), 1), (("no", "yes"), "yes"), ((2, 5), 5), ((False, True), 1)]
)
def test_two_labels_of_any_kind_have_a_positive_one(values, pos_label):
    y, decided, table, _ = people(n=60)
    labels = np.array(values)
    for gap in GAPS.values():
        expected = gap(y, decided, sensitive_features=table)
        found = gap(labels[y], labels[decided], sensitive_features=table, pos_label=pos_label)
        assert found == expected


@pytest.mark.parametrize("values", [(0, 2), ("no", "yes")])
def test_accuracy_has_no_positive_label(values):
    y, decided, table, _ = people(n=60)
    renamed = np.array(values)[y], np.array(values)[decided]
    call: dict[str, Any] = {"sensitive_features": table}
    for measure in (
        metrics.accuracy_gap,
        metrics.worst_group_accuracy,
        partial(metrics.gap_inference, rate="accuracy", n_draws=99),
        partial(metrics.gap_inference, rate="accuracy", n_draws=99, grouping="attributes"),
    ):
        assert measure(*renamed, **call) == measure(y, decided, **call)
    rates = group_rates(*renamed, rate="accuracy", **call)
    pd.testing.assert_frame_equal(rates, group_rates(y, decided, rate="accuracy", **call))
    assert metrics.accuracy_gap(["n"] * 4, ["n"] * 4, sensitive_features=list("aabb")) == 0.0
    with pytest.raises(ValueError, match="pos_label must be one of the two labels, got 1"):
        group_rates(*renamed, rate="dp", **call)


def test_the_other_positive_label_swaps_the_rates():
    y, decided, table, _ = people(n=60)
    call: dict[str, Any] = {"sensitive_features": table}
    swapped = tpr_gap(y, decided, pos_label=0, **call)
    assert swapped == pytest.approx(metrics.tnr_gap(y, decided, **call))


def test_a_constant_predictor_has_no_gap():
    assert dp_gap(None, ["no"] * 4, sensitive_features=list("aabb"), pos_label="yes") == 0.0
    assert dp_gap(None, [0] * 4, sensitive_features=list("aabb")) == 0.0


BAD = [
    ({"y_pred": [0, 1]}, "y_pred must have one entry per row of y_true \\(4\\), got 2"),
    ({"sensitive_features": list("abb")}, "sensitive_features must have .* \\(4\\), got 3"),
    ({"sample_weight": [1.0]}, "sample_weight must have one entry .* \\(4\\), got 1"),
    ({"sample_weight": [1, 1, -1, 1]}, "at least 0, got -1"),
    ({"sample_weight": [1, 1, np.nan, 1]}, "finite .* got nan"),
    ({"sample_weight": [0, 0, 0, 0]}, "positive somewhere"),
    ({"y_true": []}, "y_true must have at least one row, got 0"),
    ({"y_true": [0, 1, np.nan, 1]}, "y_true must not have missing values, got 1 in 4"),
    ({"y_pred": [0, None, 1, 1]}, "y_pred must not have missing values"),
    ({"y_pred": [0.1, 0.7, 1, 1]}, "y_pred must hold labels, got the number 0.1; .*decisions"),
    ({"y_pred": [0, np.inf, 1, 1]}, "y_pred must hold labels, got the number inf"),
    ({"y_true": np.zeros((4, 1))}, "y_true must have one dimension, got 2; .*ravel"),
    ({"y_pred": [[0], [1], [1], [0]]}, "y_pred must have one dimension"),
    ({"y_true": pd.DataFrame({"y": [0, 1, 1, 0]})}, "y_true must have one dimension"),
    ({"y_true": None}, "y_true must be given for the rate 'tpr'"),
    (
        {"grouping": "pairs"},
        "grouping must be one of \\['intersectional', 'attributes'\\].*'pairs'",
    ),
    ({"min_count": 0}, "min_count must be at least 1, got 0"),
    ({"pos_label": "yes"}, "pos_label must be .* got 'yes' while the labels found are \\[0, 1\\]"),
    ({"y_true": list("nnyy"), "y_pred": list("nyny")}, "got 1 while the labels .*'n', 'y'"),
    (
        {"y_true": list("nnnn"), "y_pred": list("nnnn")},
        "got 1 while the labels found are \\['n'\\]",
    ),
    (
        {"y_true": pd.Series([0, 1, 1, 0]), "y_pred": pd.Series([0, 1, 1, 0], index=[3, 2, 1, 0])},
        "y_pred must have the index of y_true.*to_numpy",
    ),
    (
        {
            "y_true": pd.Series([0, 1, 1, 0]),
            "sensitive_features": {"a": pd.Series(list("aabb"), index=[3, 2, 1, 0])},
        },
        "sensitive_features must have the index of y_true",
    ),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_input_is_named(change, message):
    call: dict[str, Any] = {
        "y_true": [0, 1, 1, 0],
        "y_pred": [0, 1, 1, 0],
        "sensitive_features": list("abab"),
    }
    call |= change
    with pytest.raises(ValueError, match=message):
        tpr_gap(call.pop("y_true"), call.pop("y_pred"), **call)


def test_bad_types_and_unknown_rates_are_named():
    with pytest.raises(TypeError, match=r"y_pred must be a list.*got int"):
        dp_gap(None, 3, sensitive_features=list("ab"))
    with pytest.raises(TypeError, match="sample_weight must hold numbers"):
        dp_gap(None, [0, 1], sensitive_features=list("ab"), sample_weight=["x", "y"])
    with pytest.raises(ValueError, match=r"rate must be one of .*'dp'.*, got 'ddp'"):
        group_rates(None, [0, 1], rate="ddp", sensitive_features=list("ab"))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("frame", [pd.DataFrame, make_groups])
def test_inputs_stay_untouched(frame):
    y, decided, table, weight = people()
    copies = y.copy(), decided.copy(), weight.copy()
    equalized_odds_gap(y, decided, sensitive_features=frame(table), sample_weight=weight)
    for before, after in zip(copies, (y, decided, weight), strict=True):
        assert np.array_equal(before, after)


YES_NO, ONE_ZERO = ["yes", "no"] * 10, [1, 0] * 10


@pytest.mark.parametrize(
    ("truth", "decided", "why"),
    [
        (YES_NO, ONE_ZERO, "text is never equal to any other value"),
        (ONE_ZERO, ["1", "0"] * 10, "text is never equal to any other value"),
        ([True, False] * 10, ["True", "False"] * 10, "text is never equal to any other value"),
        ([1] * 20, ["yes"] * 20, "text is never equal to any other value"),
        (YES_NO, ["Yes", "No"] * 10, "'No' and 'no' would count as two labels"),
        (YES_NO, ["yes ", "no"] * 10, "'yes' and 'yes ' would count as two labels"),
        ([*YES_NO, "Yes"], [*YES_NO, "yes"], "'Yes' and 'yes' would count as two labels"),
        ([-1, 1] * 10, ONE_ZERO, "together these would be 3 labels"),
        (YES_NO, ["approved", "declined"] * 10, "together these would be 4 labels"),
        (YES_NO, ["approved"] * 20, "together these would be 3 labels"),
        (list("abc"), list("def"), "together these would be 6 labels"),
        (["yes", "Yes", "no"], ["yes", "Yes", "no"], "'Yes' and 'yes' would count as two labels"),
        (["1", "2", "3"], ["1.0", "2", "3"], "'1' and '1.0' would count as two labels"),
        ([0, 1, "yes"], [0, 1, 1], "text is never equal to any other value"),
    ],
)
def test_labels_and_decisions_in_different_words_are_refused(truth, decided, why):
    people = ["F", "M"] * (len(truth) // 2) + ["F"] * (len(truth) % 2)
    calls = [
        lambda: dp_gap(truth, decided, sensitive_features=people, pos_label=truth[0]),
        lambda: audit(truth, decided, sensitive_features=people, favorable_label=truth[0]),
        lambda: accuracy(truth, decided),
        lambda: worst_group_accuracy(truth, decided, sensitive_features=people),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="y_pred must be written as y_true is") as error:
            call()
        assert why in str(error.value)
        for value in {*truth, *decided}:
            assert repr(value) in str(error.value)


@pytest.mark.parametrize(
    ("decided", "favorable"),
    [
        (["yes", "Yes", "no"], "yes"),
        (["yes", "yes "], "yes"),
        ([1, "1"], 1),
        (["1", "1.0"], "1"),
    ],
)
def test_decisions_without_labels_spell_a_value_in_one_way(decided, favorable):
    decided, people = np.array(decided * 20, dtype=object), ["F", "M"] * (10 * len(decided))
    found = f"y_pred must spell every label in one way, got {decided[0]!r} and|and {decided[0]!r},"
    for favored in (favorable, decided[1]):
        with pytest.raises(ValueError, match=found):
            audit(None, decided, sensitive_features=people, favorable_label=favored)
    with pytest.raises(ValueError, match=found):
        dp_gap(None, decided, sensitive_features=people, pos_label=favorable)


def test_a_favorable_label_in_another_spelling_is_not_a_label_that_nobody_got():
    with pytest.raises(ValueError, match=r"favorable_label must be one .* 'yes' .* \['Yes'\]"):
        audit(None, ["Yes"] * 4, sensitive_features=["F", "M"] * 2, favorable_label="yes")


@pytest.mark.parametrize(
    ("truth", "decided", "expected"),
    [
        (ONE_ZERO, [True, False] * 10, 1.0),
        (ONE_ZERO, [1.0, 0.0] * 10, 1.0),
        ([0] * 20, [1] * 20, 0.0),
        (["yes"] * 20, ["no"] * 20, 0.0),
        ([0, 1, 2, 1] * 5, [0, 2, 3, 1] * 5, 0.5),
    ],
)
def test_columns_that_merely_lack_a_class_are_fine(truth, decided, expected):
    assert accuracy(truth, decided) == pytest.approx(expected)


@pytest.mark.parametrize("factor", [1e-300, 1e-200, 1e154, 1e300])
def test_weights_whose_squares_are_no_numbers_are_refused(factor):
    weight = np.array([1.0, 2.0, 1.0, 0.0]) * factor
    with pytest.raises(ValueError, match=r"sample_weight must have its largest value between"):
        audit([1, 0, 1, 0], [1, 0, 0, 1], sensitive_features=list("abab"), sample_weight=weight)
