"""Runs, each in a process of its own with a limit of time and of memory."""

from __future__ import annotations

import logging
import multiprocessing
import resource
import signal
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import torch
from rivals.common import Handed, Method, encoding_of, needs_attribute

from front.judge import best_scores, judge_problem, make_judge
from front.machine import describe
from front.made import best_values
from front.records import Record, Run
from front.tables import TABLES, make_parts, read_table


@dataclass(frozen=True)
class Limits:
    """Runs at a time, and what one run may take."""

    jobs: int = 1
    seconds: float = 300  # of wall time
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
    encoding = encoding_of(method)
    folds = range(TABLES[run.table].n_splits)
    handed: dict[str, list[Handed]] = defaultdict(list)
    seconds: dict[str, float] = defaultdict(float)
    wall, before = 0.0, _peak_megabytes()
    for fold in folds:
        train, test = make_parts(run.table, run.seed, fold, encoding)
        start, last = time.perf_counter(), time.process_time()
        for problem, found in method(train, test, run.seed):
            handed[problem].append(found)
            seconds[problem] += (time.process_time() - last) / len(folds)
            last = time.process_time()
        wall += (time.perf_counter() - start) / len(folds)
    cost = {
        "seconds": round(sum(seconds.values()), 3),
        "wall_seconds": round(wall, 3),
        "peak_megabytes": round(_peak_megabytes() - before, 1),
    }
    return {**cost, **_judged(run, handed, seconds, needs_attribute(method))}


def _judged(
    run: Run, handed: Mapping[str, list[Handed]], seconds: Mapping[str, float], reads: bool
) -> Record:
    judge = make_judge(run.table, run.seed, reads)
    problems = {
        problem: {"seconds": round(seconds[problem], 3), **judge_problem(problem, judge, found)}
        for problem, found in handed.items()
    }
    if TABLES[run.table].is_made:
        for problem, best in best_scores(run.table, judge.constant_error).items():
            if problem in problems:
                problems[problem]["best"] = best
    return {
        "constant_error": round(judge.constant_error, 6),
        "groups": [len(judge.totals), judge.n_groups(1), judge.n_groups(0)],
        "problems": problems,
    }


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
            marked = needs_attribute(methods[found.run.method])
            yield {**vars(found.run), "needs_attribute": marked, **result, "machine": machine}


def _start(run: Run, method: Method, limits: Limits) -> tuple[Connection, _Active]:
    read_table(run.table, run.seed)  # kept for the next run, as is the best front
    if TABLES[run.table].is_made:
        best_values(run.table)
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
    logging.disable(logging.WARNING)
    try:
        result = execute(run, method)
    except BaseException as error:  # whatever it is, it is listed
        result = {"error": f"{type(error).__name__}: {error}".strip()[:500]}
    answer.send(result)


def _peak_megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
