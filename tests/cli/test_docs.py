"""Every command and option has help, an example, and a place in docs/cli.md."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from apfex.cli._app import app

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def commands(command, path=("apfex",)):
    yield " ".join(path), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


COMMANDS: dict[str, Any] = dict(commands(get_command(app)))


def options_of(command):
    return {
        option
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("--") and "completion" not in option
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_an_example(name):
    assert COMMANDS[name].help
    assert name in (COMMANDS[name].epilog or "")
    assert all(getattr(parameter, "help", None) for parameter in COMMANDS[name].params)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "apfex"])
def test_every_command_has_a_section_that_names_its_options(name):
    top = " ".join(name.split()[:2])
    section = re.search(rf"^## `{top}`$(.*?)(?=^## |\Z)", PAGE, flags=re.M | re.S)
    assert section, f"docs/cli.md has no section `{top}`"
    undocumented = [
        option for option in options_of(COMMANDS[name]) if f"`{option}" not in section[1]
    ]
    assert not undocumented


def test_the_page_names_no_option_that_is_not_there():
    known = set().union(*(options_of(command) for command in COMMANDS.values()))
    known |= {"--help", "--install-completion", "--show-completion"}
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) <= known


EXAMPLES = re.findall(r"^(?:\$ )?(apfex [a-z].*)$", PAGE, flags=re.M)
EXAMPLES += [
    line.strip().replace("\\[", "[")
    for command in COMMANDS.values()
    for line in (command.epilog or "").splitlines()
    if line.strip().startswith("apfex ")
]


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples_are_understood(line):
    """They parse, options and all; nothing is run."""
    words = shlex.split(line.partition("|")[0], comments=True)
    names = [" ".join(words[:n]) for n in (3, 2, 1)]
    name = next(name for name in names if name in COMMANDS)
    COMMANDS[name].make_context(name, words[len(name.split()) :])
