# pyright: reportMissingImports=false
import bench_front
import numpy as np
import pytest
from front.records import read_records
from front.tables import ENCODINGS
from rivals import fairlearn_, oxonfair_, plain
from rivals.common import Part, Point, encodings_of, needs_attribute, takes


def test_a_method_runs_on_the_usual_encodings_unless_it_says_others():
    assert encodings_of(lambda *_: []) == ("plain", "tree")
    assert encodings_of(takes("codes")(lambda *_: [])) == ("codes",)


def test_only_trees_run_on_codes_and_all_encodings_are_known():
    trees = pytest.importorskip("rivals.trees_")
    families = [plain, fairlearn_, oxonfair_]
    assert not any("codes" in encodings_of(m) for f in families for m in f.METHODS.values())
    assert {encodings_of(m) for m in trees.METHODS.values()} == {("plain", "codes")}
    assert {"plain", "tree", "codes"} == set(ENCODINGS)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ([], {("any", "plain"), ("any", "tree"), ("tree", "plain"), ("tree", "codes")}),
        (["--encodings", "tree", "codes"], {("any", "tree"), ("tree", "codes")}),
    ],
)
def test_only_declared_encodings_are_run(tiny, tmp_path, monkeypatch, asked, expected):
    del tiny

    def truth(_train, validation, test, _seed):
        return [Point("truth", validation.y, test.y)]

    @takes("plain", "codes")
    @needs_attribute
    def by_trees(_train, validation, test, _seed):
        return [Point("truth", validation.y, test.y)]

    monkeypatch.setattr(bench_front, "all_methods", lambda: {"any": truth, "tree": by_trees})
    monkeypatch.setattr(bench_front, "own_methods", frozenset)
    monkeypatch.setattr(bench_front, "warm_up", lambda: None)
    given = ["--tables", "tiny-one", "--seeds", "0", "--records", str(tmp_path), *asked]
    bench_front.main(given)
    records = read_records(tmp_path)
    assert {(run.method, run.encoding) for run in records} == expected
    assert {run.method for run, r in records.items() if r["needs_attribute"]} == {"tree"}


def part(x, **given):
    n = len(x)
    zeros = np.zeros(n, np.int64)
    return Part(x, zeros, zeros, 1, None, None, "codes", **given)


def test_columns_are_quantities_unless_told():
    x = np.zeros((3, 2), np.float32)
    assert part(x).feature_types == ("q", "q")
    assert part(x, feature_types=["q", "c"]).feature_types == ("q", "c")


@pytest.mark.parametrize("types", [["q"], ["q", "int"]])
def test_wrong_feature_types_are_refused(types):
    with pytest.raises(ValueError, match="feature_types must hold 'q' or 'c' for each of the 2"):
        part(np.zeros((3, 2), np.float32), feature_types=types)
