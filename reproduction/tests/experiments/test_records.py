"""Records on disk: whole or not at all, each once, one sweep at a time."""

import json
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from reproduction.tests.experiments import invented

from apfex_reproduction.experiments import RecordFolder, write_pack
from apfex_reproduction.experiments._records import key_of


def record(method="plain", seed=0, **more):
    return invented.record(method, seed, settings={}, **more)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@contextmanager
def nearly_full_disk(room: int):
    """No file may grow beyond so many bytes: the system refuses to write more."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_is_written_is_read(tmp_path):
    folder = RecordFolder(tmp_path / "new" / "folder")
    assert list(folder.read()) == []
    runs = [record(seed=seed) for seed in (0, 11)] + [record("apfex-inter+beta-1.2")]
    paths = [folder.write(run) for run in runs]
    assert sorted(map(key_of, folder.read())) == sorted(map(key_of, runs))
    assert {run["seed"]: run for run in folder.read() if run["method"] == "plain"}[11] == runs[1]
    assert [path.relative_to(folder.path).as_posix() for path in paths] == [
        "heart/70-15-15/plain-000.json",
        "heart/70-15-15/plain-011.json",
        "heart/70-15-15/apfex-inter+beta-1.2-000.json",
    ]
    assert files(folder.path) == {str(path.relative_to(folder.path)) for path in paths}


def test_splits_data_sets_and_seeds_do_not_meet(tmp_path):
    folder = RecordFolder(tmp_path)
    runs = [
        {**record(seed=seed), "split": split, "dataset": dataset}
        for dataset in ("adult", "compas")
        for split in ("70/15/15", "mamo")
        for seed in (1, 10, 100, 1000)
    ]
    assert len({folder.write(run) for run in runs}) == len(runs)
    assert sorted(map(key_of, folder.read())) == sorted(map(key_of, runs))


def test_a_record_that_is_written_again_replaces_the_first(tmp_path):
    folder = RecordFolder(tmp_path)
    folder.write(record(apfex="1"))
    folder.write(record(apfex="2"))
    assert [run["apfex"] for run in folder.read()] == ["2"]


def test_a_pack_comes_back_sorted_and_twice_the_same(tmp_path):
    runs = [record(m, s) for m in ("smamo-1-dp", "plain", "always-0") for s in (2, 0, 10)]
    path = write_pack(reversed(runs), tmp_path / "heart.jsonl")
    assert list(RecordFolder(tmp_path).read()) == sorted(runs, key=key_of)
    text = path.read_bytes()
    assert write_pack(RecordFolder(tmp_path).read(), path).read_bytes() == text
    assert len(text.splitlines()) == len(runs)


def test_packs_and_single_files_are_read_together_each_run_once(tmp_path):
    folder = RecordFolder(tmp_path)
    folder.write(record("always-0"))
    folder.write(record("plain"))
    write_pack([record("plain"), record("plain", 1)], tmp_path / "heart.jsonl")
    (tmp_path / "more").mkdir()
    write_pack([record("plain", 1)], tmp_path / "more" / "again.jsonl")
    assert sorted(map(key_of, folder.read())) == [
        ("heart", "70/15/15", "always-0", 0),
        ("heart", "70/15/15", "plain", 0),
        ("heart", "70/15/15", "plain", 1),
    ]


def test_other_files_in_the_folder_are_no_records(tmp_path):
    folder = RecordFolder(tmp_path)
    written = folder.write(record())
    (tmp_path / "result.json").write_text("{}")
    (tmp_path / "table1-nearest.md").write_text("# Table")
    (written.parent / ".plain-001.json.0a1b2c3d.tmp").write_text('{"form')  # a draft, cut off
    assert len(list(folder.read())) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format":1,"dataset":"he', "is not a whole record .*; remove it, and its run is"),
        ("", "is not a whole record"),
        ("\x00\x00\x00", "is not a whole record"),
        ("[1, 2]", r"must be a record of a run, got something else; move it away\."),
        ('{"a": 1}', "must be a record of a run"),
        ('{"format": 0}', "must be a record of format 1, got 0; it was written by another version"),
        ('{"format": 2}', "must be a record of format 1, got 2; .*Choose another folder, or move"),
        ('{"format":1,"dataset":"heart"}', "got one without apfex, split, seed, method, results"),
    ],
)
def test_what_is_no_record_is_refused_by_its_name_and_left_alone(text, message, tmp_path):
    folder = RecordFolder(tmp_path)
    folder.write(record())
    wrong = tmp_path / "heart" / "70-15-15" / "roc-000.json"
    wrong.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        list(folder.read())
    assert "roc-000.json" in str(caught.value)
    assert wrong.read_text() == text


def test_a_damaged_line_of_a_pack_is_named_by_its_number(tmp_path):
    path = write_pack([record(seed=seed) for seed in range(3)], tmp_path / "heart.jsonl")
    first, _, third = path.read_bytes().splitlines()
    for damaged in (b'{"format":1,', b"\xff\xfe"):
        path.write_bytes(b"\n".join([first, damaged, third]))
        with pytest.raises(ValueError, match=r"Line 2 of .*heart\.jsonl is not a whole record"):
            list(RecordFolder(tmp_path).read())


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "records").write_text("x")
    with pytest.raises(ValueError, match=r"must be a folder, got the file .*records\."):
        RecordFolder(tmp_path / "records")


def test_numbers_that_json_does_not_know_are_refused_before_anything_is_written(tmp_path):
    folder = RecordFolder(tmp_path)
    with pytest.raises(ValueError, match="not JSON compliant"):
        folder.write(record(cpu_seconds=float("nan")))
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_pack([record(), record(seed=1, cpu_seconds=float("inf"))], tmp_path / "x.jsonl")
    assert files(tmp_path) == set()


def test_a_full_disk_leaves_what_was_there_and_no_draft(tmp_path):
    folder = RecordFolder(tmp_path)
    folder.write(record(apfex="old"))
    write_pack([record()], tmp_path / "heart.jsonl")
    before = {path: (tmp_path / path).read_bytes() for path in files(tmp_path)}
    with nearly_full_disk(100):
        for write in (
            lambda: folder.write(record(apfex="new")),
            lambda: folder.write(record(seed=1)),
            lambda: write_pack([record(seed=s) for s in range(9)], tmp_path / "heart.jsonl"),
        ):
            with pytest.raises(OSError, match=r"could not be written: .*make room, or choose ano"):
                write()
    assert {path: (tmp_path / path).read_bytes() for path in files(tmp_path)} == before
    folder.write(record(seed=1))  # there is room again
    assert len(list(folder.read())) == 2


def test_one_sweep_at_a_time(tmp_path):
    first, second = RecordFolder(tmp_path / "new"), RecordFolder(tmp_path / "new")
    with first.locked():
        with (
            pytest.raises(
                ValueError, match=r"Another sweep is writing into .*new; wait for it, or"
            ),
            second.locked(),
        ):
            pass
        first.write(record())  # the one that holds it goes on
    with second.locked():
        pass
    with pytest.raises(RuntimeError, match="went wrong"), first.locked():
        raise RuntimeError("went wrong")
    with second.locked():  # a failure lets go of it
        pass


HOLD = """
import sys
from apfex_reproduction.experiments import RecordFolder
with RecordFolder(sys.argv[1]).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_lock_lasts_as_long_as_its_process(end, tmp_path):
    folder = RecordFolder(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(ValueError, match="Another sweep is writing"), folder.locked():
            pass
        other.send_signal(end)
        other.wait()
        with folder.locked():
            folder.write(record())
    assert [json.loads(path.read_text())["seed"] for path in tmp_path.rglob("*.json")] == [0]


def test_two_records_of_a_run_that_differ_are_refused(tmp_path):
    folder = RecordFolder(tmp_path)
    write_pack([record()], tmp_path / "same.jsonl")
    folder.write(record())
    assert len(list(folder.read())) == 1
    write_pack([record() | {"results": {"chosen": {"accuracy": 0.1}}}], tmp_path / "other.jsonl")
    with pytest.raises(ValueError, match="must hold one record of a run, got two that differ"):
        list(folder.read())
