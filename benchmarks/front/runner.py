"""Runs, each in a process of its own with a limit of time and of memory."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import torch
from rivals.common import Method

from front.judge import judge_points
from front.machine import describe
from front.records import Record, Run
from front.tables import TABLES, make_parts


@dataclass(frozen=True)
class Limits:
    """Runs at a time, and what one run may take."""

    jobs: int = 1
    seconds: float = 900  # of wall time
    gigabytes: float = 8

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise ValueError(f"jobs must be at least 1, got {self.jobs}.")


@dataclass(frozen=True, eq=False)
class _Active:
    run: Run
    process: BaseProcess
    deadline: float


def execute(run: Run, method: Method) -> Record:
    """Run one cell: fit on every fold, then judge."""
    n_folds = TABLES[run.table].n_splits
    parts = [make_parts(run.table, run.seed, fold, run.encoding) for fold in range(n_folds)]
    before = _peak_megabytes()
    fronts, wall, process = [], 0.0, 0.0
    for train, validation, test in parts:
        start, start_process = time.perf_counter(), time.process_time()
        fronts.append(method(train, validation, test, run.seed))
        process += time.process_time() - start_process
        wall += time.perf_counter() - start
    cost = {
        "seconds": round(process / n_folds, 3),
        "wall_seconds": round(wall / n_folds, 3),
        "peak_megabytes": round(_peak_megabytes() - before, 1),
        "n_inputs": int(parts[0][0].x.shape[1]),
    }
    return {**cost, **judge_points(run.table, run.seed, fronts)}


def run_all(runs: Iterable[Run], methods: Mapping[str, Method], limits: Limits) -> Iterator[Record]:
    """Records of runs as they finish, each run in a process forked from this one."""
    machine = describe()
    waiting, active = list(runs)[::-1], {}
    while waiting or active:
        while waiting and len(active) < limits.jobs:
            run = waiting.pop()
            receiver, active_run = _start(run, methods[run.method], limits)
            active[receiver] = active_run
        nearest = min(found.deadline for found in active.values())
        ready = wait(list(active), timeout=max(0.0, nearest - time.monotonic()))
        late = [r for r, found in active.items() if found.deadline <= time.monotonic()]
        for receiver in {*ready, *late}:
            found = active.pop(receiver)
            result = _end(found.process, receiver if receiver in ready else None, limits)
            marked = getattr(methods[found.run.method], "needs_attribute", False)
            yield {**vars(found.run), "needs_attribute": marked, **result, "machine": machine}


def _start(run: Run, method: Method, limits: Limits) -> tuple[Connection, _Active]:
    for fold in range(TABLES[run.table].n_splits):  # kept for the next method
        make_parts(run.table, run.seed, fold, run.encoding)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    arguments = (run, method, limits.gigabytes, sender)
    process = context.Process(target=_child, args=arguments, daemon=True)
    process.start()
    sender.close()
    return receiver, _Active(run, process, time.monotonic() + limits.seconds)


def _end(process: BaseProcess, receiver: Connection | None, limits: Limits) -> Record:
    """What the process has to say; without a receiver it is late, and stopped."""
    if receiver is None:
        process.kill()
        process.join()
        return {"error": f"Stopped after {limits.seconds:g} seconds."}
    try:
        result = receiver.recv()
    except EOFError:
        process.join()
        result = {"error": f"The process ended with code {process.exitcode}."}
    process.join()
    return result


def _child(run: Run, method: Method, gigabytes: float, answer: Connection) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    limit = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    try:
        result = execute(run, method)
    except BaseException as error:  # whatever it is, it is listed
        result = {"error": f"{type(error).__name__}: {error}".strip()[:500]}
    answer.send(result)


def _peak_megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
