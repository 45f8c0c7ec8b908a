import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from apfex.front import FrontPoint, ParetoFront, hypervolume, non_dominated

# Few distinct numbers, so that ties and copies are common.
numbers = st.integers(0, 6).map(lambda number: number / 4)


@st.composite
def point_sets(draw, least=0):
    m = draw(st.integers(1, 4))
    rows = draw(st.lists(st.tuples(*[numbers] * m), min_size=least, max_size=30))
    return np.array(rows, dtype=float).reshape(len(rows), m)


def brute_force_mask(values):
    """No other point is as good in every objective and better in one."""
    as_good = (values[:, None] <= values).all(-1)
    return ~(as_good & (values[:, None] < values).any(-1)).any(0)


@given(point_sets(least=1))
def test_mask_equals_brute_force_in_numpy_and_torch(values):
    before = values.copy()
    expected = brute_force_mask(values).tolist()
    assert non_dominated(values).tolist() == expected
    mask = non_dominated(torch.from_numpy(values))
    assert mask.dtype == torch.bool
    assert mask.tolist() == expected
    assert np.array_equal(values, before)


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_mask_of_many_points_with_ties_equals_brute_force(m):
    values = np.random.default_rng(m).integers(0, 12, (300, m)) / 4
    assert (non_dominated(values) == brute_force_mask(values)).all()


def test_mask_takes_many_points_on_a_front_without_a_square_matrix():
    angle = np.linspace(0, np.pi / 2, 200_000)
    arc = 1 - np.stack([np.cos(angle), np.sin(angle)], axis=1)
    assert non_dominated(arc).all()
    assert not non_dominated(np.concatenate([arc, arc + 0.1]))[200_000:].any()


def test_mask_of_awkward_values():
    assert non_dominated(np.zeros((0, 3))).tolist() == []
    assert non_dominated(ParetoFront().values).tolist() == []
    assert non_dominated(np.array([[0.0, -0.0], [-0.0, 0.0]])).tolist() == [True, True]
    assert non_dominated(np.array([[1.0, np.inf], [np.inf, np.inf]])).tolist() == [True, False]
    assert non_dominated(np.array([[1.0, 0.0, np.inf], [1.0, 0.0, 5.0]])).tolist() == [False, True]
    with pytest.raises(ValueError, match="no NaN, got shape \\[1, 2\\] with 1 NaN"):
        non_dominated(np.array([[np.nan, 0.0]]))
    with pytest.raises(ValueError, match="shape \\[n, m\\]"):
        non_dominated(np.zeros(3))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int64])
def test_lists_and_tensors_of_any_dtype_are_points(dtype):
    rows = [[0, 2], [1, 1], [1, 2]]
    mask = non_dominated(rows)
    assert isinstance(mask, np.ndarray)
    assert mask.tolist() == [True, True, False]
    tensor = torch.tensor(rows, dtype=dtype)
    assert torch.equal(non_dominated(tensor), torch.tensor([True, True, False]))
    assert hypervolume(tensor, [3, 3]) == hypervolume(rows, [3, 3]) == 5.0
    front = ParetoFront(rows)
    assert not front.insert(tensor[2])
    assert front.nearest(tensor[2]).values == (0.0, 2.0)


def test_points_without_objectives_do_not_dominate_each_other():
    assert non_dominated(np.zeros((3, 0))).tolist() == [True] * 3
    assert non_dominated(np.zeros((0, 2))).shape == (0,)


def test_dominance_needs_one_strict_improvement():
    assert non_dominated([[0.0, 1.0], [0.0, 2.0]]).tolist() == [True, False]
    assert non_dominated([[0.0, 1.0], [0.0, 1.0]]).all()
    assert non_dominated([[0.0, 1.0], [1.0, 0.0]]).all()


@given(point_sets(least=1), st.randoms(use_true_random=False))
def test_front_has_the_same_values_in_any_order(values, random):
    rows = [tuple(row) for row in values.tolist()]
    shuffled = random.sample(rows, len(rows))
    kept = values[brute_force_mask(values)].tolist()
    expected = sorted({tuple(row) for row in kept})
    for order in (rows, shuffled):
        assert [point.values for point in ParetoFront(order)] == expected


@given(point_sets(least=1))
def test_insert_says_whether_the_point_is_on_the_front(values):
    front = ParetoFront()
    for number, row in enumerate(values):
        entered = front.insert(row, number)
        assert entered == any(point.payload == number for point in front)


def test_equal_values_keep_the_first_payload():
    front = ParetoFront()
    assert front.insert([0.5, 0.5], "first")
    assert not front.insert([0.5, 0.5], "second")
    assert [point.payload for point in front] == ["first"]


@given(point_sets(least=1))
def test_hypervolume_equals_a_count_of_cells(values):
    reference = np.full(values.shape[1], 1.25)
    # Values lie on a grid of width 1/4, so the volume is a number of cells.
    axes = [np.arange(5) / 4] * values.shape[1]
    corners = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, values.shape[1])
    covered = (values[:, None] <= corners).all(axis=-1).any(axis=0).sum()
    expected = covered / 4 ** values.shape[1]
    assert hypervolume(values, reference) == pytest.approx(expected)
    assert hypervolume(ParetoFront(values).values, reference) == pytest.approx(expected)


def test_points_outside_the_reference_contribute_nothing():
    inside = [[0.5, 0.5]]
    assert hypervolume([*inside, [2.0, -5.0], [0.1, 1.0]], [1.0, 1.0]) == 0.25
    assert hypervolume([[2.0, 2.0]], [1.0, 1.0]) == 0.0
    assert hypervolume(np.zeros((0, 2)), [1.0, 1.0]) == 0.0
    assert hypervolume(torch.tensor(inside), [1.0, 1.0]) == 0.25
    assert hypervolume(ParetoFront().values, [1.0, 1.0]) == 0.0
    with pytest.raises(ValueError, match="shape \\[n, 3\\]"):
        hypervolume(inside, [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="finite"):
        hypervolume(inside, [1.0, np.nan])
    with pytest.raises(ValueError, match="values must have no NaN, got 1"):
        hypervolume([*inside, [np.nan, 0.1]], [1.0, 1.0])


def staircase(n):
    return ParetoFront(FrontPoint((i / n, 1 - i / n), i) for i in range(n + 1))


def test_nearest_is_the_point_at_the_smallest_distance():
    front = staircase(10)
    assert front.nearest([0.0, 0.0]).payload == 5
    assert front.nearest([0.72, 0.31]).payload == 7
    with pytest.raises(
        ValueError, match="target must have one number per objective \\(2\\), got 3"
    ):
        front.nearest([0.0, 0.0, 0.0])


def test_best_is_the_smallest_objective_within_bounds():
    front = staircase(10)
    assert front.best(0).payload == 0
    assert front.best(0, {1: 0.35}).payload == 7
    assert front.best(1, {0: 0.2}).payload == 2
    with pytest.raises(ValueError, match=r"^objective must name .* from 0 to 1, got \[2\]"):
        front.best(2, {1: 0.1})
    with pytest.raises(ValueError, match=r"^bounds must name objectives from 0 to 1, got \[5\]"):
        front.best(0, {5: 0.1})


def test_best_names_the_nearest_point_where_no_point_is_within_bounds():
    with pytest.raises(ValueError, match=r"nearest has the values \[0.5, 0.5\] and misses by 0.1"):
        staircase(10).best(0, {0: 0.4, 1: 0.4})


@pytest.mark.parametrize("bad", [[np.nan, 0.0], [0.0, np.inf], [], [[0.0, 1.0]]])
def test_values_that_are_no_finite_point_are_refused_and_change_nothing(bad):
    front = staircase(2)
    with pytest.raises(ValueError, match="values must be m finite numbers"):
        front.insert(bad)
    assert len(front) == 3


@pytest.mark.parametrize("bad", [[np.nan, 0.0], [0.0, 0.0, 0.0], []])
@pytest.mark.parametrize("size", [0, 2])
def test_one_bad_point_keeps_out_all_that_come_with_it(bad, size):
    front = staircase(2) if size else ParetoFront()
    before = list(front)
    with pytest.raises(ValueError, match="values must"):
        front.extend([FrontPoint((-1.0, -1.0), "good"), bad])
    assert list(front) == before
    front.extend([[-1.0, -1.0]])
    assert len(front) == 1


def test_points_come_in_without_a_new_array_for_each(monkeypatch):
    front, tables = ParetoFront(), []
    with monkeypatch.context() as patch:
        patch.setattr(ParetoFront, "values", property(lambda _: pytest.fail("array rebuilt")))
        for i in range(3_000):
            front.insert([i, -i], i)
            tables.append(front._table)
    assert len({id(table) for table in tables}) <= 10  # room doubles
    assert [point.payload for point in front] == list(range(3_000))
    front.insert([10, -20])
    assert front.values[9:12].tolist() == [[9, -9], [10, -20], [21, -21]]


def test_a_front_has_one_number_of_objectives():
    with pytest.raises(ValueError, match="one number per objective \\(2\\), got 3"):
        staircase(2).insert([0.0, 0.0, 0.0])


def test_an_empty_front_says_so():
    front = ParetoFront()
    assert len(front) == 0
    assert front.values.shape == (0, 0)
    assert repr(front) == "<ParetoFront: 0 points, 0 objectives>"
    for call in (lambda: front.nearest([0.0]), lambda: front.best(0)):
        with pytest.raises(ValueError, match="no points yet"):
            call()


def test_front_survives_pickle_and_merging():
    front = pickle.loads(pickle.dumps(staircase(4)))
    assert list(front) == list(staircase(4))
    front.extend(staircase(2))
    assert len(front) == 5
    assert "5 points" in repr(front)
    front.insert(torch.zeros(2), "both")
    assert [point.payload for point in front] == ["both"]


def test_points_may_come_in_while_the_front_is_read():
    front = staircase(4)
    for point in front:
        front.insert([point.values[0] - 1, point.values[1] - 1])
    assert len(front) == 5
