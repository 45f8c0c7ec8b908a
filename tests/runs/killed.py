"""A process that forks fits, each of which kills itself at a random moment, and goes on with them.

Started as ``python -m tests.runs.killed FOLDER KILLS SEED``; the last line says what happened. It
imports everything, but computes nothing itself, so that a fork may.
"""

import json
import os
import random
import shutil
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import apfex.persistence._checkpoint as checkpoints
from apfex import APFExClassifier, explore, make_biased
from apfex.persistence import read_bundle, read_json
from apfex.persistence._save import FORMAT, KIND

SMALL: dict[str, Any] = {
    "random_state": 0,
    "n_jobs": 1,
    "n_members": 4,
    "epochs": 4,
    "n_estimators": 12,
}
KINDS: dict[str, dict[str, Any]] = {
    "boosting": {"model": "boosting"},
    "linear": {"model": "linear", "criteria": ("dp", "tpr")},
    "mlp": {"model": "mlp", "validation": "split", "hidden": (8,)},
    "auto": {},
    "inprocess": {"model": "mlp", "search": "inprocess", "hidden": (8,), "epochs": 15},
    "patience": {"model": "mlp", "search": "inprocess", "epochs": 25, "patience": 2},
    "inprocess trees": {"model": "boosting", "search": "inprocess"},
    "explore": {},
}
MOST_IN_A_ROW = 4
AFTER = 300
"""Seconds after which a child that hangs is killed, and the test fails."""


def at_call(number: int, rng: random.Random) -> None:
    """Kill inside of a write: before or after a flush or a renaming, or with half of a file."""
    left, flush, replace, rename = [number], os.fsync, Path.replace, Path.rename

    def count() -> bool:
        left[0] -= 1
        return left[0] == 0

    def fsync(descriptor):
        if count():
            how = rng.randrange(3)
            if how == 0:
                size = os.fstat(descriptor).st_size
                with suppress(OSError):  # a folder
                    os.ftruncate(descriptor, rng.randrange(size + 1))
            elif how == 1:
                flush(descriptor)
            die()
        flush(descriptor)

    def moving(move):
        def moved(self, target):
            if count():
                if rng.randrange(2):
                    move(self, target)
                die()
            return move(self, target)

        return moved

    os.fsync = fsync
    Path.replace, Path.rename = moving(replace), moving(rename)


def at_time(seconds: float) -> None:
    timer = threading.Timer(seconds, die)
    timer.daemon = True
    timer.start()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def work(kind: str, place: Path, table: pd.DataFrame) -> None:
    """A fit with a checkpoint, and its model in the place of an earlier one; or a run."""
    sensitive = ["sex", "origin"]
    if kind == "explore":
        explore(
            table, label="y", sensitive=sensitive, model="linear", points=4, out=place / "run",
            threads=1,
        )  # fmt: skip
        return
    clf = APFExClassifier(sensitive=sensitive, **(SMALL | KINDS[kind]))
    clf.fit(table.drop(columns="y"), table["y"], checkpoint=place / "checkpoint")
    clf.save(place / "model", overwrite=True)


def doomed(when: Callable[[], None], run: Callable[[], None]) -> None:
    when()
    run()


def forked(run: Callable[[], None]) -> bool:
    """Whether a child came to its end; False where it was killed."""
    child = os.fork()
    if not child:
        try:
            warnings.simplefilter("ignore")
            run()
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
    guard = threading.Timer(AFTER, lambda: os.kill(child, signal.SIGABRT))
    guard.start()
    _, status = os.waitpid(child, 0)
    guard.cancel()
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    assert status == 0, f"a child ended with {status}"
    return True


def contents(kind: str, place: Path) -> dict[str, bytes]:
    """All that must come out the same; of a run also what the page shows."""
    folder = place / ("run/model" if kind == "explore" else "model")
    found = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    if kind == "explore":
        record = read_json(place / "run" / "run.json")
        kept = {name: record[name] for name in ("results", "conclusion", "caveats")}
        found["run.json"] = json.dumps(kept).encode()
        found["audit.json"] = (place / "run" / "audit.json").read_bytes()
    return found


def is_whole(place: Path) -> None:
    """What has its name is whole: the old model, or the new one; a run, or none."""
    if (place / "model").exists() or list(place.glob(".model.*.old")):
        read_bundle(place / "model", kind=KIND, format=FORMAT)
    if (place / "run").exists():
        assert read_json(place / "run" / "run.json")["finished"] is True


def n_finished(place: Path) -> int:
    states = [*place.glob("*checkpoint/*.state")]
    return sum(state.name != "seed.state" for state in states)


def main(home: Path, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    data = make_biased(n=240, random_state=0)
    table = data.X.assign(**data.sensitive, y=data.y)
    checkpoints._SECONDS, checkpoints._TIMES = 0.02, 1.0  # these trainings are short
    wanted, took = {}, {}
    for kind in KINDS:
        place = home / f"whole-{kind}"
        started = time.monotonic()
        assert forked(partial(work, kind, place, table))
        took[kind], wanted[kind] = time.monotonic() - started, contents(kind, place)
    told = {"kills": 0, "inside writes": 0, "after a finished part": 0, "runs": 0}
    while told["kills"] < kills:
        kind = list(KINDS)[told["runs"] % len(KINDS)]
        place = home / f"{told['runs']}"
        if kind != "explore":
            shutil.copytree(home / f"whole-{kind}" / "model", place / "model")
        for _ in range(MOST_IN_A_ROW):
            inside = rng.random() < 0.5
            when = partial(at_call, rng.randrange(1, 40), random.Random(rng.random()))
            if not inside:
                when = partial(at_time, rng.random() * took[kind])
            if forked(partial(doomed, when, partial(work, kind, place, table))):
                break
            told["kills"] += 1
            told["inside writes"] += inside
            told["after a finished part"] += n_finished(place) > 0
            is_whole(place)
        if not (place / "run").exists():
            assert forked(partial(work, kind, place, table))
        assert contents(kind, place) == wanted[kind], f"{kind} in {place} came out otherwise"
        left = [path.name for path in place.iterdir() if path.name.startswith(".")]
        assert not left, f"{left} is left in {place}"
        told["runs"] += 1
        shutil.rmtree(place)
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
