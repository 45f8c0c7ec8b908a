from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from apfex.metrics import (
    NotEstimableWarning,
    accuracy,
    balanced_accuracy,
    worst_group_accuracy,
)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_performance_equals_that_of_sklearn(n_classes, weighted):
    generator = np.random.default_rng(0)
    y, decided = generator.integers(0, n_classes, (2, 200))
    weight = generator.uniform(0, 2, 200) if weighted else None
    call: dict[str, Any] = {"sample_weight": weight}
    assert accuracy(y, decided, **call) == pytest.approx(accuracy_score(y, decided, **call))
    assert balanced_accuracy(y, decided, **call) == pytest.approx(
        balanced_accuracy_score(y, decided, **call)
    )
    group = generator.choice(list("abc"), 200)
    worst = min(
        accuracy_score(
            y[group == g],
            decided[group == g],
            sample_weight=None if weight is None else weight[group == g],
        )
        for g in "abc"
    )
    assert worst_group_accuracy(y, decided, sensitive_features=group, **call) == pytest.approx(
        worst
    )


def test_labels_of_any_kind_are_right_where_they_are_equal():
    assert accuracy(["a", "b", "c", "c"], ["a", "b", "a", "b"]) == 0.5
    assert accuracy([-1, 1], torch.tensor([-1, 1])) == 1.0
    assert accuracy([True, False], [1.0, 1.0]) == 0.5


def test_a_class_absent_from_the_labels_is_left_out():
    assert balanced_accuracy([0, 0, 1], [0, 2, 1]) == 0.75
    assert balanced_accuracy([0, 0], [0, 1]) == 0.5
    assert balanced_accuracy([0, 1], [0, 0], sample_weight=[1, 0]) == 1.0


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_a_constant_predictor_is_no_better_than_chance(n_classes):
    y = np.arange(70) % n_classes
    assert balanced_accuracy(y, np.zeros(70, int)) == pytest.approx(1 / n_classes)


def test_small_groups_are_left_out_of_the_worst_and_named():
    call: dict[str, Any] = {"sensitive_features": {"sex": ["F", "F", "M"]}, "min_count": 2}
    with pytest.warns(NotEstimableWarning, match="accuracy is not estimable for 'sex=M'") as seen:
        assert worst_group_accuracy([0, 1, 1], [0, 1, 0], **call) == 1.0
    assert seen[0].filename == __file__
    with pytest.warns(NotEstimableWarning, match="needs 1 estimable groups, got 0 of 2"):
        assert np.isnan(worst_group_accuracy([0, 1, 1], [0, 1, 0], **call | {"min_count": 3}))
    assert worst_group_accuracy([0, 1], [0, 1], sensitive_features=["F", "F"]) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: accuracy([0, 1], [0]), "y_pred must have one entry per row of y_true"),
        (lambda: accuracy([], []), "y_true must have at least one row"),
        (lambda: balanced_accuracy([0, None], [0, 1]), "y_true must not have missing values"),
        (lambda: accuracy([0, 1], [0.2, 0.9]), "y_pred must hold labels"),
        (lambda: accuracy([0, 1], [0, 1], sample_weight=[0, 0]), "sample_weight must be positive"),
        (
            lambda: worst_group_accuracy([0, 1], [0, 1], sensitive_features=["F"]),
            "sensitive_features must have one entry",
        ),
        (
            lambda: worst_group_accuracy(
                pd.Series([0, 1]), [0, 1], sensitive_features=pd.Series(["F", "M"], index=[1, 0])
            ),
            "sensitive_features must have the index of y_true",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
