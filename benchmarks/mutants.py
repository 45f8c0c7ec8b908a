"""Which small changes of the code do the tests notice?

``python benchmarks/mutants.py strategies --sample 40`` draws 40 of all the small changes (mutants)
of a room, runs for each the tests of that room that reach the changed function, fastest first, up
to the first that fails, and prints those that no test noticed. ``--json`` keeps the record, and
``--survivors`` runs those that survived in it once more, after new tests. No file is ever changed:
each mutant lives in a forked process that compiles the changed tree in place of the file.

A mutant that survives is either a test that is missing or a change that no caller can see;
docs/decisions/0012-mutants.md says which is which.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.util
import json
import os
import random
import resource
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "apfex"
ROOMS: dict[str, tuple[list[str], list[str]]] = {
    "rates": (["rates"], ["rates"]),
    "metrics": (["metrics"], ["metrics"]),
    "relaxations": (["relaxations.py"], ["test_relaxations.py"]),
    "objectives": (["objectives"], ["objectives"]),
    "solvers": (["solvers"], ["solvers", "strategies/test_many_gramians.py"]),
    "gradients": (["gradients.py"], ["test_gradients.py"]),
    "strategies": (["strategies"], ["strategies"]),
    "constraints": (["constraints.py"], ["test_constraints.py", "optimizer"]),
    "history": (
        ["history.py"],
        ["test_history.py", "optimizer/test_checkpoint.py", "strategies/test_switch.py"],
    ),
    "optimizer": (["optimizer"], ["optimizer"]),
    "prices": (["models/_prices.py"], ["models/test_prices.py"]),
    "rule_search": (
        ["models/_rule_search.py", "models/_rule_problem.py", "models/_aims.py"],
        ["models/test_rule_search.py", "models/test_aims.py", "models/test_explorer.py"],
    ),
    "pareto_front": (
        ["front/_pareto_front.py", "front/_candidates.py"],
        ["front/test_pareto_front.py", "front/test_candidates.py"],
    ),
}
"""Files of a room below ``src/apfex``, and its tests below ``tests``; doctests come along."""

SWAPS: dict[type[ast.AST], list[type[ast.AST]]] = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult],
    ast.Pow: [ast.Mult],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
}
PAIRS = (
    ("min", "max"),
    ("amin", "amax"),
    ("argmin", "argmax"),
    ("minimum", "maximum"),
    ("any", "all"),
    ("floor", "ceil"),
    ("sum", "mean"),
    ("zeros_like", "ones_like"),
    ("zeros", "ones"),
)
RENAMED = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])}
DROPPED = {"abs", "clamp", "sqrt", "square", "detach", "clone", "double", "cumsum", "log", "exp"}
"""Methods that are left out: what they are called on takes their place."""
Change = tuple[int, str, Callable[[], None]]
"""The line, what is written there before and after, and what does it to the tree."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    path: Path
    place: int
    """Among the changes of its file."""
    line: int
    function: int
    """First line of the function around it, 0 outside of functions."""
    change: str

    @property
    def name(self) -> str:
        return f"{self.path.relative_to(SOURCE)}:{self.line}: {self.change}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="+", choices=list(ROOMS))
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="a record, to which rooms are added")
    parser.add_argument("--survivors", action="store_true", help="only those of the record")
    given = parser.parse_args()
    import_libraries()
    for room in given.rooms:
        known = read(given.json).get(room, {})
        everything = mutants_of(room)
        chosen = draw(everything, given.sample, given.seed)
        if given.survivors:
            wanted = Counter(known["survived"])
            chosen = [one for one in everything if wanted[one.name] > 0]
        reach = reach_of(room)
        found: dict[str, list[str]] = defaultdict(list)
        for mutant in chosen:
            verdict, seconds = judge(mutant, reach)
            found[verdict].append(mutant.name)
            print(f"{verdict:8} {seconds:4.0f} s  {mutant.name}", flush=True)
        record = {
            "seed": given.seed,
            "mutants": len(everything),
            "drawn": len(chosen),
            "killed": len(found["killed"]),
            "survived": found["survived"],
        }
        if given.survivors:
            record = known | {
                "killed": known["drawn"] - len(found["survived"]),
                "survived": found["survived"],
                "killed by new tests": known.get("killed by new tests", []) + found["killed"],
            }
        print(f"{room}: {record['killed']} of {record['drawn']} killed", flush=True)
        if given.json is not None:
            given.json.parent.mkdir(parents=True, exist_ok=True)
            given.json.write_text(json.dumps(read(given.json) | {room: record}, indent=1) + "\n")


def read(path: Path | None) -> dict[str, Any]:
    return json.loads(path.read_text()) if path is not None and path.exists() else {}


def draw(mutants: list[Mutant], sample: int, seed: int) -> list[Mutant]:
    return random.Random(seed).sample(mutants, min(sample, len(mutants)))


# Changes of a tree


def mutants_of(room: str) -> list[Mutant]:
    """All of them, in the order of the files."""
    found = []
    for path in files_of(room):
        tree = ast.parse(path.read_text())
        spans = sorted(
            (first_line(node), node.end_lineno or 0)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
        )
        for place, (line, change, _) in enumerate(changes(tree)):
            around = [start for start, end in spans if start <= line <= end]
            found.append(Mutant(path, place, line, max(around, default=0), change))
    return found


def first_line(function: ast.FunctionDef) -> int:
    return min([function.lineno, *(one.lineno for one in function.decorator_list)])


def files_of(room: str) -> list[Path]:
    paths = [SOURCE / one for one in ROOMS[room][0]]
    return [file for path in paths for file in (sorted(path.rglob("*.py")) or [path])]


def changes(tree: ast.AST) -> Iterator[Change]:
    """Every change, as long as nobody has applied one."""
    for node in ast.iter_child_nodes(tree):
        if not is_left_alone(node):
            yield from own_changes(node, tree)
            yield from changes(node)


def is_left_alone(node: ast.AST) -> bool:
    """Imports and what is only read by people: docstrings, annotations, messages."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Raise | ast.JoinedStr | ast.arg):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
        return node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def own_changes(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
    if node in getattr(parent, "decorator_list", ()) or is_annotation(node, parent):
        return
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            yield from swapped(node, op, lambda new, i=i, n=node: n.ops.__setitem__(i, new))
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        yield from swapped(node, node.op, lambda new, n=node: setattr(n, "op", new))
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        yield replaced(node, node.operand, parent)
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield from conditions(node)
    elif isinstance(node, ast.Constant):
        yield from constants(node)
    elif isinstance(node, ast.Call):
        yield from calls(node, parent)
    elif isinstance(node, ast.Expr):
        yield replaced(node, ast.copy_location(ast.Pass(), node), parent)


def is_annotation(node: ast.AST, parent: ast.AST) -> bool:
    return node in (getattr(parent, "annotation", None), getattr(parent, "returns", None))


def swapped(node: Any, op: ast.AST, put: Callable[[Any], None]) -> Iterator[Change]:
    for other in SWAPS.get(type(op), ()):
        shown = copy.deepcopy(node)
        text = f"{ast.unparse(shown)} becomes {type(other()).__name__}"
        yield node.lineno, text, lambda other=other: put(other())


def conditions(node: Any) -> Iterator[Change]:
    for value in (True, False):
        if not (isinstance(node, ast.While) and value):
            put = ast.copy_location(ast.Constant(value), node.test)
            text = f"condition {ast.unparse(node.test)} becomes {value}"
            yield node.test.lineno, text, lambda put=put: setattr(node, "test", put)


def constants(node: ast.Constant) -> Iterator[Change]:
    old = node.value
    if isinstance(old, bool):
        new = not old
    elif isinstance(old, int):
        new = old + 1
    elif isinstance(old, float):
        new = old * 2 if old else 1.0
    else:
        return
    yield node.lineno, f"{old!r} becomes {new!r}", lambda: setattr(node, "value", new)


def calls(node: ast.Call, parent: ast.AST) -> Iterator[Change]:
    shown, function = ast.unparse(node), node.func
    for i, keyword in enumerate(node.keywords):
        text = f"{shown} without {keyword.arg}"
        yield node.lineno, text, lambda i=i: node.keywords.pop(i) and None
    for field in ("id", "attr"):
        other = RENAMED.get(getattr(function, field, ""))
        if other is not None:
            text = f"{shown} calls {other}"
            yield node.lineno, text, lambda f=field, o=other: setattr(function, f, o)
    if isinstance(function, ast.Attribute) and function.attr in DROPPED:
        _, _, put = replaced(node, function.value, parent)
        yield node.lineno, f"{shown} without {function.attr}", put


def replaced(node: ast.AST, new: ast.AST, parent: ast.AST) -> Change:
    def put() -> None:
        for field, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, field, new)
            elif isinstance(value, list) and node in value:
                value[value.index(node)] = new

    text = f"{ast.unparse(node)} becomes {ast.unparse(new)}"
    return getattr(node, "lineno", 0), text, put


def compiled(mutant: Mutant) -> CodeType:
    tree = ast.parse(mutant.path.read_text())
    list(changes(tree))[mutant.place][2]()
    return compile(ast.fix_missing_locations(tree), str(mutant.path), "exec")


# Which tests reach a function


@dataclass
class Reach:
    """What the tests of a room call, and how long they take."""

    tests: list[str]
    seconds: dict[str, float]
    calls: dict[str, set[tuple[str, int]]]

    def of(self, mutant: Mutant) -> list[str]:
        """Tests that get to the function, or to the file where the change is outside of any."""
        path = str(mutant.path)
        wanted = {call for calls in self.calls.values() for call in calls if call[0] == path}
        if mutant.function:
            wanted &= {(path, mutant.function)}
        found = [test for test in self.seconds if self.calls[test] & wanted]
        return sorted(found, key=self.seconds.__getitem__)


class Watch:
    """A plugin that notes calls of functions of some files, test by test.

    What a fixture calls is noted for all tests of its file, as they may share it.
    """

    def __init__(self, files: list[Path]) -> None:
        self.files = {str(file) for file in files}
        self.now: set[tuple[str, int]] = set()
        self.by_test: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self.by_file: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    def trace(self, frame: Any, event: str, argument: Any) -> None:  # noqa: ARG002
        code = frame.f_code
        if code.co_filename in self.files:
            self.now.add((code.co_filename, code.co_firstlineno))

    def pytest_runtest_setup(self) -> None:
        self.now = set()

    def pytest_runtest_call(self, item: Any) -> None:
        self.by_file[item.nodeid.split("::")[0]] |= self.now
        self.now = set()

    def pytest_runtest_teardown(self, item: Any) -> None:
        self.by_test[item.nodeid] |= self.now

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)
        if report.when == "call" and report.passed:
            self.seconds[report.nodeid] = report.duration


class Only:
    """A plugin that keeps some tests, in a given order."""

    def __init__(self, wanted: list[str]) -> None:
        self.place = {name: i for i, name in enumerate(wanted)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.place),
            key=lambda item: self.place[item.nodeid],
        )


def reach_of(room: str) -> Reach:
    """Run the tests of a room once, unchanged."""
    sources, tests = ROOMS[room]
    arguments = [f"tests/{one}" for one in tests] + [f"src/apfex/{one}" for one in sources]
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "reach.json"

        def work() -> int:
            watch = Watch(files_of(room))
            threading.settrace(watch.trace)
            sys.settrace(watch.trace)
            code = run_tests(arguments, watch)
            sys.settrace(None)
            calls = {
                name: sorted(watch.by_test[name] | watch.by_file[name.split("::")[0]])
                for name in watch.seconds
            }
            found = {"seconds": watch.seconds, "calls": calls, "failed": watch.failed}
            answer.write_text(json.dumps(found))
            return code

        fork(work, limit=3600, folder=Path(folder))
        if not answer.exists():
            raise SystemExit((Path(folder) / "out").read_text())
        found = json.loads(answer.read_text())
    if found["failed"]:
        raise SystemExit(f"Tests of {room} fail without any change: {found['failed'][:3]}.")
    calls = {name: {(a, b) for a, b in one} for name, one in found["calls"].items()}
    total = sum(found["seconds"].values())
    print(f"{room}: {len(calls)} tests, {total:.0f} s while they are watched", flush=True)
    return Reach(arguments, found["seconds"], calls)


def judge(mutant: Mutant, reach: Reach) -> tuple[str, float]:
    """Killed or survived; what takes ten times as long as before is killed as well."""
    wanted, started = reach.of(mutant), time.monotonic()
    if not wanted:
        return "survived", 0.0
    files = sorted({name.split("::")[0] for name in wanted})

    def work() -> int:
        sys.meta_path.insert(0, Changed(mutant))
        return run_tests([*files, "-x"], Only(wanted))

    limit = 30 + 10 * sum(reach.seconds[one] for one in wanted)
    with tempfile.TemporaryDirectory() as folder:
        code = fork(work, int(limit), Path(folder))
    return "killed" if code else "survived", time.monotonic() - started


class Changed(SourceFileLoader):
    """Finds and loads the module of a mutant, and no other."""

    def __init__(self, mutant: Mutant) -> None:
        parts = mutant.path.relative_to(ROOT / "src").with_suffix("").parts
        self.module = ".".join(part for part in parts if part != "__init__")
        super().__init__(self.module, str(mutant.path))
        self.mutant = mutant

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        if name != self.module:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        return compiled(self.mutant)


# Processes


def import_libraries() -> None:
    """Import what the package imports, so that each process has it, and forget the package."""
    import torch

    import apfex.cli
    import apfex.estimator  # noqa: F401

    torch.set_num_threads(1)
    for name in [one for one in sys.modules if one.split(".")[0] == "apfex"]:
        del sys.modules[name]


def run_tests(arguments: list[str], plugin: object) -> int:
    import pytest

    # Plain asserts: what rewrites them would load files with doctests past the finder of mutants.
    options = ["-q", "-p", "no:cacheprovider", "--tb=line", "--assert=plain"]
    return int(pytest.main([*options, *arguments], [plugin]))


def fork(work: Callable[[], int], limit: int, folder: Path) -> int:
    """What work returns in a process of its own; a signal counts as a failure."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(folder / "hypothesis")
            out = os.open(folder / "out", os.O_WRONLY | os.O_CREAT)
            os.dup2(out, 1)
            os.dup2(out, 2)
            os.chdir(ROOT)
            code = work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return status


if __name__ == "__main__":
    main()
