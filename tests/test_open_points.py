"""The page of settled open points says what the code does."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "open_points.md").read_text(encoding="utf-8")
SETTLED = re.findall(r"`(\w+)\.(\w+)\.(\w+) = ([^`]+)`", PAGE)
WANTED = {
    "delta": "tolerance",
    "M": "patience",
    "eps_g": "small_gradient",
    "beta": "imbalance",
    "eps_c": "aligned",
    "tau": "rate",
    "lambda": "blend",
    "share of the task": "task_weight",
    "floor": "floor",
    "clip": "clip",
    "order": "order",
    "loss family": "aggregate",
    "unit length": "form",
}


@pytest.mark.parametrize(("room", "name", "setting", "value"), SETTLED)
def test_every_value_on_the_page_is_the_default(room, name, setting, value):
    made = getattr(importlib.import_module(f"apfex.{room}"), name)
    default = inspect.signature(made).parameters[setting].default
    assert default == ast.literal_eval(value)


def test_no_point_is_forgotten():
    assert set(WANTED.values()) <= {setting for _, _, setting, _ in SETTLED}


@pytest.mark.parametrize("page", ["../README.md", "method.md", "reproduction.md"])
def test_users_are_led_to_the_page(page):
    assert "open_points.md" in (DOCS / page).read_text(encoding="utf-8")
