"""Many runs side by side: what is not on record yet, in jobs, each written as it is done.

Jobs run wherever joblib is told to; only the process that asked for them writes records.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Any, Literal, final

import apfex
from apfex.clusters import end_with, use_backend
from apfex_reproduction.experiments._methods import (
    METHODS,
    Convex,
    FrontSearch,
    Network,
    PostProcessing,
    results_hold,
)
from apfex_reproduction.experiments._protocol import (
    DATASETS,
    MAMO_SIZES,
    SplitName,
    check_split,
    make_trial,
)
from apfex_reproduction.experiments._records import Key, RecordFolder, key_of
from apfex_reproduction.experiments._run import Record, run_trials, settings_of


@final
@dataclass(frozen=True)
class Sweep:
    """Which methods run on which data sets, with which seeds.

    Parameters
    ----------
    methods : sequence of keys
    datasets : sequence of names
    seeds : sequence of int
    split : {"70/15/15", "mamo"}
    budget : mapping, optional
        Settings of the gradient methods instead of the paper's.

    Examples
    --------
    >>> sweep = Sweep(("always-0", "always-1"), ("heart",), range(3))
    >>> len(sweep.keys)
    6
    """

    methods: Sequence[str]
    datasets: Sequence[str]
    seeds: Sequence[int]
    split: SplitName = "70/15/15"
    budget: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse names and numbers that mean nothing."""
        check_split(self.split)
        known = tuple(MAMO_SIZES) if self.split == "mamo" else DATASETS
        for name, values, allowed in (
            ("methods", self.methods, tuple(METHODS)),
            ("datasets", self.datasets, known),
        ):
            wrong = [value for value in values if value not in allowed]
            if wrong or not values:
                raise ValueError(f"{name} must be among {', '.join(allowed)}, got {wrong}.")
        try:
            seeds = tuple(index(seed) for seed in self.seeds)
        except TypeError:
            seeds = ()
        if not seeds or min(seeds) < 0:
            raise ValueError(f"seeds must be whole numbers from 0, got {list(self.seeds)}.")
        object.__setattr__(self, "seeds", seeds)  # plain numbers, as records hold them
        for name in ("methods", "datasets", "seeds"):
            values = list(getattr(self, name))
            if len(set(values)) < len(values):
                raise ValueError(f"{name} must differ from each other, got {values}.")

    @property
    def keys(self) -> list[Key]:
        """Of all records that the sweep makes."""
        return [
            (dataset, self.split, method, seed)
            for dataset in self.datasets
            for seed in self.seeds
            for method in self.methods
        ]


_ONE_AT_A_TIME = threading.Lock()
"""Filters of warnings and numbers of threads belong to a process: its threads take turns."""


@final
@dataclass(frozen=True)
class _Job:
    """Methods that are fitted together to the trials of some seeds."""

    dataset: str
    split: SplitName
    seeds: tuple[int, ...]
    methods: tuple[str, ...]
    budget: Mapping[str, Any] | None

    def run(self) -> _Outcome:
        """Make the records; if a method fails, those before it, and what went wrong."""
        with _ONE_AT_A_TIME:
            outcomes = list(self.outcomes())
        records = [record for outcome in outcomes for record in outcome.records]
        return _Outcome(records, outcomes[-1].failure)

    def outcomes(self) -> Iterator[_Outcome]:
        """Each record as it is made; at the end, if a method fails, what went wrong."""
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        done: list[Key] = []
        try:
            for record in self._records():
                done.append(key_of(record))
                yield _Outcome([record], None)
        except Exception as error:  # the other jobs go on; the sweep says it in the end
            yield _Outcome([], self._tell(error, done))
        finally:
            torch.set_num_threads(threads)

    def _records(self) -> Iterator[Record]:
        trials = [make_trial(self.dataset, self.split, seed) for seed in self.seeds]
        yield from run_trials(trials, self.methods, self.budget)

    def _tell(self, error: Exception, done: Collection[Key]) -> str:
        runs = [(m, s) for m in self.methods for s in self.seeds]
        left = [(m, s) for m, s in runs if (self.dataset, self.split, m, s) not in done]
        methods = ", ".join(dict.fromkeys(m for m, _ in left))
        seeds = ", ".join(str(seed) for seed in sorted({s for _, s in left}))
        what = f"{methods} on {self.dataset}, seed {seeds}"
        return f"{what}: {type(error).__name__}: {error}"


@final
@dataclass(frozen=True)
class _Outcome:
    records: list[Record]
    failure: str | None


def run_sweep(
    sweep: Sweep | Sequence[Sweep],
    folder: str | Path,
    *,
    earlier: str | Path | None = None,
    n_jobs: int = -1,
    backend: Literal["loky", "dask", "ray"] | None = None,
    scheduler: str | None = None,
    on_done: Callable[[Record, int, int], None] | None = None,
) -> list[Record]:
    """Run what is not on record yet, and return all records of the sweep.

    A sweep that was stopped goes on where it was: finished runs are never repeated. A job whose
    worker dies runs again on another worker of a Dask cluster, and counts once.

    Parameters
    ----------
    sweep : Sweep or sequence of Sweep
        Several are run as one, in this order, so that no process waits for the end of one to
        begin the next; what two of them have in common is run once.
    folder : path
        Where the records are; several sweeps may share it, one after the other.
    earlier : path, optional
        A folder of records that count as done too; nothing is written there.
    n_jobs : int
        Processes; -1: one for each core, or all workers of a cluster.
    backend : {"loky", "dask", "ray"}, optional
        Where they run, as for :func:`apfex.clusters.use_backend`. By default what a surrounding
        ``joblib.parallel_config`` says, else processes of this machine.
    scheduler : str, optional
        Address of a Dask or Ray cluster that runs already.
    on_done : callable, optional
        Called with each new record, once it is written, the number of records so far and that of
        the sweep.

    Examples
    --------
    >>> import tempfile
    >>> run_sweep(Sweep(("plain",), ("iris",), [0]), tempfile.mkdtemp())
    Traceback (most recent call last):
    ValueError: datasets must be among adult, compas, german, heart, celeba, got ['iris'].
    """
    if n_jobs == 0:
        raise ValueError("n_jobs must be a number of processes, or -1 for one a core, got 0.")
    if backend is None and scheduler is not None:
        raise ValueError(f"scheduler must be given with a backend, got {scheduler!r} without one.")
    sweeps = [sweep] if isinstance(sweep, Sweep) else list(sweep)
    keys = list(dict.fromkeys(key for one in sweeps for key in one.keys))
    place = RecordFolder(folder)
    with place.locked():
        known = known_records(folder, earlier)
        found = {key: known[key] for key in keys if key in known}
        for one in sweeps:
            _check_settings(one, [found[key] for key in one.keys if key in found])
        jobs = _all_jobs(sweeps, found)
        failures: list[str] = []
        where = nullcontext()
        if backend is not None and _goes_out(jobs, n_jobs, backend):
            where = use_backend(backend, scheduler=scheduler, n_jobs=n_jobs)
            n_jobs = -1 if backend == "dask" else n_jobs
        with where, closing(_finished(jobs, n_jobs, backend)) as outcomes:
            for outcome in _told(outcomes, lambda: f"{len(found)} of {len(keys)}"):
                for record in outcome.records:
                    place.write(record)  # a full disk ends the sweep
                for record in outcome.records:
                    found[key_of(record)] = record
                    if on_done is not None:
                        on_done(record, len(found), len(keys))
                failures += [outcome.failure] if outcome.failure else []
    if failures:
        raise RuntimeError(
            f"{len(failures)} of {len(jobs)} jobs failed; the others are on record, and the same "
            f"sweep repeats the failed ones only. The first: {failures[0]}"
        )
    return [found[key] for key in keys]


def known_records(folder: str | Path, earlier: str | Path | None = None) -> dict[Key, Record]:
    """Records that need not be made again: those of the folder before earlier ones.

    One whose method has got another meaning since (:func:`results_hold`) does not count.

    Parameters
    ----------
    folder, earlier : path
        As for :func:`run_sweep`.

    Examples
    --------
    >>> import tempfile
    >>> known_records(tempfile.mkdtemp())
    {}
    """
    found: dict[Key, Record] = {}
    for path in (earlier, folder):
        if path is not None:
            fresh = (r for r in RecordFolder(path).read() if results_hold(r))
            found |= {key_of(record): record for record in fresh}
    return found


def _all_jobs(sweeps: Sequence[Sweep], found: Mapping[Key, Record]) -> list[_Job]:
    """Of all sweeps, in their order; a run that is in two belongs to the first."""
    jobs: list[_Job] = []
    taken: dict[Key, Any] = dict(found)
    for sweep in sweeps:
        jobs += _jobs(sweep, taken)
        taken |= dict.fromkeys(sweep.keys)
    return jobs


def _goes_out(jobs: Sequence[_Job], n_jobs: int, backend: str | None) -> bool:
    """Whether jobs leave this process: one at a time may stay, unless a cluster is asked for."""
    return bool(jobs) and (backend in ("dask", "ray") or (n_jobs != 1 and len(jobs) > 1))


def _finished(jobs: Sequence[_Job], n_jobs: int, backend: str | None) -> Generator[_Outcome]:
    """Outcomes as the jobs end, each job once."""
    if not _goes_out(jobs, n_jobs, backend):
        for job in jobs:
            yield from job.outcomes()
        return
    from joblib import Parallel, delayed, effective_n_jobs
    from joblib.parallel import get_active_backend

    tasks = [delayed(_run_with_parent)(job, os.getpid()) for job in jobs]
    active: Any = get_active_backend()[0]
    parallel: Any
    if active.supports_return_generator:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        yield from parallel(tasks)
        return
    parallel = Parallel(n_jobs=n_jobs)
    wave = effective_n_jobs(n_jobs)  # Ray hands out what is done at the end of a call only
    for start in range(0, len(tasks), wave):
        yield from parallel(tasks[start : start + wave])


def _run_with_parent(job: _Job, parent: int) -> _Outcome:
    """Run a job in a worker, which ends when the process that asks for it does."""
    end_with(parent)
    return job.run()


def _told(outcomes: Iterator[_Outcome], done: Callable[[], str]) -> Iterator[_Outcome]:
    """The outcomes; workers that are gone are told in a sentence."""
    while True:
        try:
            outcome = next(outcomes)
        except StopIteration:
            return
        except Exception as error:
            raise RuntimeError(
                f"The workers have failed ({type(error).__name__}: {error}); {done()} runs are on "
                "record, and the same sweep goes on with the others."
            ) from error
        yield outcome


def _jobs(sweep: Sweep, found: Mapping[Key, Record]) -> Iterator[_Job]:
    """What is left: gradient methods and all that is cheap of many seeds, the others one by one."""
    for dataset in sorted(sweep.datasets, key=["celeba", "adult"].__contains__, reverse=True):
        together: dict[tuple[str, ...], list[int]] = {}
        alone: list[tuple[int, str]] = []
        for seed in sweep.seeds:
            left = [m for m in sweep.methods if (dataset, sweep.split, m, seed) not in found]
            slow = [m for m in left if isinstance(METHODS[m], Convex | FrontSearch)]
            alone += [(seed, method) for method in slow]
            size = _METHODS.get(dataset, len(left) + 1)
            for methods in _portions([m for m in left if m not in slow], size):
                together.setdefault(methods, []).append(seed)
        for methods, seeds in together.items():
            for some in _portions(seeds, _SEEDS):
                yield _Job(dataset, sweep.split, some, methods, sweep.budget)
        for seed, method in alone:
            yield _Job(dataset, sweep.split, (seed,), (method,), sweep.budget)


def _portions(values: Sequence[Any], size: int) -> Iterator[tuple[Any, ...]]:
    return (tuple(values[start : start + size]) for start in range(0, len(values), size))


_SEEDS = 10
"""Seeds of one job, trained in step."""
_METHODS = {"adult": 7, "celeba": 7, "compas": 14}
"""Methods of one job on a large table, so that no process works alone at the end for long."""


def _check_settings(sweep: Sweep, found: Any) -> None:
    """Refuse to mix runs of other settings, or of another version, with those of this sweep."""
    for record in found:
        if record["apfex"] != apfex.__version__:
            raise ValueError(
                f"Records of {record['method']} on {record['dataset']} must be of this version of "
                f"apfex, {apfex.__version__}, got {record['apfex']}; choose another folder."
            )
        if not isinstance(METHODS[record["method"]], Network | PostProcessing):
            continue
        wanted = json.loads(json.dumps(settings_of(record["dataset"], sweep.budget)))
        told = {name: value for name, value in record["settings"].items() if name != "search"}
        if told and told != wanted:  # the first records of the reject option do not tell theirs
            raise ValueError(
                f"Records of {record['method']} on {record['dataset']} must have the settings "
                f"{wanted}, got {told}; choose another folder."
            )
