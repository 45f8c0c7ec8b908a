# pyright: reportMissingImports=false
import numpy as np
import pytest
from front.judge import score, score_by_name
from front.records import Run, compact, read_records, write_compact, write_record

POINTS = [
    {"name": "a", "validation": [0.1, 0.3, 0.3], "test": [0.123456, 0.3, 0.3]},
    {"name": "b", "validation": [0.2, 0.1, 0.4], "test": [0.234567, 0.1, 0.4]},
    {"name": "c", "validation": [0.3, 0.2, 0.35], "test": [0.01, 0.01, 0.01]},
]


def test_the_latest_record_of_a_run_counts(tmp_path, make_record):
    for seconds in (1.0, 2.0):
        write_record(tmp_path, make_record(seconds=seconds))
    (record,) = read_records(tmp_path).values()
    assert record == make_record(seconds=2.0)


def test_a_half_written_last_line_is_ignored_and_written_past(tmp_path, make_record):
    write_record(tmp_path, make_record(seed=0))
    write_record(tmp_path, make_record(seed=1))
    path = tmp_path / "heart.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    assert [run.seed for run in read_records(tmp_path)] == [0]
    write_record(tmp_path, make_record(seed=2))
    assert [run.seed for run in read_records(tmp_path)] == [0, 2]


def test_no_folder_has_no_records(tmp_path):
    assert read_records(tmp_path / "none") == {}


def test_compact_keeps_what_counts_for_a_gap(make_record):
    full = make_record(points=POINTS)
    short = compact(full)
    assert [(p["name"], p["counts"], p["test"]) for p in short["points"]] == [
        ("a", ["dp", "tpr"], [0.1235, 0.3, 0.3]),
        ("b", ["dp"], [0.2346, 0.1, 0.4]),
    ]
    assert [p["validation"] for p in short["points"]] == [p["validation"] for p in POINTS[:2]]
    assert {**short, "points": POINTS} == full
    assert compact(short) == short


def test_scores_can_be_checked_from_compact_points(make_record):
    kept = compact(make_record(points=POINTS))["points"]
    for column, (gap, expected) in enumerate(score_by_name(POINTS, 0.4).items(), start=1):
        values = np.array([point["test"] for point in kept if gap in point["counts"]])
        assert score(values[:, [0, column]], 0.4) == pytest.approx(expected, abs=1e-3)


def test_compact_files_are_sorted_and_replaced(tmp_path, make_record):
    failed = {"table": "german", "seed": 0, "method": "m", "encoding": "tree", "error": "No."}
    records = [
        make_record("b", 1),
        make_record("a", 1, encoding="tree"),
        make_record("b", 0, encoding="tree"),
        make_record("a", 1),
        failed,
    ]
    keyed = {Run(r["table"], r["seed"], r["method"], r["encoding"]): r for r in records}
    write_compact(tmp_path, keyed)
    written = write_compact(tmp_path, keyed)
    assert [path.name for path in written] == ["german.jsonl", "heart.jsonl"]
    assert len(written[1].read_text().splitlines()) == 4
    found = read_records(tmp_path)
    assert found == keyed
    assert [(run.seed, run.encoding, run.method) for run in found if run.table == "heart"] == [
        (0, "tree", "b"),
        (1, "plain", "a"),
        (1, "plain", "b"),
        (1, "tree", "a"),
    ]
