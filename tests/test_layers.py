"""Data flows one way: a room imports only what stands to its left."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

import apfex

SOURCE = Path(apfex.__file__).parent
PLAIN = {
    "arguments",
    "extras",
    "files",
    "markup",
    "memory",
    "plain",
    "strict_json",
}
"""Below everything."""
FOUNDATION = {
    "clusters",
    "distributed",
    "engines",
    "relaxations",
    "solvers",
    "streams",
    "tables",
    *PLAIN,
}
"""Below all others; they know nothing of fairness or of each other."""
ROOMS = [
    "groups",
    "rates",
    "metrics",
    "auditing",
    "testing",
    "objectives",
    "gradients",
    "history",
    "strategies",
    "constraints",
    "optimizer",
    "boosters",
    "models",
    "chunks",
    "rules",
    "front",
    "persistence",
    "estimator",
    "datasets",
    "report",
    "sources",
    "runs",
    "integrations",
    "cli",
]


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def imports_of(path: Path) -> list[ast.Import | ast.ImportFrom]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in imports_of(path):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            modules = [node.module or ""]
            if node.module == "apfex":
                modules = [f"apfex.{alias.name}" for alias in node.names]
        else:
            modules = [alias.name for alias in node.names]
        rooms |= {m.split(".")[1] for m in modules if m.startswith("apfex.")}
    return rooms


FILES = [
    path
    for path in sorted(SOURCE.rglob("*.py"))
    if path.parent != SOURCE or room_of(path) not in ("__init__", "__main__")
]


def test_every_room_has_its_place():
    assert {room_of(path) for path in FILES} == FOUNDATION | set(ROOMS)


def test_readme_names_every_room_once():
    readme = (SOURCE.parents[1] / "README.md").read_text("utf-8")
    table = readme.split("| module | what lives there |")[1].split("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(FOUNDATION | set(ROOMS))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_run_one_way(path):
    room = room_of(path)
    allowed = {room} | (PLAIN if room in FOUNDATION else FOUNDATION)
    if room in ROOMS:
        allowed |= set(ROOMS[: ROOMS.index(room)])
    assert imported_rooms(path) <= allowed


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_private_files_are_imported_only_within_their_room(path):
    room = room_of(path)
    for node in imports_of(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("apfex."):
            parts = (node.module or "").split(".")
            assert not any(p.startswith("_") for p in parts[1:]) or parts[1] == room


def names_taken_from(room: str, folder: Path) -> set[str]:
    """Names that files of other rooms, or of the folder, import from a room."""
    taken = set()
    for path in folder.rglob("*.py"):
        if path.is_relative_to(SOURCE / room) or path == SOURCE / f"{room}.py":
            continue
        for node in imports_of(path):
            if isinstance(node, ast.ImportFrom) and node.module == f"apfex.{room}":
                taken |= {alias.name for alias in node.names}
    return taken


TESTED = {
    "persistence": {"Bundle", "pack", "read_bundle", "write_bundle"},
    # folders are forged part by part, and values packed of types that no model stores
}
"""What rooms hand out for tests alone."""


@pytest.mark.parametrize("room", sorted(FOUNDATION | set(ROOMS)))
def test_what_a_room_hands_out_is_promised_to_users_or_taken_by_others(room):
    init = SOURCE / room / "__init__.py"
    if not init.exists():
        return
    handed_out = {
        alias.name
        for node in ast.parse(init.read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    root = SOURCE.parents[1]
    used = set(importlib.import_module(f"apfex.{room}").__all__)
    for folder in (SOURCE, root / "reproduction" / "src", root / "benchmarks"):
        used |= names_taken_from(room, folder)
    tested = TESTED.get(room, set())
    assert handed_out - used == tested
    assert tested <= names_taken_from(room, root / "tests")
