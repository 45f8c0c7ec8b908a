# pyright: reportMissingImports=false
import numpy as np
import pytest
from front.judge import score_by_name
from front.records import Run, write_record
from front.report import PACES, report

PACE = PACES[0]


def printed(*records, tables=("heart",), own=("ours",)):
    keyed = {Run(r["table"], r["seed"], r["method"], r["encoding"]): r for r in records}
    return report(keyed, tables, "name", own)


def notes(text):
    return [line for line in text.splitlines() if line.startswith("- ")]


def cells(text, method):
    line = next(line for line in text.splitlines() if line.startswith(f"| {method} "))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_rows_are_sorted_marked_and_compared_with_the_best_rivals(make_record):
    text = printed(
        make_record(hypervolume=(0.4, 0.3)),
        make_record("seeing", hypervolume=(0.5, 0.2), needs_attribute=True),
        make_record("blind", hypervolume=(0.2, 0.1)),
    )
    assert cells(text, "ours")[:8] == [
        *("ours (o)", "1"),
        *("0.4000", "0.800", "2.000"),
        *("0.3000", "1.500", "3.000"),
    ]
    assert cells(text, "seeing")[:4] == ["seeing *", "1", "0.5000", "best"]
    assert text.index("| seeing") < text.index("| ours") < text.index("| blind")
    assert text.endswith("Machine: a machine.")


def test_a_method_that_failed_is_listed(make_record):
    failed = [make_record("bad", seed, error="RuntimeError: no") for seed in (0, 2)]
    (note,) = notes(printed(make_record(), *failed))
    assert note == "- Could not run: bad, plain inputs: RuntimeError: no (seeds [0, 2])"


def test_a_table_on_which_all_failed_is_still_told(make_record):
    assert notes(printed(make_record(error="No.")))


def test_our_time_is_told_in_points_of_the_pace(make_record):
    records = [make_record(seconds=3.0), make_record(PACE, seconds=8.0, n_points=4.0)]
    (note,) = notes(printed(*records))
    assert note == (
        f"- ours, plain inputs: time of one whole front / {PACE}'s time per point = 1.50."
    )
    assert not notes(printed(*records, own=()))


def test_times_of_different_machines_are_not_compared(make_record):
    text = printed(make_record(), make_record(PACE, machine="b machine"))
    assert notes(text) == [
        "- Different machines, so seconds and MB compare only within one: machine 1: ours; "
        f"machine 2: {PACE}.",
    ]
    assert text.endswith("Machine 1: a machine.\nMachine 2: b machine.")


def test_only_the_common_machine_counts_for_the_pace(make_record):
    first, _ = notes(
        printed(
            make_record(seconds=3.0),
            make_record(PACE, 0, seconds=8.0, machine="b machine"),
            make_record(PACE, 1, seconds=4.0),
        )
    )
    assert first.endswith("time per point = 3.00 (machine 1).")


def test_an_encoding_with_fewer_seeds_has_a_note(make_record):
    tree = make_record(hypervolume=(0.1, 0.1), encoding="tree")
    (note,) = notes(printed(make_record(), make_record(seed=1), tree))
    assert note == (
        "- ours, encoding tree: only seeds [0], hypervolume dp/tpr mean 0.1000/0.1000 beside "
        "0.4000/0.3000 of plain on the same seeds."
    )


def test_other_tables_and_their_machines_are_left_out(make_record):
    text = printed(make_record(), make_record(table="german", machine="b machine"))
    assert "german" not in text
    assert "b machine" not in text


@pytest.fixture
def main(monkeypatch):
    """The command line, with methods of our own naming."""
    import bench_front

    monkeypatch.setattr(bench_front, "all_methods", dict)
    monkeypatch.setattr(bench_front, "own_methods", lambda: {"ours"})
    return bench_front.main


@pytest.fixture
def full_records(tmp_path, make_record):
    """A folder with awkward records: two tables, a failure, a missing seed, two machines."""
    rng = np.random.default_rng(0)
    for method in ("ours", "z rival", PACE, "plain LR"):
        for table in ("heart", "adult"):
            for seed in (2, 0, 1):
                for encoding in ("tree", "plain"):
                    points = [
                        {
                            "name": f"p{i}",
                            "validation": rng.uniform(0, 0.5, 3).round(6).tolist(),
                            "test": rng.uniform(0, 0.5, 3).round(6).tolist(),
                        }
                        for i in range(12)
                    ]
                    error = 0.4 + 0.01 * seed
                    scores = score_by_name(points, error)
                    record = make_record(
                        *(method, seed),
                        table=table,
                        encoding=encoding,
                        constant_error=error,
                        seconds=round(rng.uniform(1, 9), 3),
                        hypervolume=scores.values(),
                        hypervolume_by_bound={g: s / 2 for g, s in scores.items()},
                        points=points,
                        machine="b machine" if method == "z rival" else "a machine",
                    )
                    if (method, seed, encoding) == ("plain LR", 1, "tree"):
                        record = {**record, "error": "RuntimeError: no"}
                    write_record(tmp_path / "full", record)
    return tmp_path / "full"


@pytest.mark.parametrize("options", [[], ["--pooling", "bound"], ["--tables", "adult"]])
def test_the_report_from_compact_records_is_the_same(main, full_records, tmp_path, capsys, options):
    short = tmp_path / "short"
    main(["--records", str(full_records), "--compact", str(short)])
    assert sorted(path.name for path in short.iterdir()) == ["adult.jsonl", "heart.jsonl"]
    capsys.readouterr()
    said = []
    for folder in (full_records, short):
        main(["--records", str(folder), "--report", *options])
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert "| ours (o)" in said[0]
    assert "time per point" in said[0]
    sizes = [(folder / "adult.jsonl").stat().st_size for folder in (full_records, short)]
    assert sizes[1] < 0.7 * sizes[0]


def test_compact_does_not_overwrite_its_source(main, full_records, capsys):
    with pytest.raises(SystemExit):
        main(["--records", str(full_records), "--compact", str(full_records)])
    assert "another folder" in capsys.readouterr().err


def test_a_rival_with_few_seeds_is_not_the_one_to_beat(make_record):
    lucky = make_record("lucky", 0, hypervolume=(0.9, 0.9))
    steady = [make_record("steady", seed, hypervolume=(0.2, 0.1)) for seed in range(3)]
    text = printed(*(make_record(seed=seed) for seed in range(3)), lucky, *steady)
    assert cells(text, "steady")[3] == "best"
    assert cells(text, "ours")[3].startswith("2.000")
