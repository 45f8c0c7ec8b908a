"""Which small changes of the code do the tests notice?

``python benchmarks/mutants.py strategies --sample 40`` draws 40 of all the small changes (mutants)
of a room, runs for each the tests of that room that reach the changed function, fastest first, up
to the first that fails, and prints those that no test noticed. No file is ever changed: each mutant
lives in a forked process, and in those that its tests start, which compile the changed tree in
place of the file.

``--json`` keeps the record. What it has already is not run again, unless the changed function has
changed since; ``--survivors`` runs those that survived once more, after new tests, and ``--check``
only says which entries are stale. ``--jobs`` mutants run at a time, and ``--seconds`` ends it all:
the next call goes on from there.

A mutant that survives is either a test that is missing or a change that no caller can see;
docs/decisions/0012-mutants.md says which is which.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mutation.mutant import ROOT, SOURCE, Changed, Mutant, drawn_first, mutants_of
from mutation.processes import Job, run, tell_children
from mutation.reach import Reach, Watch


@dataclass(frozen=True)
class Room:
    """Files below ``src/apfex``, whose doctests come along, and tests below ``tests``."""

    files: tuple[str, ...]
    tests: tuple[str, ...]
    slow: bool = False
    """Whether slow tests are run: of several workers, some are held by no others."""


COMPLETED = (0, 1, 5)
"""What pytest returns where all, or not all, or no tests have passed, and not for other reasons."""
ROOMS = {
    "rates": Room(("rates",), ("rates",)),
    "metrics": Room(("metrics",), ("metrics",)),
    "relaxations": Room(("relaxations.py",), ("test_relaxations.py",)),
    "objectives": Room(("objectives",), ("objectives",)),
    "solvers": Room(("solvers",), ("solvers", "strategies/test_many_gramians.py")),
    "gradients": Room(("gradients.py",), ("test_gradients.py",)),
    "strategies": Room(("strategies",), ("strategies",)),
    "constraints": Room(("constraints.py",), ("test_constraints.py", "optimizer")),
    "history": Room(
        ("history.py",),
        ("test_history.py", "optimizer/test_checkpoint.py", "strategies/test_switch.py"),
    ),
    "optimizer": Room(("optimizer",), ("optimizer",)),
    "workers": Room(
        ("optimizer/_workers.py", "objectives/_read_batch.py"),
        (
            "optimizer/test_processes.py",
            "objectives/test_refusals.py",
            "objectives/test_losses.py",
            "distributed/test_equal_steps.py",
            "distributed/test_failures.py",
        ),
    ),
    "shards": Room(
        ("optimizer/_shards.py",),
        (
            "optimizer/test_shards.py",
            "distributed/test_equal_steps.py",
            "distributed/test_failures.py",
        ),
        slow=True,
    ),
    "prices": Room(("rules/_prices.py",), ("rules/test_prices.py",)),
    "rule_search": Room(
        ("rules/_search.py", "rules/_problem.py", "models/_aims.py"),
        ("rules/test_search.py", "models/test_aims.py", "models/test_explorer.py"),
    ),
    "pareto_front": Room(
        ("front/_pareto_front.py", "front/_candidates.py"),
        tuple(
            f"front/test_{name}.py"
            for name in ("pareto_front", "candidates", "scoring", "inprocess", "postprocess")
        ),
    ),
}


SHARED = ("workers", "shards")
"""What several workers tell each other: rooms of their own, as tests start groups of processes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="+", choices=[*ROOMS, "all"])
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="a record, to which verdicts are added")
    parser.add_argument("--survivors", action="store_true", help="only those of the record")
    parser.add_argument("--check", action="store_true", help="only say what of it is stale")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    until = time.monotonic() + given.seconds
    names = list(ROOMS) if "all" in given.rooms else given.rooms
    record = Record(given.json, given.seed)
    stale = [one for name in names for one in record.drop_stale(name)]
    for one in stale:
        print(f"stale     {one}")
    if given.check:
        raise SystemExit(f"{len(stale)} stale entries." if stale else 0)
    drawn = {name: record.to_do(name, given.sample, survivors=given.survivors) for name in names}
    session = Session(record, {name: mutants for name, mutants in drawn.items() if mutants})
    import_libraries()
    is_done = run(session.next_job, given.jobs, until)
    for name in names:
        print(f"{name}: {len(record.of(name)['killed'])} of {record.n_drawn(name)} killed")
    if not is_done:
        print("Time ran out: the same command goes on from here.")


class Record:
    """Verdicts by the name of the mutant, each with a digest of the function that was tested."""

    def __init__(self, path: Path | None, seed: int) -> None:
        self.path, self.seed = path, seed
        known = path is not None and path.exists()
        self.rooms: dict[str, dict[str, Any]] = json.loads(path.read_text()) if known else {}

    def of(self, room: str) -> dict[str, Any]:
        usual = {"seed": self.seed, "mutants": 0, "killed": {}, "survived": {}, "left out": []}
        return self.rooms.setdefault(room, usual)

    def n_drawn(self, room: str) -> int:
        return len(self.of(room)["killed"]) + len(self.of(room)["survived"])

    def drop_stale(self, room: str) -> list[str]:
        """Forget, and return, verdicts on code that is no longer there as it was."""
        now = {one.name: one.code for one in mutants_of_room(room)}
        known = self.of(room)
        known["mutants"] = len(now)
        stale = []
        for verdict in ("killed", "survived"):
            gone = [name for name, code in known[verdict].items() if now.get(name) != code]
            known[verdict] = {n: code for n, code in known[verdict].items() if n not in gone}
            stale += gone
        known["killed by new tests"] = [
            name for name in known.get("killed by new tests", []) if name in known["killed"]
        ]
        return stale

    def to_do(self, room: str, sample: int, *, survivors: bool) -> list[Mutant]:
        known = self.of(room)
        if survivors:
            return [one for one in mutants_of_room(room) if one.name in known["survived"]]
        drawn = drawn_first(mutants_of_room(room), self.seed)[:sample]
        return [one for one in drawn if one.name not in known["killed"] | known["survived"]]

    def add(self, room: str, mutant: Mutant, verdict: str) -> None:
        known = self.of(room)
        if known["survived"].pop(mutant.name, None) and verdict == "killed":
            known["killed by new tests"].append(mutant.name)
        known[verdict][mutant.name] = mutant.code
        self.write()

    def leave_out(self, room: str, tests: list[str]) -> None:
        self.of(room)["left out"] = sorted(tests)

    def write(self) -> None:
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            draft = self.path.with_suffix(".draft")
            draft.write_text(json.dumps(self.rooms, indent=1) + "\n")
            draft.replace(self.path)


@cache
def mutants_of_room(room: str) -> list[Mutant]:
    paths = [SOURCE / one for one in ROOMS[room].files]
    files = [file for path in paths for file in (sorted(path.rglob("*.py")) or [path])]
    elsewhere = {name for other in SHARED if other != room for name in ROOMS[other].files}
    kept = [file for file in files if str(file.relative_to(SOURCE)) not in elsewhere]
    return [mutant for file in kept for mutant in mutants_of(file)]


class Session:
    """First every file of tests is run unchanged, then mutants, of all rooms in turn."""

    def __init__(self, record: Record, drawn: dict[str, list[Mutant]]) -> None:
        self.record = record
        self.reach = {room: Reach() for room in drawn}
        self.waits = {room: len(units_of(room)) for room in drawn}
        self.units = [(room, unit) for room in drawn for unit in units_of(room)]
        turns = [(i, room) for room, mutants in drawn.items() for i in range(len(mutants))]
        order = list(drawn)
        turns.sort(key=lambda turn: (turn[0], order.index(turn[1])))
        self.mutants = [(room, drawn[room][i]) for i, room in turns]

    def next_job(self) -> Job | None:
        if self.units:
            return self.watching(*self.units.pop(0))
        ready = (i for i, (room, _) in enumerate(self.mutants) if not self.waits[room])
        place = next(ready, None)
        return None if place is None else self.judging(*self.mutants.pop(place))

    def watching(self, room: str, unit: str) -> Job:
        def work(folder: Path) -> int:
            watch = Watch(folder)
            tell_children(folder, watch=str(folder))
            watch.tracer.start(writes=False)
            code = run_tests([unit], watch, slow=ROOMS[room].slow)
            sys.settrace(None)
            if code in COMPLETED:
                (folder / "answer").write_text(json.dumps(watch.found()))
            return code

        def done(status: int, took: float, answer: str | None, out: str) -> None:
            self.waits[room] -= 1
            if answer is None:
                print(f"{out[-1500:]}\n{room}: {unit} ended with {status} after {took:.0f} s")
                self.reach[room].failed.append(unit)
            else:
                self.reach[room].add(json.loads(answer))
            self.record.leave_out(room, self.reach[room].failed)
            if not self.waits[room]:
                found = self.reach[room]
                total = found.time_for(list(found.seconds))
                print(f"{room}: {len(found.seconds)} tests, {total:.0f} s watched", flush=True)
                for name in found.failed:
                    print(f"left out  {name}", flush=True)
                if not found.seconds:
                    raise SystemExit(f"No test of {room} passes without any change.")

        return Job(work, 600, done)

    def judging(self, room: str, mutant: Mutant) -> Job:
        wanted = self.reach[room].of(mutant)
        files = sorted({name.split("::")[0] for name in wanted})

        def work(folder: Path) -> int:
            if not wanted:
                return 0
            tell_children(folder, path=str(mutant.path), place=mutant.place)
            Changed(mutant.path, mutant.place).apply()
            plugin = Only(wanted, folder / "answer")
            return run_tests([*files, "-x"], plugin, slow=ROOMS[room].slow)

        def done(status: int, took: float, answer: str | None, out: str) -> None:  # noqa: ARG001
            verdict = "killed" if status else "survived"
            by = f"\n          by {answer}" if answer else ""
            print(f"{verdict:8} {took:4.0f} s  {mutant.name}{by}", flush=True)
            self.record.add(room, mutant, verdict)

        return Job(work, 60 + 3 * self.reach[room].time_for(wanted), done)


def units_of(room: str) -> list[str]:
    """Files of tests, each of which is watched in a process of its own, and the doctests."""

    def files() -> Iterator[Path]:
        for one in ROOMS[room].tests:
            path = ROOT / "tests" / one
            yield from sorted(path.rglob("test_*.py")) or [path]
        for one in ROOMS[room].files:
            yield SOURCE / one

    return [str(path.relative_to(ROOT)) for path in files()]


class Only:
    """A plugin that keeps some tests, in a given order, and notes which of them fails."""

    def __init__(self, wanted: list[str], answer: Path) -> None:
        self.place = {name: i for i, name in enumerate(wanted)}
        self.answer = answer

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.place),
            key=lambda item: self.place[item.nodeid],
        )

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.answer.write_text(report.nodeid)


def import_libraries() -> None:
    """Import what the package imports, so that each process has it, and forget the package."""
    os.environ |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.chdir(ROOT)
    import hypothesis  # noqa: F401
    import pytest  # noqa: F401
    import torch

    import apfex.estimator
    import apfex.front  # noqa: F401

    torch.set_num_threads(1)
    for name in [one for one in sys.modules if one.split(".")[0] == "apfex"]:
        del sys.modules[name]


def run_tests(arguments: list[str], plugin: object, *, slow: bool) -> int:
    import pytest

    # Plain asserts: what rewrites them would load files with doctests past the finder of mutants.
    # One seed, so that a verdict is the same the next time.
    options = ["-q", "-p", "no:cacheprovider", "--tb=line", "--assert=plain"]
    options += ["-p", "_hypothesis_pytestplugin", "--hypothesis-seed=0"]
    options += ["-m", ""] if slow else []
    return int(pytest.main([*options, *arguments], [plugin]))


if __name__ == "__main__":
    main()
