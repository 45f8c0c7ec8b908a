# pyright: reportMissingImports=false
import bench_front
import numpy as np
import pytest
from front.records import read_records
from rivals import all_methods, own_methods
from rivals.common import (
    BOUNDS,
    LADDER,
    MOST_POINTS,
    SHORT_LADDER,
    Candidate,
    Handed,
    Part,
    by_bounds,
    by_candidates,
    encoding_of,
    hold_out,
    is_slow,
    least_error_within,
    mark,
    needs_attribute,
    values_of,
)

READING = {
    *("LinearPost + our q, group known", "LinearPost + HGB, group known", "error-parity + HGB"),
    *("ThresholdOptimizer + HGB", "OxonFair + HGB", "APFEx, group thresholds"),
}


def test_every_method_is_marked_and_ours_are_known():
    methods = all_methods()
    assert {name for name, method in methods.items() if needs_attribute(method)} == READING
    assert {encoding_of(method) for method in methods.values()} == {"codes", "numbers"}
    slow = {name for name, method in methods.items() if is_slow(method)}
    assert not slow & {"APFEx", "LinearPost + our q", "LinearPost + HGB"}
    assert {"EG + LR", "TorchJD PCD", "fairret + network"} <= slow
    assert "APFEx" in own_methods() < methods.keys()


def test_ladders_hold_the_bounds_that_users_ask_for():
    assert len(LADDER) == len(set(LADDER)) == MOST_POINTS
    assert set(BOUNDS) <= set(LADDER)
    assert set(BOUNDS) <= set(SHORT_LADDER)


def test_ladders_make_points_and_the_union_is_for_both():
    found = dict(by_bounds(lambda problem, bound: np.array([problem, bound])))
    assert [*found] == ["dp", "tpr", "eo", "both"]
    assert found["dp"].within[0.05].tolist() == ["dp", "0.05"]
    assert len(found["both"].points) == 2 * MOST_POINTS
    assert not found["both"].within
    assert [*dict(by_bounds(lambda *_: np.zeros(1), problems=("tpr",)))] == ["tpr"]


def test_held_rows_choose_within_a_bound(make_part):
    held = make_part(200, 0)
    right, nobody = (Candidate(d, d) for d in (held.y, np.zeros(200, int)))
    found = dict(by_candidates(lambda _: [nobody, right], held))
    assert found["tpr"].within[0.02] is right.test
    gap = values_of("dp", held.y, held)[1]
    assert found["dp"].within[0.02] is (right.test if gap <= 0.02 else nobody.test)


def test_least_error_within():
    values = np.array([[0.1, 0.4], [0.2, 0.2], [0.3, 0.1]])
    assert [least_error_within(values, b) for b in (0.05, 0.1, 0.3, 0.4)] == [2, 2, 1, 0]


def test_a_fifth_of_every_cell_is_held_out(make_part):
    rows = make_part(1000, 0)
    train, held = hold_out(rows, 0)
    shares = np.bincount(held.cells) / np.bincount(rows.cells)
    assert shares == pytest.approx(np.full(4, 0.2), abs=0.03)
    assert len(train) + len(held) == 1000


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("seeds", "expected"),
    [(["3"], {("quick", 3), ("slow", 3)}), ([], None)],
)
def test_seeds_of_the_protocol_are_fewer_for_slow_methods(
    tiny, tmp_path, monkeypatch, seeds, expected
):
    del tiny

    @mark()
    def quick(_rows, test, _seed):
        yield "dp", Handed([test.y])

    @mark(slow=True, encoding="numbers")
    def slow(_rows, test, _seed):
        yield "dp", Handed([test.y])

    monkeypatch.setattr(bench_front, "all_methods", lambda: {"quick": quick, "slow": slow})
    monkeypatch.setattr(bench_front, "own_methods", frozenset)
    monkeypatch.setattr(bench_front, "warm_up", lambda: None)
    monkeypatch.setattr(bench_front, "SEEDS", range(2))
    monkeypatch.setattr(bench_front, "FEW_SEEDS", range(1))
    given = ["--tables", "tiny", "tiny-one", "--records", str(tmp_path)]
    bench_front.main([*given, *(["--seeds", *seeds] if seeds else [])])
    found = read_records(tmp_path)
    assert not any(run.method == "slow" for run in found if run.table == "tiny-one")
    expected = expected or {("quick", 0), ("quick", 1), ("slow", 0)}
    assert {(run.method, run.seed) for run in found if run.table == "tiny"} == expected


def part(x, **given):
    zeros = np.zeros(len(x), np.int64)
    return Part(x, zeros, zeros, 1, None, None, **given)


def test_columns_are_quantities_unless_told():
    x = np.zeros((3, 2), np.float32)
    assert part(x).feature_types == ("q", "q")
    assert part(x, feature_types=["q", "c"]).feature_types == ("q", "c")


@pytest.mark.parametrize("types", [["q"], ["q", "int"]])
def test_wrong_feature_types_are_refused(types):
    with pytest.raises(ValueError, match="feature_types must hold 'q' or 'c' for each of the 2"):
        part(np.zeros((3, 2), np.float32), feature_types=types)
