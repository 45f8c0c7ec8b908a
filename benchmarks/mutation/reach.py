"""Which tests call a function, and how long they take."""

from __future__ import annotations

import os
import sys
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutation.mutant import ROOT, Mutant

Call = tuple[str, int]
"""A file below the root of the repository, and the first line of a function."""


class Tracer:
    """Notes which functions of some files are called; the first time also in a file.

    Processes that tests start write there, as they may end without a word.
    """

    def __init__(self, folder: Path) -> None:
        self.root = str(ROOT / "src") + os.sep
        self.now: set[Call] = set()
        self.out = folder / f"{os.getpid()}.calls"

    def start(self, *, writes: bool) -> None:
        self.writes = writes
        threading.settrace(self.trace)
        sys.settrace(self.trace)

    def trace(self, frame: Any, event: str, argument: Any) -> None:  # noqa: ARG002
        code = frame.f_code
        if code.co_filename.startswith(self.root):
            call = (code.co_filename[len(self.root) :], code.co_firstlineno)
            if self.writes and call not in self.now:
                with self.out.open("a") as file:
                    file.write(f"{call[0]} {call[1]}\n")
            self.now.add(call)


class Watch:
    """A plugin of pytest that notes calls, test by test.

    What a fixture calls is noted for all tests of its file, as they may share it; so is what
    processes call that a test starts.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.tracer = folder, Tracer(folder)
        self.by_test: dict[str, set[Call]] = defaultdict(set)
        self.by_file: dict[str, set[Call]] = defaultdict(set)
        self.seconds: dict[str, float] = {}
        self.set_up: dict[str, float] = defaultdict(float)
        self.failed: list[str] = []

    def pytest_runtest_setup(self) -> None:
        self.tracer.now.clear()

    def pytest_runtest_call(self, item: Any) -> None:
        self.by_file[file_of(item.nodeid)] |= self.tracer.now
        self.tracer.now.clear()

    def pytest_runtest_teardown(self, item: Any) -> None:
        self.by_test[item.nodeid] |= self.tracer.now

    def pytest_runtest_logreport(self, report: Any) -> None:
        name = report.nodeid
        if report.failed:
            self.failed.append(name)
        if report.when == "call" and report.passed:
            self.seconds[name] = report.duration
        if report.when == "setup":
            self.set_up[file_of(name)] = max(self.set_up[file_of(name)], report.duration)

    def found(self) -> dict[str, Any]:
        children: set[Call] = set()
        for path in self.folder.glob("*.calls"):
            for line in path.read_text().splitlines():
                name, _, number = line.rpartition(" ")
                children.add((name, int(number)))
        for name in self.failed:
            self.seconds.pop(name, None)
        return {
            "seconds": self.seconds,
            "set_up": self.set_up,
            "calls": {
                name: sorted(self.by_test[name] | self.by_file[file_of(name)] | children)
                for name in self.seconds
            },
            "failed": self.failed,
        }


@dataclass
class Reach:
    """What the tests of a room call, and how long they take."""

    seconds: dict[str, float] = field(default_factory=dict)
    set_up: dict[str, float] = field(default_factory=dict)
    calls: dict[str, set[Call]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    """Tests that fail without any change, on this machine: they cannot notice one."""

    def add(self, found: dict[str, Any]) -> None:
        self.seconds |= found["seconds"]
        self.set_up |= found["set_up"]
        self.calls |= {name: {(a, b) for a, b in one} for name, one in found["calls"].items()}
        self.failed += found["failed"]

    def of(self, mutant: Mutant) -> list[str]:
        """Tests that get to the function, or to the file where the change is outside of any.

        The fastest come first, those with a slow fixture later.
        """
        path = str(mutant.path.relative_to(ROOT / "src"))

        def reaches(call: Call) -> bool:
            return call[0] == path and mutant.function in (0, call[1])

        found = [name for name, calls in self.calls.items() if any(map(reaches, calls))]
        return sorted(found, key=lambda one: (self.set_up[file_of(one)] > 2, self.seconds[one]))

    def time_for(self, tests: list[str]) -> float:
        """Seconds that tests have taken, with the slowest fixture of each file."""
        files = {file_of(name) for name in tests}
        return sum(self.seconds[name] for name in tests) + sum(self.set_up[name] for name in files)


def file_of(test: str) -> str:
    return test.split("::")[0]
