"""Data flows one way, and the study sees of the product only what is public."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.test_layers import SOURCE as PRODUCT

import apfex_reproduction

SOURCE = Path(apfex_reproduction.__file__).parent
ROOMS = ["baselines", "experiments", "cli"]
FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path.parent != SOURCE]
SCRIPT = SOURCE.parents[1] / "pages.py"


def imports_of(path: Path) -> Iterator[tuple[str, str | None]]:
    """Every module that a file imports, with the name that it takes from there, if any."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0]


def test_every_room_has_its_place():
    assert {room_of(path) for path in FILES} == set(ROOMS)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_run_one_way(path):
    room = room_of(path)
    for module, _ in imports_of(path):
        package, _, rest = module.partition(".")
        if package == "apfex_reproduction":
            parts = rest.split(".")
            assert parts[0] in ROOMS[: ROOMS.index(room) + 1]
            assert parts[0] == room or not any(part.startswith("_") for part in parts)


@pytest.mark.parametrize("path", [*FILES, SCRIPT], ids=lambda p: f"{p.parent.name}/{p.name}")
def test_of_the_product_rooms_are_used_and_never_their_files(path):
    for module, name in imports_of(path):
        if module.split(".")[0] == "apfex":
            parts = [*module.split("."), name or ""]
            assert not any(part.startswith("_") for part in parts), f"{module}.{name} is private"


def test_the_product_does_not_know_the_study():
    for path in PRODUCT.rglob("*.py"):
        assert not [m for m, _ in imports_of(path) if m.split(".")[0] == "apfex_reproduction"]
