"""Many runs: nothing repeated, nothing lost, whatever happens on the way."""

import os
import resource
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from joblib import parallel_config
from joblib.parallel import get_active_backend
from reproduction.tests.experiments.test_records import files, nearly_full_disk
from tests.clusters.conftest import kill_one

from apfex.clusters import use_backend
from apfex_reproduction.experiments import (
    EXPERIMENTS,
    RecordFolder,
    Sweep,
    _sweep,
    known_records,
    run_sweep,
    write_pack,
)
from apfex_reproduction.experiments._records import key_of
from apfex_reproduction.experiments._sweep import _jobs

QUICK = {"epochs": 2, "batch_size": None, "learning_rate": 0.01}
CHEAP = ("always-0", "always-1", "plain")


def sweep(methods: Any = CHEAP, seeds: Any = (0,), **more: Any) -> Sweep:
    settings: dict[str, Any] = {"budget": QUICK} | more
    return Sweep(methods, ("heart",), seeds, **settings)


class Done:
    """Remembers what was run."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.keys: list[Any] = []
        self.counts: list[tuple[int, int]] = []
        self._stop_after = stop_after

    def __call__(self, record: Any, done: int, total: int) -> None:
        self.keys.append(key_of(record))
        self.counts.append((done, total))
        if len(self.keys) == self._stop_after:
            raise KeyboardInterrupt


def go(what: Sweep, folder: Path, **more: Any) -> tuple[list[Any], Done]:
    done = Done()
    settings: dict[str, Any] = {"n_jobs": 1} | more
    return run_sweep(what, folder, on_done=done, **settings), done


def timeless(records: Any) -> list[dict[str, Any]]:
    return [{k: v for k, v in record.items() if k != "cpu_seconds"} for record in records]


def test_every_run_is_told_written_and_returned_once(tmp_path):
    what = sweep(seeds=(0, 3))
    records, done = go(what, tmp_path)
    assert [key_of(record) for record in records] == what.keys
    assert sorted(done.keys) == sorted(what.keys)
    assert done.counts == [(place, 6) for place in range(1, 7)]
    on_disk = {key_of(record): record for record in RecordFolder(tmp_path).read()}
    assert [on_disk[key] for key in what.keys] == records


def test_what_is_on_record_is_not_run_again(tmp_path):
    first, _ = go(sweep(), tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    again, done = go(sweep(), tmp_path)
    assert done.keys == []
    assert again == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")} == stamps


def test_a_wider_sweep_runs_what_is_new_and_a_narrower_one_returns_its_own(tmp_path):
    go(sweep(), tmp_path)
    wider = sweep((*CHEAP, "smamo-1-dp"), seeds=(0, 1))
    records, done = go(wider, tmp_path)
    assert set(done.keys) == set(wider.keys) - set(sweep().keys)
    assert [key_of(record) for record in records] == wider.keys
    narrow, done = go(sweep(("plain",)), tmp_path)
    assert done.keys == []
    assert [key_of(record) for record in narrow] == [("heart", "70/15/15", "plain", 0)]


def test_a_sweep_that_is_stopped_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(_sweep, "_SEEDS", 1)
    what = sweep(seeds=(0, 1, 2))
    stopped = Done(stop_after=4)  # in the middle of the second job
    with pytest.raises(KeyboardInterrupt):
        run_sweep(what, tmp_path, n_jobs=1, on_done=stopped)
    on_disk = {key_of(record) for record in RecordFolder(tmp_path).read()}
    assert on_disk == set(stopped.keys) == set(what.keys[:4])  # each is told once it is written
    records, done = go(what, tmp_path)
    assert set(done.keys) == set(what.keys[4:])
    whole, _ = go(what, tmp_path / "other")
    assert timeless(records) == timeless(whole)


def test_runs_of_a_pack_are_not_run_again(tmp_path):
    records, _ = go(sweep(), tmp_path / "first")
    (tmp_path / "second").mkdir()
    write_pack(records, tmp_path / "second" / "heart.jsonl")
    again, done = go(sweep(), tmp_path / "second")
    assert done.keys == []
    assert again == records


def test_earlier_records_count_as_done_and_stay_untouched(tmp_path):
    go(sweep(), tmp_path / "earlier")
    before = files(tmp_path / "earlier")
    wider = sweep(seeds=(0, 1))
    records, done = go(wider, tmp_path / "new", earlier=tmp_path / "earlier")
    assert set(done.keys) == set(wider.keys) - set(sweep().keys)
    assert [key_of(record) for record in records] == wider.keys
    assert files(tmp_path / "earlier") == before
    assert {key_of(r)[3] for r in RecordFolder(tmp_path / "new").read()} == {1}


def test_a_record_of_another_meaning_is_made_again_and_the_new_one_counts(tmp_path):
    old = {key_of(r): r for r in go(sweep(("plain", "apfex-1")), tmp_path / "first")[0]}
    (key,) = (key for key in old if key[2] == "apfex-1")
    stale = [
        *(record for other, record in old.items() if other != key),
        {name: value for name, value in old[key].items() if name != "revision"}
        | {"results": {"nearest": old[key]["results"]["last"]}},
    ]
    (tmp_path / "earlier").mkdir()
    write_pack(stale, tmp_path / "earlier" / "heart.jsonl")
    assert set(known_records(tmp_path / "new", tmp_path / "earlier")) == set(old) - {key}
    records, done = go(sweep(("plain", "apfex-1")), tmp_path / "new", earlier=tmp_path / "earlier")
    assert done.keys == [key]
    assert timeless(records) == timeless(old.values())


def test_sweeps_run_as_one_and_share_what_they_have_in_common(tmp_path):
    first, second = sweep(("always-0", "plain")), sweep(CHEAP, seeds=(0, 1))
    done = Done()
    records = run_sweep([first, second], tmp_path, n_jobs=1, on_done=done)
    keys = list(dict.fromkeys([*first.keys, *second.keys]))
    assert [key_of(record) for record in records] == keys
    assert len(done.keys) == len(set(done.keys)) == 6
    assert done.counts[-1] == (6, 6)


def test_a_method_that_fails_is_named_and_leaves_the_others(tmp_path):
    methods = ("always-0", "plain", "smamo-1-dp", "searchfair-1")
    broken = sweep(methods, budget={**QUICK, "learning_rate": 1e30})
    with pytest.raises(RuntimeError) as caught:
        go(broken, tmp_path)
    message = str(caught.value)
    assert message.startswith("1 of 2 jobs failed; the others are on record")
    assert "plain, smamo-1-dp on heart, seed 0: ValueError: learning_rate must be" in message
    assert "always-0" not in message  # it was before, and is on record
    on_disk = sorted(key_of(record)[2] for record in RecordFolder(tmp_path).read())
    assert on_disk == ["always-0", "searchfair-1"]
    records, done = go(sweep(methods), tmp_path)
    assert {key[2] for key in done.keys} == {"plain", "smamo-1-dp"}
    assert len(records) == 4


def test_runs_with_other_settings_are_not_mixed(tmp_path):
    methods = ("always-0", "plain", "roc-pso")
    go(sweep(methods), tmp_path)
    before = files(tmp_path)
    for other, name in ((methods, "plain"), (("roc-pso",), "roc-pso")):
        with pytest.raises(ValueError, match=f"Records of {name} on heart must have the settings"):
            go(sweep(other, budget={**QUICK, "epochs": 3}), tmp_path)
        with pytest.raises(ValueError, match=r"'epochs': 500.*got .*'epochs': 2.*another folder"):
            go(sweep(other, budget=None), tmp_path)
    assert files(tmp_path) == before
    constants, done = go(sweep(("always-0",), budget=None), tmp_path)  # they have no settings
    assert (len(constants), done.keys) == (1, [])


def test_runs_of_another_version_are_not_mixed(tmp_path):
    (record,), _ = go(sweep(("always-0",)), tmp_path)
    folder = RecordFolder(tmp_path)
    folder.write(record | {"apfex": "0.0.1"})
    with pytest.raises(ValueError, match=r"must be of this version of apfex, .*, got 0\.0\.1; cho"):
        go(sweep(("always-0", "plain")), tmp_path)
    assert [key_of(kept)[2] for kept in folder.read()] == ["always-0"]
    assert len(go(sweep(("always-1",)), tmp_path)[0]) == 1  # it needs none of them


def test_settings_that_json_writes_otherwise_are_the_same(tmp_path):
    budget = {**QUICK, "hidden": (8, 4)}
    go(sweep(("plain",), budget=budget), tmp_path)
    _, done = go(sweep(("plain",), budget=budget), tmp_path)
    assert done.keys == []


def test_a_folder_in_use_is_refused_before_anything_runs(tmp_path):
    with (
        RecordFolder(tmp_path).locked(),
        pytest.raises(ValueError, match="Another sweep is writing into"),
    ):
        go(sweep(), tmp_path)
    assert list(RecordFolder(tmp_path).read()) == []
    assert len(go(sweep(), tmp_path)[0]) == 3


def test_a_full_disk_stops_the_sweep_and_leaves_whole_records_only(tmp_path):
    first, _ = go(sweep(("always-0",)), tmp_path)
    (size,) = (path.stat().st_size for path in tmp_path.rglob("*.json"))
    done = Done()
    with (
        nearly_full_disk(size + 10),  # enough for a constant, too little for a network
        pytest.raises(OSError, match=r"plain-000\.json' could not be written: .*make room"),
    ):
        run_sweep(sweep(seeds=(0, 1)), tmp_path, n_jobs=1, on_done=done)
    kept = {key_of(record)[2] for record in RecordFolder(tmp_path).read()}
    assert kept == {"always-0", "always-1"}
    assert not [name for name in files(tmp_path) if name.endswith(".tmp")]
    records, done = go(sweep(seeds=(0, 1)), tmp_path)
    assert len(done.keys) == 4
    assert records[0] == first[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": ("plane",)}, r"methods must be among .* got \['plane'\]"),
        ({"methods": ()}, "methods must be among"),
        ({"datasets": ("iris",)}, r"datasets must be among adult, .*celeba, got \['iris'\]"),
        ({"split": "mamo"}, r"datasets must be among adult, compas, got \['heart'\]"),
        ({"split": "80/20"}, "split must be one of '70/15/15', 'mamo', got '80/20'"),
        ({"seeds": ()}, r"seeds must be whole numbers from 0, got \[\]"),
        ({"seeds": (0, -1)}, r"seeds must be whole numbers from 0, got \[0, -1\]"),
        ({"seeds": (0.5,)}, r"seeds must be whole numbers from 0, got \[0.5\]"),
        ({"seeds": (1, 1)}, r"seeds must differ from each other, got \[1, 1\]"),
        ({"methods": ("plain", "plain")}, "methods must differ from each other"),
        ({"datasets": ("heart", "heart")}, "datasets must differ from each other"),
    ],
)
def test_a_sweep_that_means_nothing_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Sweep(**({"methods": CHEAP, "datasets": ("heart",), "seeds": (0,)} | change))


def test_seeds_of_numpy_become_plain_numbers(tmp_path):
    records, _ = go(sweep(("always-0",), seeds=np.arange(2)), tmp_path)
    assert [type(record["seed"]) for record in records] == [int, int]


def test_no_processes_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"n_jobs must be a number of processes, or -1 .*, got 0"):
        go(sweep(), tmp_path / "new", n_jobs=0)
    assert not (tmp_path / "new").exists()


def test_the_number_of_threads_is_the_users_again(tmp_path):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        go(sweep(("plain",)), tmp_path)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_scheduler_needs_a_backend(tmp_path):
    with pytest.raises(
        ValueError, match=r"scheduler must be given with a backend, got 'tcp://a:1'"
    ):
        go(sweep(), tmp_path / "new", scheduler="tcp://a:1")
    assert not (tmp_path / "new").exists()


def test_gradient_methods_run_together_and_the_slow_ones_alone():
    what = Sweep(
        ("always-0", "searchfair-1", "plain", "roc", "apfex-1", "front"),
        ("heart", "adult", "celeba"),
        (0, 1),
    )
    jobs = list(_jobs(what, {}))
    assert [job.dataset for job in jobs] == ["adult"] * 5 + ["celeba"] * 5 + ["heart"] * 5
    assert [(job.methods, job.seeds) for job in jobs[:3]] == [
        (("always-0", "plain", "roc", "apfex-1"), (0, 1)),
        (("searchfair-1",), (0,)),
        (("front",), (0,)),
    ]
    found = {key: {} for key in what.keys if key[2] != "front" or key[3] == 0}
    assert {(job.seeds, job.methods) for job in _jobs(what, found)} == {((1,), ("front",))}


def test_jobs_have_few_methods_of_a_large_table_and_seeds_with_the_same_ones_left():
    methods = EXPERIMENTS["ablations"]
    what = Sweep(methods, ("adult", "heart"), range(12))
    found = {("adult", "70/15/15", "plain", 3): {}}
    jobs = list(_jobs(what, found))
    runs = [(j.dataset, "70/15/15", m, s) for j in jobs for m in j.methods for s in j.seeds]
    assert len(runs) == len(set(runs))
    assert set(runs) == set(what.keys) - set(found)
    assert {len(job.methods) for job in jobs if job.dataset == "heart"} == {len(methods)}
    assert max(len(job.methods) for job in jobs if job.dataset == "adult") == 7
    assert [job.seeds for job in jobs if job.dataset == "heart"] == [tuple(range(10)), (10, 11)]


# Real processes.
SCRIPT = """
import sys
from apfex_reproduction.experiments import Sweep, run_sweep

def told(record, done, total):
    print(record["method"], record["seed"], flush=True)

if __name__ == "__main__":
    sweep = Sweep(
        ("always-0", "plain", "apfex-1"), ("heart",), range(int(sys.argv[3])),
        budget={"epochs": 100, "batch_size": None, "learning_rate": 0.01},
    )
    run_sweep(sweep, sys.argv[1], n_jobs=int(sys.argv[2]), on_done=told)
    print("finished", flush=True)
"""
LONG = 60
"""Seeds: more than can be done before the signal comes."""


def start(folder: Path, n_jobs: int, n_seeds: int = LONG, **more: Any) -> subprocess.Popen[str]:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, str(script), str(folder / "records"), str(n_jobs), str(n_seeds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        start_new_session=True,  # its workers, too, can be reached, and nobody else
        **more,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_jobs", "end"), [(1, signal.SIGKILL), (1, signal.SIGINT), (2, signal.SIGINT)]
)
def test_a_sweep_whose_process_is_ended_goes_on_where_it_was(n_jobs, end, tmp_path):
    with start(tmp_path, n_jobs) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("always-0")
        os.killpg(running.pid, end)  # as a terminal does
        rest, _ = running.communicate()
    assert "finished" not in rest
    assert running.returncode != 0
    folder = RecordFolder(tmp_path / "records")
    with folder.locked():  # nobody holds it
        kept = {key_of(record): record for record in folder.read()}
    assert 0 < len(kept) < 3 * LONG
    budget = {"epochs": 100, "batch_size": None, "learning_rate": 0.01}
    seeds = range(max(key[3] for key in kept) + 2)
    what = sweep(("always-0", "plain", "apfex-1"), seeds, budget=budget)
    records, done = go(what, tmp_path / "records")
    assert [key_of(record) for record in records] == what.keys
    assert set(done.keys) == set(what.keys) - set(kept)
    assert [record for record in records if key_of(record) in kept] == [
        kept[key] for key in what.keys if key in kept
    ]


def children_of(process: int) -> set[int]:
    """Numbers of the processes that one has started, and they in turn."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            if int(stat.read_text().rpartition(")")[2].split()[1]) == process:
                found.add(int(stat.parent.name))
    return found.union(*map(children_of, found))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_workers_of_a_sweep_that_is_killed_stop(tmp_path):
    with start(tmp_path, 2) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("always-0")
        workers = [os.pidfd_open(child) for child in children_of(running.pid)]
        assert len(workers) > 1
        try:
            running.kill()  # it alone, with a signal that nobody can answer
            for worker in workers:
                ended, _, _ = select.select([worker], [], [], 60)
                assert ended, "a worker goes on without the process that it works for"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            for worker in workers:
                os.close(worker)


@pytest.mark.slow
def test_side_by_side_is_as_one_after_another(tmp_path):
    methods = (*CHEAP, "searchfair-1", "apfex-inter")
    what = sweep(methods, seeds=(0, 1))
    parallel, done = go(what, tmp_path / "two", n_jobs=2)
    serial, _ = go(what, tmp_path / "one")
    assert sorted(done.keys) == sorted(what.keys)
    assert timeless(parallel) == timeless(serial)
    broken = sweep(methods, seeds=(2,), budget={**QUICK, "learning_rate": 1e30})
    with pytest.raises(RuntimeError, match=r"1 of 2 jobs failed; .*plain, apfex-inter on heart, s"):
        go(broken, tmp_path / "two", n_jobs=2)
    methods_there = {key_of(r)[2] for r in RecordFolder(tmp_path / "two").read() if r["seed"] == 2}
    assert methods_there == {"always-0", "always-1", "searchfair-1"}


@pytest.mark.slow
def test_a_disk_that_is_full_for_workers_stops_them_all(tmp_path):
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (800, 800))  # noqa: E731
    with start(tmp_path, 2, preexec_fn=limit) as running:
        out, errors = running.communicate()
    assert running.returncode == 1
    assert "finished" not in out
    assert "could not be written: File too large" in errors  # joblib may warn after it
    assert "make room, or choose another place" in errors
    assert not [name for name in files(tmp_path) if name.endswith(".tmp")]
    kept = list(RecordFolder(tmp_path / "records").read())
    assert {key_of(record)[2] for record in kept} == {"always-0"}
    assert len(kept) < LONG


class KillsOne(Done):
    """Kills a worker that is at work, when the first record comes."""

    def __init__(self, client: Any) -> None:
        super().__init__()
        self._client = client

    def __call__(self, record: Any, done: int, total: int) -> None:
        if not self.keys:
            kill_one(self._client)
        super().__call__(record, done, total)


@pytest.mark.slow
def test_no_run_is_lost_or_counted_twice_where_a_worker_of_a_cluster_dies(two_workers, tmp_path):
    what = sweep((*CHEAP, "apfex-inter"), seeds=range(6))
    before, done = set(two_workers.run(os.getpid).values()), KillsOne(two_workers)
    records = run_sweep(what, tmp_path / "there", backend="dask", on_done=done)
    assert set(two_workers.run(os.getpid, on_error="ignore").values()) != before
    assert sorted(done.keys) == sorted(what.keys)
    assert done.counts == [(place, len(what.keys)) for place in range(1, len(what.keys) + 1)]
    assert [key_of(record) for record in records] == what.keys
    assert sorted(map(key_of, RecordFolder(tmp_path / "there").read())) == sorted(what.keys)
    here, _ = go(what, tmp_path / "here")
    assert timeless(records) == timeless(here)


@pytest.mark.slow
def test_the_backend_around_a_sweep_is_used(two_workers, tmp_path):
    del two_workers
    what = sweep(seeds=(0, 1))
    with parallel_config(backend="dask"):
        there, _ = go(what, tmp_path / "there", n_jobs=-1)
    with parallel_config(backend="multiprocessing"):  # like Ray it hands nothing out before the end
        pooled, _ = go(what, tmp_path / "pooled", n_jobs=2)
    here, _ = go(what, tmp_path / "here")
    assert timeless(there) == timeless(pooled) == timeless(here)


@pytest.mark.slow
def test_workers_that_are_gone_end_the_sweep_with_a_sentence(time_limit, tmp_path):
    del time_limit
    what = sweep(seeds=range(60))  # six jobs of ten seeds for two workers

    def stop(record: Any, done: int, total: int) -> None:
        del record, done, total
        active: Any = get_active_backend()[0]
        active.client.cluster.close()

    told = pytest.raises(RuntimeError, match=r"The workers have failed .*; \d+ of 180 runs are on ")
    with use_backend("dask", n_jobs=2), told:
        run_sweep(what, tmp_path, on_done=stop)
    kept = [key_of(record) for record in RecordFolder(tmp_path).read()]
    assert 0 < len(kept) < 180
    records, done = go(what, tmp_path)
    assert sorted(done.keys) == sorted(set(what.keys) - set(kept))
    assert [key_of(record) for record in records] == what.keys
