"""The machine and the packages that a run was made with, in one line."""

from __future__ import annotations

import contextlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import apfex

PACKAGES = ("apfex", "torch", "xgboost", "scikit-learn", "scipy")
RIVALS = ("fairlearn", "torchjd", "fairret", "oxonfair", "error-parity", "fairgbm")


def describe(threads: int = 1, packages: Sequence[str] = (*PACKAGES, *RIVALS)) -> str:
    """CPU model, cores, Python and packages; times compare only where this line is the same."""
    python = f"Python {platform.python_version()}"
    found = ", ".join(f"{package} {_version_of(package)}" for package in packages)
    noun = "thread" if threads == 1 else "threads"
    return f"{_model()}, {os.cpu_count()} cores, {threads} {noun} per run; {python}, {found}"


def write_figures(path: Path, machine: str, figures: Mapping[str, Any]) -> None:
    """Keep figures with the machine and the packages that they come from."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": machine, **figures}, indent=1) + "\n")


def _model() -> str:
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), model)
    return model


def _version_of(package: str) -> str:
    for name in (package, f"{package}-cpu"):  # xgboost has two names, for one module
        with contextlib.suppress(PackageNotFoundError):
            return version(name)
    # apfex may be on the path without being installed
    return apfex.__version__ if package == "apfex" else "missing"
