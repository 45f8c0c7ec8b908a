"""A change of a file that can be found again, and a module that has it."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

from mutation.changes import changes

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "apfex"


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    path: Path
    place: int
    """Among the changes of its file."""
    function: int
    """First line of the function around it, 0 outside of functions."""
    name: str
    """The file, the function, the change and the line as it is written: no number of a line."""
    code: str
    """A digest of the function, or of the statement outside of functions: what was tested."""


def mutants_of(path: Path) -> list[Mutant]:
    """All of a file, in its order."""
    source = path.read_text()
    tree, lines = ast.parse(source), source.splitlines()
    around = list(functions(tree))
    found, seen = [], Counter()
    for place, (line, change, _) in enumerate(changes(tree)):
        first, last, function = next(
            (one for one in reversed(around) if one[0] <= line <= one[1]), (0, 0, "")
        )
        where = f"{path.relative_to(SOURCE)} {function}".rstrip()
        name = f"{where}: {shortened(change)}, in: {lines[line - 1].strip()}"
        seen[name] += 1
        name += f" ({seen[name]})" * (seen[name] > 1)
        text = lines[first - 1 : last] if first else statement(tree, lines, line)
        found.append(Mutant(path, place, first, name, digest(text)))
    return found


def shortened(change: str) -> str:
    change = change.replace('"', "'")  # versions of Python write other quotes
    return change if len(change) <= 100 else f"{change[:40]} ... {change[-50:]}"


def functions(tree: ast.AST, within: str = "") -> Iterator[tuple[int, int, str]]:
    """First and last line and the name of each, the outer before the inner."""
    for node in ast.iter_child_nodes(tree):
        inside = within
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            inside = f"{within}.{node.name}".removeprefix(".")
        if isinstance(node, ast.FunctionDef):
            yield *span_of(node), inside
        yield from functions(node, inside)


def statement(tree: ast.AST, lines: list[str], line: int) -> list[str]:
    """The innermost one around a line outside of functions."""
    spans = [span_of(node) for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    around = [span for span in spans if span[0] <= line <= span[1]]
    first, last = min(around, key=lambda span: span[1] - span[0])
    return lines[first - 1 : last]


def span_of(node: Any) -> tuple[int, int]:
    """First line, decorators included, and last."""
    decorators = getattr(node, "decorator_list", ())
    return min([node.lineno, *(one.lineno for one in decorators)]), node.end_lineno


def digest(lines: list[str]) -> str:
    """Of what is written, without indentation, empty lines and comments of their own lines."""
    kept = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    return sha256("\n".join(kept).encode()).hexdigest()[:8]


def drawn_first(mutants: list[Mutant], seed: int) -> list[Mutant]:
    """In an order by chance in which each keeps its place while others come and go."""
    return sorted(mutants, key=lambda one: sha256(f"{seed} {one.name}".encode()).digest())


class Changed(SourceFileLoader):
    """Finds and loads the module of a mutant, and no other."""

    def __init__(self, path: Path, place: int) -> None:
        parts = path.relative_to(ROOT / "src").with_suffix("").parts
        self.module = ".".join(part for part in parts if part != "__init__")
        super().__init__(self.module, str(path))
        self.place = place

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        if name != self.module:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        tree = ast.parse(Path(self.path).read_text())
        list(changes(tree))[self.place][2]()
        return compile(ast.fix_missing_locations(tree), str(self.path), "exec")

    def apply(self) -> None:
        """Have this process import the mutant; it must not have imported the module yet."""
        sys.meta_path.insert(0, self)
