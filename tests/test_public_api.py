"""What users are promised has one address, a docstring and a runnable example; nothing else is.

``__all__`` of a room is the promise. What a room's ``__init__`` imports beyond that is for the
other rooms, and type checkers tell users so (the package is typed).
"""

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.test_layers import FOUNDATION, ROOMS

import apfex

MODULES = [f"apfex.{room}" for room in sorted(FOUNDATION | set(ROOMS))]
PUBLIC = [(m, name) for m in MODULES for name in importlib.import_module(m).__all__]
ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLE_FREE = (Exception,)  # errors and warnings need none


@pytest.mark.parametrize("module", ["apfex", *MODULES])
def test_exports_are_sorted_and_importable(module):
    exported = importlib.import_module(module).__all__
    order = sorted(exported, key=lambda n: (not n.isupper(), not n[0].isupper(), n))
    assert list(exported) == order
    assert len(set(exported)) == len(exported)
    assert all(hasattr(importlib.import_module(module), name) for name in exported)


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_public_names_are_documented(module, name):
    thing = getattr(importlib.import_module(module), name)
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return
    assert inspect.getdoc(thing), f"{module}.{name} has no docstring"
    methods = (
        []
        if inspect.isfunction(thing)
        else [
            method
            for key, method in vars(thing).items()
            if not key.startswith("_")
            and (inspect.isfunction(method) or isinstance(method, property))
        ]
    )
    assert all(inspect.getdoc(method) for method in methods)


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_public_functions_and_classes_show_an_example(module, name):
    thing = getattr(importlib.import_module(module), name)
    protocol = getattr(thing, "_is_protocol", False)
    record = inspect.isclass(thing) and name in RECORDS
    error = inspect.isclass(thing) and issubclass(thing, EXAMPLE_FREE)
    if not (inspect.isclass(thing) or inspect.isfunction(thing)) or protocol or record or error:
        return
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")
    assert examples, f"{module}.{name} shows no example"


RECORDS = {
    "AuditRun",
    "Dataset",
    "DatasetInfo",
    "Decision",
    "GapInterval",
    "Run",
}
"""Results that other examples show."""


def test_there_are_few_names_to_learn():
    assert len(PUBLIC) <= 120


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_documents_use_what_is_promised(page):
    shown = re.findall(r"^\s*from (apfex[.\w]*) import ([\w, ]+)", page.read_text(), re.M)
    for module, names in shown:
        promised = set(importlib.import_module(module).__all__)
        assert set(names.replace(" ", "").split(",")) <= promised, f"{page.name}: {module}"


def test_the_root_exports_few_names():
    assert len(apfex.__all__) <= 15


def test_import_is_light():
    """Importing the package loads neither plotting nor other fairness libraries."""
    code = (
        "import sys, apfex; "
        "print([m for m in ('matplotlib', 'plotly', 'fairlearn', 'torchjd', 'moocore', 'polars', "
        "'sklearn', 'xgboost', 'dask', 'distributed') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_engines_are_imported_where_they_are_used():
    code = (
        "import sys, apfex.auditing, apfex.runs, apfex.cli; "
        "print([m for m in ('ibis', 'duckdb', 'pyspark', 'dask', 'polars') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert result.stdout.strip() == "[]"


def test_the_package_is_typed():
    assert (Path(apfex.__file__).parent / "py.typed").exists()
