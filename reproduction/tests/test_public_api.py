"""The study's public names are held to the rules of the product's."""

import importlib

import pytest
from reproduction.tests.test_layers import FILES, ROOMS, SCRIPT, imports_of, room_of
from tests import test_public_api as rules

MODULES = [f"apfex_reproduction.{room}" for room in ROOMS]
PUBLIC = [(m, name) for m in MODULES for name in importlib.import_module(m).__all__]
RECORDS = {"Column", "Line"}
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


@pytest.mark.parametrize("room", ROOMS[:-1])
def test_what_is_exported_is_used_elsewhere(room):
    """The rest is for the room alone, and needs no address."""
    others = [SCRIPT, *(path for path in FILES if room_of(path) != room)]
    module = f"apfex_reproduction.{room}"
    used = {name for path in others for home, name in imports_of(path) if home == module}
    assert used == set(importlib.import_module(module).__all__)
