"""The command has help, an example, and a place in the study's page."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from apfex_reproduction.cli import app

PAGE = (Path(__file__).parents[2] / "README.md").read_text()
COMMAND: Any = get_command(app)
OPTIONS = {option for parameter in COMMAND.params for option in parameter.opts if "--" in option}
EXAMPLES = re.findall(r"^ *(apfex reproduce .*)$", f"{PAGE}\n{COMMAND.epilog}", flags=re.M)


def test_everything_has_help():
    assert COMMAND.help
    assert all(getattr(parameter, "help", None) for parameter in COMMAND.params)


def test_the_page_names_every_option_and_no_other():
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) == OPTIONS


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples_are_understood(line):
    """They parse, options and all; nothing is run."""
    COMMAND.make_context("reproduce", shlex.split(line)[2:])


def test_there_are_examples():
    assert len(EXAMPLES) >= 4
