"""Tutorials are what their scripts say, ran whole, and show no place of the machine."""

import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))
LOCAL = re.compile(r"/(home|root|tmp|work|Users|usr)/|[A-Z]:\\\\")
names = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)


def outputs_of(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


@pytest.fixture
def stored(script):
    return nbformat.read(script.with_suffix(".ipynb"), as_version=4)


@names
def test_the_notebook_is_that_of_its_script(script, stored):
    from website.execute import read_script

    wanted = read_script(script.read_text(encoding="utf-8"))
    parts = [[(cell.cell_type, cell.source) for cell in one.cells] for one in (stored, wanted)]
    assert parts[0] == parts[1], "python website/execute.py NAME, or --words if only text changed"
    nbformat.validate(stored)


@names
def test_every_cell_ran_in_order_and_none_failed(stored):
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [output for output in outputs_of(stored) if output.output_type == "error"]


@names
def test_it_shows_no_place_of_this_machine(script, stored):
    assert not LOCAL.search(script.read_text(encoding="utf-8"))
    shown = [
        text
        for output in outputs_of(stored)
        for kind, text in {"stream": output.get("text", ""), **output.get("data", {})}.items()
        if kind != "image/png"
    ]
    assert not [text for text in shown if LOCAL.search(text)]


@names
def test_every_picture_has_words(stored):
    for cell in stored.cells:
        if any("image/png" in output.get("data", {}) for output in cell.get("outputs", [])):
            assert len(cell.metadata.get("alt", "")) > 30


def test_notebooks_are_small():
    assert sum(path.stat().st_size for path in (ROOT / "docs").rglob("*.ipynb")) < 3_000_000


@pytest.mark.slow
@names
def test_it_runs(script, tmp_path):
    from website.execute import execute, read_script

    done = execute(read_script(script.read_text(encoding="utf-8")), tmp_path)
    assert not [output for output in outputs_of(done) if output.output_type == "error"]
