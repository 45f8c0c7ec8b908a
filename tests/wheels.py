"""Wheels of this repository, built as pip builds them, and what their source imports."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from email import message_from_string
from email.message import Message
from importlib.metadata import packages_distributions
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


def build_wheel(project: Path, folder: Path) -> ZipFile:
    """The wheel of a project, by its own build backend and without a network."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return ZipFile(wheel)


def read_part(wheel: ZipFile, name: str) -> str:
    """A file of the wheel's ``dist-info``."""
    (path,) = (path for path in wheel.namelist() if path.endswith(f".dist-info/{name}"))
    return wheel.read(path).decode()


def metadata_of(wheel: ZipFile) -> Message:
    """Name, version and requirements."""
    return message_from_string(read_part(wheel, "METADATA"))


def requirements_of(wheel: ZipFile, *, extras: bool) -> dict[str, Requirement]:
    """What is installed with it on this machine, by name; with extras also what may be."""
    found = [Requirement(line) for line in metadata_of(wheel).get_all("Requires-Dist", [])]
    return {
        canonicalize_name(one.name): one
        for one in found
        if extras or one.marker is None or one.marker.evaluate({"extra": ""})
    }


def imported_distributions(source: Path) -> set[str]:
    """Distributions whose modules are imported anywhere in a source folder."""
    homes = packages_distributions()
    modules = {name for path in source.rglob("*.py") for name in _imported(path)}
    return {canonicalize_name(home) for name in modules for home in homes.get(name, ())}


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]
