"""Our front beside what others have, on cases that can be worked out by hand."""

from typing import Any

import pytest
from reproduction.tests.experiments.invented import record, result

from apfex_reproduction.experiments._compare import compare_front
from apfex_reproduction.experiments._layouts import comparison_grid
from apfex_reproduction.experiments._text import to_text

PARTS = ("validation", "test")


def front(*points, seed=0, dataset="own"):
    """A front of (accuracy, gap) on validation rows and on test rows."""
    made = [
        {
            part: result(accuracy, gap, gap)
            for part, (accuracy, gap) in zip(PARTS, point, strict=True)
        }
        for point in points
    ]
    return record("front", seed, {}, dataset, points=made)


def run(accuracy, gap, method="apfex-inter", seed=0, dataset="own", **more):
    return record(method, seed, {"nearest": result(accuracy, gap, gap, **more)}, dataset)


def first(records) -> Any:
    return next(c for c in compare_front(records) if c.criterion == "dp")


def test_a_row_is_reached_by_accuracy_at_least_and_gap_at_most():
    ours = front(((0.80, 0.05), (0.80, 0.05)))
    assert first([run(0.80, 0.05), ours]).reached
    assert not first([run(0.81, 0.05), ours]).reached
    assert not first([run(0.80, 0.04), ours]).reached


def test_means_over_seeds_decide_not_single_runs():
    ours = [
        front(((0.80, 0.05), (0.84, 0.02))),
        front(((0.80, 0.05), (0.76, 0.08)), seed=1),
    ]
    theirs = [run(0.80, 0.05, seed=0), run(0.80, 0.05, seed=1)]
    found = first([*theirs, *ours])
    assert (found.rung.accuracy, found.rung.gap) == (pytest.approx(0.8), pytest.approx(0.05))
    assert found.reached


def test_points_are_chosen_on_validation_rows_alone():
    lucky = ((0.70, 0.05), (0.99, 0.00))  # best in the test, worst before it
    likely = ((0.80, 0.05), (0.60, 0.30))
    found = first([run(0.75, 0.10), front(lucky, likely)])
    assert not found.reached
    assert found.rung.accuracy == 0.60


def test_a_smaller_bound_may_reach_what_the_rows_own_gap_does_not():
    loose = ((0.82, 0.05), (0.82, 0.09))
    tight = ((0.81, 0.02), (0.81, 0.05))
    found = first([run(0.80, 0.05), front(loose, tight)])
    assert found.reached
    assert not found.reached_blind
    assert found.rung.bound < 0.05


def test_constant_points_never_count():
    constant = result(0.76, 0.0, 0.0, constant=True)
    other = result(0.80, 0.2, 0.2)
    points = [{"validation": constant, "test": constant}, {"validation": other, "test": other}]
    ours = record("front", 0, {}, "own", points=points)
    assert not first([run(0.7, 0.1), ours]).reached
    only = record("front", 0, {}, "own", points=points[:1])
    assert not first([run(0.7, 0.1), only]).reached


def test_rows_with_constant_runs_are_in_doubt():
    theirs = [run(0.76, 0.0, seed=0, constant=True), run(0.8, 0.1, seed=1)]
    assert first([*theirs, front(((0.8, 0.0), (0.8, 0.0)))]).doubts == ("CONST 1/2",)


def test_without_a_front_nothing_is_said():
    found = first([run(0.8, 0.1)])
    assert (found.reached, found.reached_blind, found.rung) == (None, None, None)


def test_every_row_and_every_gap_is_compared_and_constants_and_the_front_are_not():
    methods = ("plain", "smamo-1-dp", "something")
    records = [run(0.8, 0.1, method) for method in (*methods, "always-0")]
    found = compare_front([*records, front(((0.8, 0.1), (0.8, 0.1)))])
    assert [(c.method, c.criterion) for c in found] == [
        (method, criterion) for method in methods for criterion in ("dp", "tpr")
    ]


@pytest.mark.parametrize(
    ("method", "by"),
    [
        ("mmamo-1", "age"),
        ("mmamo-2", "sex"),
        ("mmamo-multi", "worse attribute"),
        ("apfex-inter-dp", "age x sex"),
        ("plain", "age x sex"),
    ],
)
def test_a_row_is_judged_where_its_method_works(method, by):
    gaps = {
        name: {"dp": gap, "tpr": gap}
        for name, gap in {"age": 0.1, "sex": 0.2, "age x sex": 0.3}.items()
    }
    theirs = record(method, 0, {"nearest": result(gaps=gaps)}, "own")
    found = first([theirs, front(((0.9, 0.0), (0.9, 0.0)))])
    assert found.by == by
    assert found.gap == gaps.get(by, gaps["sex"])["dp"]


def test_the_papers_rows_are_compared_within_their_rounding():
    exact = front(((0.82185, 0.25894), (0.82185, 0.25894)), dataset="heart")
    found = {(c.source, c.method, c.criterion): c for c in compare_front([exact])}
    plain = found["Table 1", "plain", "dp"]
    assert (plain.accuracy, plain.gap, plain.by) == (0.8219, 0.2589, "age")
    assert plain.reached
    assert not plain.doubts
    assert ("Table 2", "plain", "dp") not in found  # it is the same row again
    assert found["Table 2", "apfex-multi", "dp"].by == "worse attribute"
    inter = found["Table 2", "apfex-inter", "tpr"]
    assert inter.doubts == ("F1",)
    assert not inter.reached
    assert found["Table 1", "apfex-1", "tpr"].doubts == ("F7a",)


@pytest.mark.parametrize(
    ("accuracy", "gap", "verdict"),
    [
        ((0.95, 0.96), (0.01, 0.02), "yes"),
        ((0.60, 0.61), (0.01, 0.02), "no"),  # surely less accurate
        ((0.95, 0.96), (0.50, 0.51), "no"),  # surely less fair
        ((0.81, 0.84), (0.20, 0.26), "cannot be told"),
    ],
)
def test_a_row_is_reached_only_if_both_intervals_say_so(accuracy, gap, verdict):
    """Beside Heart's baseline, .8219 and a gap of .2589."""
    runs = [
        front(((a, 0.0), (a, g)), dataset="heart") | {"seed": seed}
        for seed, (a, g) in enumerate(zip(accuracy, gap, strict=True))
    ]
    twenty = [run | {"seed": run["seed"] + 2 * k} for k in range(10) for run in runs]
    (found,) = (c for c in compare_front(twenty) if (c.method, c.criterion) == ("plain", "dp"))
    assert found.sure is not None
    assert found.sure.verdict == verdict


def test_gaps_that_cannot_be_estimated_are_not_compared():
    theirs = record("plain", 0, {"chosen": result(tpr=None)}, "own")
    found = compare_front([theirs, front(((0.9, 0.0), (0.9, 0.0)))])
    assert [c.criterion for c in found] == ["dp"]
    blind = {"validation": result(tpr=None), "test": result(tpr=None)}
    ours = record("front", 0, {}, "own", points=[blind])
    found = {c.criterion: c.reached for c in compare_front([run(0.7, 0.3), ours])}
    assert found == {"dp": True, "tpr": None}


def test_only_one_split_is_compared():
    assert compare_front([run(0.8, 0.1) | {"split": "mamo"}]) == []


def test_the_listing_puts_credible_rows_first():
    ours = front(((0.9, 0.0), (0.9, 0.0)), dataset="heart")
    grid = comparison_grid(compare_front([ours]))
    assert [title for title, _ in grid.sections] == [
        "Credible rows",
        "Rows that are not credible",
    ]
    text = to_text(grid)
    assert "heart: Baseline" in text
    assert "yes" in text
