"""Commands of other distributions: found by their entry point, and harmless if broken."""

import subprocess
import sys
from importlib.metadata import EntryPoints
from pathlib import Path

import pytest

WORKS = '''
import typer
app = typer.Typer(add_completion=False)
@app.command()
def greet(name: str, loud: bool = False) -> None:
    """Say hello to somebody."""
    typer.echo(f"Hello {name}{'!' * loud}")
'''


@pytest.fixture
def nothing_else(monkeypatch):
    """As on a machine where no distribution adds a command."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: EntryPoints())


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Put a distribution where Python looks for them."""

    def install(module: str, code: str, *, command: str, value: str | None = None) -> Path:
        (tmp_path / f"{module}.py").write_text(code)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: the-{module}-package\nVersion: 1.0\n"
        )
        (info / "entry_points.txt").write_text(
            f"[apfex.commands]\n{command} = {value or f'{module}:app'}\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, module, raising=False)
        return tmp_path

    return install


def test_a_command_of_another_distribution_is_listed_and_runs(apfex, installed):
    installed("greetings", WORKS, command="greet-me")
    listed = apfex("--help")
    assert (listed.code, listed.err) == (0, "")
    assert "greet-me" in listed.out
    assert "Say hello to somebody." in listed.out
    assert apfex("greet-me", "Ada", "--loud").out == "Hello Ada!\n"
    assert "apfex greet-me [OPTIONS]" in apfex("greet-me", "-h").out
    assert "Did you mean 'greet-me'?" in apfex("greetme").err


@pytest.mark.parametrize(
    ("code", "value", "why"),
    [
        ("import not_there", None, "ModuleNotFoundError: No module named 'not_there'"),
        ("raise RuntimeError('two\\nlines')", None, "RuntimeError: two lines"),
        ("app = 3", None, "TypeError: broken:app must be a typer.Typer, got int"),
        ("", "broken:gone", "AttributeError: module 'broken' has no attribute 'gone'"),
    ],
)
def test_a_broken_one_is_a_line_that_names_its_distribution(apfex, installed, code, value, why):
    installed("broken", code, command="break", value=value)
    said = f"Warning: The command 'break' of the-broken-package is left out: {why}\n"
    listed = apfex("--help")
    assert (listed.code, listed.err) == (0, said)
    assert "explore" in listed.out
    assert "break" not in listed.out
    called = apfex("break")
    assert called.code == 2
    assert called.err == f"{said}Error: No such command 'break' (see apfex --help).\n"


def test_beside_a_broken_one_the_others_work(apfex, installed):
    installed("broken", "import not_there", command="break")
    installed("greetings", WORKS, command="greet-me")
    done = apfex("greet-me", "Ada")
    assert (done.code, done.out) == (0, "Hello Ada\n")
    done = apfex("datasets")
    assert done.code == 0
    assert "Warning" not in done.err


def test_no_distribution_replaces_a_command_of_apfex(apfex, installed):
    installed("greetings", WORKS, command="audit")
    assert "gaps between groups" in apfex("audit", "--help").out
    assert (
        "The command 'audit' of the-greetings-package is left out: ValueError: there is a command "
        "of that name already" in apfex("--help").err
    )


@pytest.mark.usefixtures("nothing_else")
@pytest.mark.parametrize("arguments", [["reproduce"], ["reproduce", "table1"], ["reproduce", "-h"]])
def test_without_the_study_it_is_said_how_to_get_it(apfex, arguments):
    done = apfex(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "Error: `apfex reproduce` comes with the distribution apfex-reproduction; run `pip install "
        ". ./reproduction` in a checkout of APFEx to install it.\n"
    )


@pytest.mark.usefixtures("nothing_else")
def test_without_the_study_help_does_not_list_it(apfex):
    assert "reproduce" not in apfex("--help").out


@pytest.mark.parametrize(
    ("arguments", "imported"),
    [(["audit", "--help"], "[]"), (["datasets"], "[]"), (["--help"], "['greetings']")],
)
def test_it_is_imported_only_where_it_is_needed(installed, arguments, imported):
    folder = installed("greetings", WORKS, command="greet-me")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from apfex.cli import main; "
        "main(sys.argv[2:]); print([m for m in ['greetings'] if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder), *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == imported


def test_the_shell_completes_its_name(installed, monkeypatch, apfex):
    installed("greetings", WORKS, command="greet-me")
    monkeypatch.setenv("_APFEX_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "apfex gre")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert apfex().out.split() == ["greet-me"]


@pytest.mark.usefixtures("nothing_else")
def test_the_shell_completes_nothing_after_a_command_that_is_not_installed(monkeypatch, apfex):
    monkeypatch.setenv("_APFEX_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "apfex reproduce ")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert apfex().err == ""
