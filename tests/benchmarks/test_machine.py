# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
import json
import os
import platform
from importlib.metadata import PackageNotFoundError

import torch
from front import machine

import apfex


def test_the_line_tells_cores_python_and_packages():
    line = machine.describe()
    assert f"{os.cpu_count()} cores" in line
    assert f"Python {platform.python_version()}" in line
    assert f"torch {torch.__version__}" in line


def test_figures_are_kept_with_their_machine(tmp_path):
    path = tmp_path / "new" / "step.json"
    machine.write_figures(path, machine.describe(2, ["torch"]), {"step": {3: 1.5}})
    found = json.loads(path.read_text())
    assert found["step"] == {"3": 1.5}
    assert "2 threads per run" in found["machine"]
    assert found["machine"].endswith(f"torch {torch.__version__}")


def test_without_metadata_our_version_is_that_of_the_source(monkeypatch):
    def missing(package):
        raise PackageNotFoundError(package)

    monkeypatch.setattr(machine, "version", missing)
    line = machine.describe()
    assert f"apfex {apfex.__version__}" in line
    assert "fairlearn missing" in line
