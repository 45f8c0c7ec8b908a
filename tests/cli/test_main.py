"""The edge: messages, warnings and what is printed where."""

import json
import sys
import warnings

import pytest

from apfex.cli import Screen
from apfex.runs import RunError
from apfex.sources._errors import hint


def raising(error):
    def command(*_, **__):
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RunError("No rows."), "Error: No rows."),
        (ValueError("n must be 1"), "Error: n must be 1"),
        (RunError(f"In memory ({hint('stream')}).", stream=False), "In memory (--no-stream)."),
        (OSError(28, "No space left on device"), "No space left"),
        (MemoryError(), "not enough memory"),
        (KeyError("x"), "KeyError: 'x'. This should not have happened; APFEX_DEBUG=1"),
    ],
)
def test_errors_are_a_line_and_exit_code_two(apfex, monkeypatch, error, words):
    monkeypatch.setattr("apfex.cli._app.app", raising(error))
    said = apfex("report", "x")
    assert said.code == 2
    assert words in said.err
    assert len(said.err.splitlines()) == 1


def test_a_pattern_without_quotes_is_told_of(apfex):
    said = apfex("audit", "a.parquet", "b.parquet", "--prediction", "yhat")
    assert said.code == 2
    assert "(b.parquet); a pattern such as 'data/*.parquet' needs quotes" in said.err


def test_ctrl_c_is_130(apfex, monkeypatch):
    monkeypatch.setattr("apfex.cli._app.app", raising(KeyboardInterrupt()))
    said = apfex("report", "x")
    assert (said.code, said.err) == (130, "Error: Stopped.\n")


def test_warnings_are_lines_on_stderr(apfex, monkeypatch):
    def command(*_, **__):
        warnings.warn("look at this", stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)

    monkeypatch.setattr("apfex.cli._app.app", command)
    before = warnings.showwarning
    said = apfex("report", "x")
    assert (said.code, said.out, said.err) == (0, "", "Warning: look at this\n")
    assert warnings.showwarning is before


def test_markup_and_control_characters_are_shown(capsys):
    screen = Screen()
    screen.say("[red]x[/red] :smile:")
    screen.facts({"[b]": "\x1b[31m\u202e"})
    screen.table(["[i]"], [["[/]"]], left=("[i]",), styles={"[/]": "red"})
    screen.warn("[/nothing]")
    screen.error("\x1b]0;title\x07")
    out, err = capsys.readouterr()
    assert "[red]x[/red] :smile:" in out
    assert "\\x1b[31m\\u202e" in out
    assert all(mark in out for mark in ("[/]", "[i]", "[b]"))
    assert err == "Warning: [/nothing]\nError: \\x1b]0;title\\x07\n"


def test_a_line_in_a_pipe_stays_a_line_without_spaces_at_its_end(capsys):
    screen = Screen()
    screen.say("word " * 60)
    screen.facts({"a": "b", "long name": "c"})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[1:] == ["a          b", "long name  c"]


def test_json_has_no_nan(capsys):
    Screen(as_json=True).finish({"gap": float("nan"), "n": 1, "path": sys})
    assert json.loads(capsys.readouterr().out)["gap"] is None
    Screen().finish({"gap": 1})
    assert capsys.readouterr().out == ""


def test_help_is_no_error(apfex):
    said = apfex()
    assert (said.code, said.err) == (0, "")
    assert apfex("explore", "--help").code == 0
    assert apfex("explore", "-h").code == 0
