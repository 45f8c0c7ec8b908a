"""The edge: what a command raises becomes a line on stderr and an exit code."""

from __future__ import annotations

import atexit
import os
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

_INTERRUPTED, _BROKEN_PIPE = 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Words after ``apfex``; those of the process by default.

    Returns
    -------
    int
        0 fine, 1 no usable model was found, a gate was hit or a rerun differs, 2 usage or data
        error, 130 Ctrl-C, 141 nobody reads any more. The environment variable ``APFEX_DEBUG``
        shows where an error comes from.

    Examples
    --------
    >>> main(["--version"])  # doctest: +ELLIPSIS
    apfex 0...
    0
    """
    try:
        return _run(arguments)
    except KeyboardInterrupt:  # while modules are imported, or while an error is told
        sys.stderr.write("Error: Stopped.\n")
        return _INTERRUPTED
    finally:  # all is said: a second Ctrl-C has nothing to stop while Python ends
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def _run(arguments: Sequence[str] | None) -> int:
    import traceback
    import warnings

    from apfex.cli._app import app
    from apfex.cli._screen import Screen, standard_streams
    from apfex.cli._torchrun import as_worker

    with standard_streams(), warnings.catch_warnings():
        screen = Screen()
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_, **__: screen.warn(_words(message))
        try:
            with as_worker(arguments, _message):
                code = app(arguments, prog_name="apfex", standalone_mode=False)
            sys.stdout.flush()
        except KeyboardInterrupt:
            return _stop(screen)
        except BrokenPipeError:
            return _close_pipe()
        except SystemExit as error:  # by typer: 1 after a broken pipe, 0 after completion
            return _close_pipe() if error.code == 1 else 0
        except Exception as error:
            if os.environ.get("APFEX_DEBUG"):
                traceback.print_exc()
            _drop_unwritten()
            return _tell(error, screen, sys.argv[1:] if arguments is None else arguments)
        if code == _INTERRUPTED:
            return _stop(screen)
        return code if isinstance(code, int) else 0


def _tell(error: Exception, screen: Any, arguments: Sequence[str]) -> int:
    """A line or two; the traceback was for those who ask for it."""
    from apfex.cli._torchrun import StoppedWorker

    if not isinstance(error, StoppedWorker) or str(error):
        screen.error(_typed(_message(error), arguments))
    return 2


def _message(error: Exception) -> str:
    if hasattr(error, "format_message"):  # wrong usage, as typer found it
        return f"{_usage(error)}"
    if isinstance(error, MemoryError):
        return f"There is not enough memory: {error or 'use fewer rows or columns'}"
    if isinstance(error, OSError) and error.strerror and error.filename is None:
        return f"Reading or writing failed: {error.strerror}."
    if isinstance(error, ValueError | TypeError | OSError | ImportError):
        return _words(error) or type(error).__name__
    return (
        f"{type(error).__name__}: {error}. This should not have happened; APFEX_DEBUG=1 shows "
        "where it did."
    )


def _typed(message: str, arguments: Sequence[str]) -> str:
    """A message with what was typed: the option for an argument, and its value."""
    first, _, rest = message.partition(" ")
    option = f"--{first.replace('_', '-')}"
    if first.isidentifier() and _value_of(option, arguments) is not None:
        return f"{option} {rest}"
    found = _INVALID.match(message)
    value = None if found is None else _value_of(found[1], arguments)
    if found is None or value is None:
        return message
    rule = next((re.sub(f"^{said}$", ours, found[2]) for said, ours in _RULES.items()
                 if re.match(said, found[2])), None)  # fmt: skip
    return message if rule is None else f"{found[1]} {rule}, got {value!r} {found[3]}"


_INVALID = re.compile(r"Invalid value for '(--[\w-]+)': (?:Value error, )?(.*?)\.? (\(see .*\)\.)$")
_RULES = {
    r"Input should be a valid number.*": "must be a number",
    r"Input should be a valid integer.*": "must be a whole number",
    r"Input should be greater than or equal to (.*)": r"must be at least \1",
    r".* is not one of (.*)": r"must be one of \1",
}
"""What the parser of options says, and what we say."""


def _value_of(option: str, arguments: Sequence[str]) -> str | None:
    """What was typed for an option."""
    for place, word in enumerate(arguments):
        if word == option:
            return arguments[place + 1] if place + 1 < len(arguments) else ""
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def _words(problem: Any) -> str:
    """The message of an error or warning, with options where Python has arguments."""
    text: Any = getattr(problem, "text", None)  # of apfex.runs, which is not imported for that
    return str(text(_as_option) if callable(text) else problem)


def _as_option(name: str, value: Any) -> str:
    """An argument of :mod:`apfex.runs` as the option that is typed for it."""
    import shlex

    if name == "predict":
        return f"apfex predict {shlex.quote(str(value))} FILE"
    if name == "source":
        return "source"  # typed without an option
    option = f"--{name.replace('_', '-')}"
    if value is None or value is True:
        return option
    if value is False:
        return option.replace("--", "--no-", 1)
    if isinstance(value, dict):
        cut = ((column, ",".join(f"{at:.10g}" for at in cuts)) for column, cuts in value.items())
        value = [f"{column}={cuts}" for column, cuts in cut]
    elif isinstance(value, list) and all(n == shlex.quote(n) and "," not in n for n in value):
        value = [",".join(value)]
    elif not isinstance(value, list):
        value = [value if isinstance(value, str) else f"{value:g}"]
    return " ".join(f"{option} {shlex.quote(one)}" for one in value)


def _usage(error: Any) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "apfex"
    said = error.format_message()
    if "unexpected extra argument" in said:  # a shell has put the files there
        said += "; a pattern such as 'data/*.parquet' needs quotes"
    return f"{said.rstrip('.')} (see {command} --help)."


def _stop(screen: Any) -> int:
    screen.error("Stopped.")
    return _INTERRUPTED


def _close_pipe() -> int:
    """Whoever read our output has gone: no gate was hit, but nobody can say that all is fine."""
    _lead_nowhere()
    return _BROKEN_PIPE


def _drop_unwritten() -> None:
    """Forget what a full disk has not taken."""
    try:
        sys.stdout.flush()
    except OSError:
        _lead_nowhere()


def _lead_nowhere() -> None:
    with suppress(OSError, ValueError):  # Python must not complain of it at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
