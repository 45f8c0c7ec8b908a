"""Every command and option has help, an example, and a place in docs/cli.md."""

import re
import shlex
from pathlib import Path

import pytest
from tests.commands import COMMANDS, options_of, understand

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
COMPLETION = {"--install-completion", "--show-completion"}
OWN = [name for name in COMMANDS if name not in ("apfex", "apfex reproduce")]


@pytest.mark.parametrize("name", ["apfex", *OWN])
def test_every_command_has_help_and_an_example(name):
    assert COMMANDS[name].help
    assert name in (COMMANDS[name].epilog or "")
    assert all(getattr(parameter, "help", None) for parameter in COMMANDS[name].params)


@pytest.mark.parametrize("name", OWN)
def test_every_command_has_a_section_that_names_its_options(name):
    top = " ".join(name.split()[:2])
    section = re.search(rf"^## `{top}`$(.*?)(?=^## |\Z)", PAGE, flags=re.M | re.S)
    assert section, f"docs/cli.md has no section `{top}`"
    named = set(re.findall(r"`(--[a-z-]+)(?:/(--[a-z-]+))?", section[1]))
    known = {one for pair in named for one in pair}
    assert not options_of(COMMANDS[name]) - COMPLETION - known


def test_the_page_names_no_option_that_is_not_there():
    known = set().union(*(options_of(COMMANDS[name]) for name in ("apfex", *OWN)))
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) <= known | COMPLETION | {"--help"}


EXAMPLES = [
    line.strip().replace("\\[", "[")
    for command in COMMANDS.values()
    for line in (command.epilog or "").splitlines()
    if line.strip().startswith("apfex ")
]


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples_of_help_are_understood(line):
    understand(shlex.split(line.partition("|")[0], comments=True)[1:])
