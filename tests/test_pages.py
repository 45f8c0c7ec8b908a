"""Commands and YAML of all pages: understood by the real parser, and run where they can be."""

import re
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml
from tests.commands import COMMANDS, options_of, understand
from website.console import read_commands, run_commands, words_for_apfex
from website.run_pages import read_blocks

from apfex.runs import read_rule

ROOT = Path(__file__).parents[1]
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "docs").rglob("*.ipynb"),
    ROOT / "reproduction" / "README.md",
]
if not (ROOT / ".pre-commit-hooks.yaml").exists():
    pytest.skip("pages are in the repository, not in the package", allow_module_level=True)
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}


def text_of(page: Path) -> str:
    """What a page says; of a notebook its cells of text."""
    if page.suffix == ".md":
        return page.read_text(encoding="utf-8")
    cells = nbformat.read(page, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def blocks_of(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(page), flags=re.M | re.S)


def pages_with(language: str) -> list[Any]:
    found = [page for page in PAGES if blocks_of(page, language)]
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_are_of_a_language_that_tests_read(page):
    """Any other would be one that nothing checks."""
    opened = re.findall(r"^ *```(.*)$", text_of(page), flags=re.M)[::2]
    known = {"python", "console", "yaml", "toml", "bibtex", "{.text .output}"}
    assert set(opened) <= known


@pytest.mark.parametrize("page", pages_with("console"))
def test_commands_are_understood(page):
    """Where a page shows an error, the command is wrong on purpose; such blocks are run."""
    blocks = [one for one in read_blocks(text_of(page)) if one.language == "console"]
    assert len(blocks) == len(blocks_of(page, "console"))
    for block in blocks:
        for command in read_commands(block.code) if "Error: " not in (block.shown or "") else ():
            words = words_for_apfex(command)
            if words is not None:
                understand(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_within_sentences_have_the_options_that_they_name(page):
    """`apfex audit --markdown FILE` leaves out what is needed, but names what there is."""
    for said in re.findall(r"(?<!`)`(apfex [a-z][^`]*)`", text_of(page)):
        words = said.split()
        names = [" ".join(words[:n]) for n in (3, 2)]
        name = next((name for name in names if name in COMMANDS), None)
        assert name is not None, said
        typed = {word.partition("=")[0].rstrip(",.") for word in words if word.startswith("--")}
        assert typed <= options_of(COMMANDS[name]) | {"--help"}, said


def people(n: int, seed: int) -> pd.DataFrame:
    """A table with the columns that pages name: outcomes, decisions, and whom they are about."""
    rng = np.random.default_rng(seed)
    sex, race = rng.choice(["Female", "Male"], n), rng.choice(["Black", "White"], n)
    hours, schooling = rng.normal(40, 8, n), rng.integers(8, 17, n)
    rich = (hours - 40) / 8 + (schooling - 12) / 3 + (sex == "Male") + rng.normal(0, 1, n) > 0.5
    frame = pd.DataFrame({"hours": hours.round(), "schooling": schooling, "sex": sex, "race": race})
    return frame.assign(
        income=np.where(rich, ">50K", "<=50K"),
        decision=np.where(rich ^ (rng.random(n) < 0.1), "approved", "declined"),
        repaid=np.where(rich ^ (rng.random(n) < 0.2), "Y", "N"),
    )


@pytest.mark.slow
def test_the_commands_of_the_readme_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    people(600, 0).to_csv("decisions.csv", index=False)
    people(600, 1).drop(columns=["decision", "repaid"]).to_csv("people.csv", index=False)
    people(50, 2).drop(columns=["decision", "repaid", "income"]).to_csv("new.csv", index=False)
    explored, used = blocks_of(ROOT / "README.md", "console")[:2]
    assert run_commands(explored) == [0]
    assert run_commands(used) == [0, 1]  # these decisions favor men, and the gate says so
    assert "HIT   dp_gap.lower > 0.05" in capsys.readouterr().out
    assert len(pd.read_csv("new-predictions.csv")) == 50
    assert Path("apfex-people", "report.html").exists()


@pytest.mark.slow
def test_the_commands_of_the_tutorial_on_a_file_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tutorial = ROOT / "docs" / "tutorials" / "own_csv.ipynb"
    cells = [one for one in nbformat.read(tutorial, as_version=4).cells if one.cell_type == "code"]
    names: dict[str, Any] = {}
    exec(cells[0].source, names)
    names["people"].drop(columns="hired").head(40).to_csv("new.csv", index=False)
    explored, predicted = blocks_of(tutorial, "console")
    assert run_commands(explored) == [0]
    assert run_commands(predicted) == [0, 0]
    assert len(pd.read_csv("other.csv")) == len(pd.read_csv("new-predictions.csv")) == 40


YAML = [
    pytest.param(block, id=f"{page.relative_to(ROOT)}-{place}")
    for page in PAGES
    for place, block in enumerate(blocks_of(page, "yaml"))
]


@pytest.mark.parametrize("block", YAML)
def test_yaml_calls_what_is_there(block):
    """Workflows to call, with their inputs; hooks, with their arguments; and what steps run."""
    document = yaml.safe_load(block)
    assert document.keys() & {"jobs", "repos"}, "nothing here that a test knows how to check"
    for job in document.get("jobs", {}).values():
        if "uses" in job:
            check_call(job["uses"], job["with"])
        for step in job.get("steps", ()):
            for command in read_commands(step.get("run", "")):
                if (words := words_for_apfex(command)) is not None:
                    understand(words)
    for repo in document.get("repos", ()):
        for hook in repo["hooks"]:
            assert hook["id"] in HOOKS, f"there is no hook {hook['id']}"
            words = [*HOOKS[hook["id"]]["entry"].split()[1:], *hook["args"]]
            understand(words)
            assert re.search(hook["files"], words[1])


def check_call(uses: str, given: dict[str, Any]) -> None:
    """A reusable workflow of this repository exists, and has the inputs that it is given."""
    place = re.fullmatch(r"OWNER/apfex/(\.github/workflows/[\w-]+\.yml)@\w+", uses)
    assert place, uses
    called = yaml.safe_load((ROOT / place[1]).read_text(encoding="utf-8"))
    inputs = called[True]["workflow_call"]["inputs"]  # "on" is a word for true in YAML 1.1
    assert given.keys() <= inputs.keys()
    assert {name for name, one in inputs.items() if one.get("required")} <= given.keys()
    assert all(isinstance(value, str) for value in given.values())
    for rule in given.get("fail-on", "").splitlines():
        read_rule(rule)


@pytest.mark.parametrize("page", pages_with("toml"))
def test_entry_points_of_pages_are_those_that_are_installed(page):
    import tomllib

    file = (ROOT / "reproduction" / "pyproject.toml").read_text(encoding="utf-8")
    there = tomllib.loads(file)["project"]["entry-points"]
    for block in blocks_of(page, "toml"):
        assert tomllib.loads(block)["project"]["entry-points"] == there
