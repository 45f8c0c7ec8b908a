"""The page of settled open points says what the code does."""

import ast
import importlib
import inspect
import json
import re
from pathlib import Path

import pytest
from tests.test_readme import run_page

from apfex.strategies import read_strategies

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
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


def test_every_setting_is_in_the_table_and_has_a_section():
    """So that a reader finds each letter, and then why it has its value."""
    table, rest = PAGE.split("## The losses", 1)
    for room, name, setting, _ in SETTLED:
        row = next(line for line in table.splitlines() if f"{room}.{name}.{setting} = " in line)
        (anchor,) = re.findall(r"\(#([\w-]+)\)", row)
        heads = [
            re.sub(r"[^\w -]", "", head).lower() for head in re.findall(r"^### (.*)", rest, re.M)
        ]
        assert anchor in [head.replace(" ", "-") for head in heads]


def test_the_files_that_the_page_names_hold_what_it_says():
    named = re.findall(r"`((?:src|tests)/[\w/.]+)`(?: \(([\w, ]+)\))?", PAGE)
    assert len(named) > 10
    for file, classes in named:
        place = ROOT / file
        assert place.exists(), file
        for name in filter(None, classes.split(", ")):
            assert f"class {name}" in place.read_text(encoding="utf-8"), (file, name)


def test_the_examples_of_the_page_run_in_order():
    names = run_page("docs/open_points.md")
    assert read_strategies("switch") == (names["paced"],)
    history = names["optimizer"].history
    assert history.n_windows == 10
    assert history.losses[-1][1] < history.losses[0][1]  # the gap in selection rates


def ablation(name):
    """Hypervolumes and constant runs of a row, on Adult, COMPAS, German, Heart and CelebA."""
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    table = page.split("<!-- ablations -->")[1].split("<!-- end of ablations -->")[0]
    row = next(line for line in table.splitlines() if line.startswith(f"| {name}"))
    found = re.findall(r"([\d.]+) \((\d+)\)", row)
    return [float(value) for value, _ in found], [int(n) for _, n in found]


def moved(name):
    """By how much an ablation changes the hypervolume of the form of the tables."""
    ours, other = ablation("APFEx (Inter")[0], ablation(name)[0]
    return [round(b - a, 3) for a, b in zip(ours, other, strict=True)]


def test_what_is_said_of_the_ablations_stands_in_their_table():
    for name in ("delta-1e-4", "delta-1e-2", "beta-1.2", "beta-5"):
        assert max(map(abs, moved(name))) <= 0.01, f"{name} moves {moved(name)}"
    *_, german, heart, _ = ablation("no-task-share")[1]
    assert (german, heart) == (10, 10)


def constant_runs(file, method):
    """How many recorded runs, of all data sets, end in a constant decision."""
    found = []
    for path in sorted((ROOT / "reproduction" / "records").glob(f"{file}-*.jsonl")):
        runs = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        found += [
            run["results"]["nearest"]["constant"]
            for run in runs
            if (run["method"], run["split"]) == (method, "70/15/15")
        ]
    assert found, method
    return sum(found), len(found)


def test_which_choices_move_the_constant_runs_is_that_of_the_records():
    """The page counts none, so that it stays true when runs are made anew; it says which way."""
    ours, runs = constant_runs("tables", "apfex-inter")
    names = ("scales-range", "literal-switch", "no-task-share")
    found = {name: constant_runs("ablations", f"apfex-inter+{name}") for name in names}
    said = f"of {runs} runs {ours} are constant; {found}"
    assert {n for _, n in found.values()} == {runs}, said
    assert found["scales-range"][0] < ours, said
    assert min(found["literal-switch"][0], found["no-task-share"][0]) > ours, said
    for name, (count, _) in found.items():
        assert f"(*{name}*)" in PAGE
        assert sum(ablation(name)[1]) == count, f"docs/reproduction.md, {name}: {said}"
    assert not re.findall(r"\d+ of \d+", PAGE)


@pytest.mark.parametrize("page", ["../README.md", "method.md", "reproduction.md"])
def test_users_are_led_to_the_page(page):
    assert "open_points.md" in (DOCS / page).read_text(encoding="utf-8")
