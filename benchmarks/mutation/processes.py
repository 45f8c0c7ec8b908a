"""Processes of the tool: forked, several at a time, each with a limit; and those that tests start.

A process that a test starts has nothing of the fork. It imports ``sitecustomize`` as Python starts,
which is put on its path, and hands it here: what is to be done stands in an environment variable.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VARIABLE = "APFEX_MUTATION"
HERE = Path(__file__).parents[1]
HOOK = f"""import sys
sys.path.append({str(HERE)!r})
from mutation.processes import join
join()
"""


@dataclass
class Job:
    """Something to do in a process of its own; a file ``answer`` in its folder comes back."""

    work: Callable[[Path], int]
    seconds: float
    """Of the clock, and of the processor for each process that it starts."""
    done: Callable[[int, float, str | None, str], None]
    """Called with the exit status, how long it took, the answer, and what was printed."""


@dataclass
class _Running:
    job: Job
    folder: Path
    started: float = field(default_factory=time.monotonic)

    @property
    def took(self) -> float:
        return time.monotonic() - self.started


def run(jobs: Callable[[], Job | None], n: int, until: float) -> bool:
    """Work on so many jobs at a time; True where all were done, False where time ran out.

    ``jobs`` is asked for the next whenever there is room; None: there is none now.
    """
    running: dict[int, _Running] = {}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Ended; the same command goes on from here."))
    try:
        while time.monotonic() < until:
            while len(running) < n and (job := jobs()) is not None:
                folder = Path(tempfile.mkdtemp(prefix="mutant-"))
                running[fork(job, folder)] = _Running(job, folder)
            if not running:
                return True
            time.sleep(0.02)
            for pid, status in list(ended(running)):
                finish(running.pop(pid), status)
    finally:
        for pid, one in running.items():
            end(pid)
            shutil.rmtree(one.folder, ignore_errors=True)
    return False


def ended(running: dict[int, _Running]) -> Iterator[tuple[int, int]]:
    for pid, one in running.items():
        found, status = os.waitpid(pid, os.WNOHANG)
        if found or one.took > one.job.seconds:
            yield pid, end(pid) if not found else status
            kill_group(pid)


def end(pid: int) -> int:
    """End a process with all that it has started."""
    kill_group(pid)
    return os.waitpid(pid, 0)[1]


def kill_group(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def finish(one: _Running, status: int) -> None:
    answer = one.folder / "answer"
    text = answer.read_text() if answer.exists() else None
    out = (one.folder / "out").read_text(errors="replace")
    shutil.rmtree(one.folder, ignore_errors=True)
    one.job.done(status, one.took, text, out)


def fork(job: Job, folder: Path) -> int:
    """Begin a job in a group of processes of its own."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        limit = int(job.seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(folder / "hypothesis")
        out = os.open(folder / "out", os.O_WRONLY | os.O_CREAT)
        os.dup2(out, 1)
        os.dup2(out, 2)
        code = job.work(folder)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def tell_children(folder: Path, **what: Any) -> None:
    """Have all processes that this one starts join in."""
    hook = folder / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(HOOK)
    path = [str(hook), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ |= {"PYTHONPATH": os.pathsep.join(path), VARIABLE: json.dumps(what)}


def join() -> None:
    """What a process does that a test has started."""
    told = json.loads(os.environ.get(VARIABLE, "{}"))
    if "watch" in told:
        from mutation.reach import Tracer

        Tracer(Path(told["watch"])).start(writes=True)
    if "path" in told:
        from mutation.mutant import Changed

        Changed(Path(told["path"]), told["place"]).apply()
