"""The study's public names are held to the rules of the product's."""

import importlib

import pytest
from reproduction.tests.test_layers import ROOMS
from tests import test_public_api as rules

MODULES = [f"apfex_reproduction.{room}" for room in ROOMS]
PUBLIC = [(m, name) for m in MODULES for name in importlib.import_module(m).__all__]
RECORDS = {"Cell", "Column", "Comparison", "Line", "Part", "Row", "Rung", "Table"}
"""Results that other examples show."""


@pytest.mark.parametrize("module", MODULES)
def test_exports_are_sorted_and_importable(module):
    rules.test_exports_are_sorted_and_importable(module)


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_public_names_are_documented(module, name):
    rules.test_public_names_are_documented(module, name)


@pytest.mark.parametrize(("module", "name"), [one for one in PUBLIC if one[1] not in RECORDS])
def test_public_functions_and_classes_show_an_example(module, name):
    rules.test_public_functions_and_classes_show_an_example(module, name)
