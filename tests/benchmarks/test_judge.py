# pyright: reportMissingImports=false
from dataclasses import replace

import numpy as np
import pytest
from front.judge import (
    Judge,
    counting,
    judge_points,
    pick,
    pool_by_name,
    score,
    score_by_bound,
    score_by_name,
)
from front.tables import Split
from rivals.common import Point

# Two copies of eight rows: shares of positives 1/2 and 1/4, so the best constant errs on 3/8.
Y = np.tile([1, 1, 0, 0, 1, 0, 0, 0], 2)
GROUP = np.tile([0, 0, 0, 0, 1, 1, 1, 1], 2)
FIRST, SECOND = np.arange(8), np.arange(8, 16)
JUDGE = Judge(Y, GROUP, np.array([0, 1]))
FOLDS = [Split(FIRST, FIRST, FIRST), Split(FIRST, FIRST, SECOND)]
PERFECT, NOBODY = Y[:8], np.zeros(8, int)


def point(name, decided):
    return Point(name, decided, decided)


def test_values_by_hand():
    decided = np.array([1, 0, 0, 0, 1, 1, 0, 0])
    assert JUDGE.values(FIRST, decided) == pytest.approx((2 / 8, 1 / 2 - 1 / 4, 1 - 1 / 2))
    assert JUDGE.values(FIRST, PERFECT == 1) == pytest.approx((0, 1 / 4, 0))


@pytest.mark.parametrize("tpr_groups", [[], [0]])
def test_a_gap_that_no_two_groups_tell_is_the_worst(tpr_groups):
    judge = Judge(Y, GROUP, np.array(tpr_groups, int))
    assert judge.values(FIRST, PERFECT) == pytest.approx((0, 1 / 4, 1))
    assert judge.values(FIRST[:4], PERFECT[:4]) == pytest.approx((0, 1, 1))


@pytest.mark.parametrize("decided", [np.zeros(7, int), np.full(8, 2)])
def test_what_is_no_decision_is_refused(decided):
    with pytest.raises(ValueError, match="8 decisions of 0 or 1"):
        JUDGE.values(FIRST, decided)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[0, 0]], 1),
        ([[0.2, 0.25]], 1 / 4),
        ([[0.1, 0.3], [0.2, 0.1]], (0.3 * 0.2 + 0.2 * 0.2) / 0.2),
        ([[0.1, 0.3], [0.2, 0.3]], 0.3 * 0.2 / 0.2),  # the second is dominated
        ([[0.4, 0.0], [0.1, 0.6]], 0),  # on the edge of the box, and beyond
    ],
)
def test_score_is_the_share_of_the_box(values, expected):
    assert score(np.array(values, float), 0.4) == pytest.approx(expected)


def test_points_are_chosen_on_validation_rows_and_scored_on_test_rows():
    points = [
        {"name": "chosen", "validation": [0.1, 0.1, 0.2], "test": [0.2, 0.25, 0.5]},
        {"name": "lucky", "validation": [0.2, 0.2, 0.1], "test": [0.0, 0.0, 0.0]},
    ]
    assert counting(points, "dp").tolist() == [True, False]
    assert counting(points, "tpr").tolist() == [True, True]
    assert score_by_name(points, 0.4) == {"dp": 0.25, "tpr": 1.0}


def test_pooling_by_name_ignores_the_order_of_points():
    fronts = [
        [point("perfect", PERFECT), point("nobody", NOBODY)],
        [point("nobody", NOBODY), point("perfect", PERFECT)],
    ]
    pooled = {p["name"]: p["test"] for p in pool_by_name(JUDGE, FOLDS, fronts)}
    assert pooled == {"perfect": [0, 0.25, 0], "nobody": [0.375, 0, 0]}


def test_pooling_by_bound_by_hand():
    # From bound 1/4 on the first fold picks its perfect point. Together: error 3/16, dp gap 1/8,
    # tpr gap 0. Below, and for the second fold always, nobody: error 3/8, which has no volume.
    fronts = [[point("a", PERFECT), point("b", NOBODY)], [point("c", NOBODY)]]
    found = score_by_bound(JUDGE, FOLDS, fronts, 3 / 8)
    assert found == pytest.approx({"dp": 1 / 2 * 3 / 4, "tpr": 1 / 2})


def test_pick():
    errors, gaps = np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.2, 0.1])
    assert [pick(errors, gaps, bound) for bound in (0.05, 0.1, 0.3, 0.4)] == [2, 2, 1, 0]


@pytest.fixture
def truth(tiny):
    """Fronts whose one point decides by the label."""
    y = tiny.read_table("tiny")[0].y
    splits = tiny.make_splits("tiny", 0)
    return [[Point("truth", y[split.validation], y[split.test])] for split in splits]


def test_the_truth_has_no_error_and_no_tpr_gap(truth):
    found = judge_points("tiny", 0, truth)
    assert found["hypervolume"]["tpr"] == found["hypervolume_by_bound"]["tpr"] == 1
    assert 0 < found["hypervolume"]["dp"] < 1
    assert (found["pooled_by"], found["n_points"], found["n_constant"]) == ("name", 1, 0)


def test_folds_with_other_names_are_pooled_by_bound(truth):
    renamed = [[replace(p, name=str(fold)) for p in front] for fold, front in enumerate(truth)]
    found = judge_points("tiny", 0, renamed)
    assert found["pooled_by"] == "bound"
    assert found["points"] == []
    assert found["hypervolume"] == found["hypervolume_by_bound"]


@pytest.mark.parametrize("n_points", [0, 2])
def test_points_need_names_of_their_own(truth, n_points):
    with pytest.raises(ValueError, match="at least one point"):
        judge_points("tiny", 0, [front * n_points for front in truth])
