"""Errors and warnings of this room: sentences for people, with what they are about as data."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from apfex.arguments import as_path
from apfex.plain import listed, nearest, printable

_MARK = secrets.token_hex(8)
"""Known to nobody who writes a table, so that no name in it is taken for an argument."""
_HINT = re.compile(rf"\{{{_MARK} (\w+)\}}")


class _Message(Exception):
    """A sentence in which :func:`hint` stands for an argument.

    A message shows it as Python has it, the command line as its option; with a value where one is
    proposed by keyword. ``hint("predict")`` is how to predict with the run in a folder.
    """

    found: Any
    suggestion: str | None
    argument: str | None

    def __init__(
        self, text: str, *, found: Any = None, suggestion: str | None = None, **proposed: Any
    ) -> None:
        self.found, self.suggestion = found, suggestion
        self._text, self._proposed = text, proposed
        arguments = [name for name in _HINT.findall(text) if name != "predict"]
        self.argument = arguments[0] if arguments else None
        super().__init__(self.text())

    def text(self, spell: Callable[[str, Any], str] | None = None) -> str:
        """The message, with arguments as ``spell`` writes them; names from data are only text."""
        spell = spell or _in_python
        hints = self._proposed
        return printable(_HINT.sub(lambda hint: spell(hint[1], hints.get(hint[1])), self._text))


def _in_python(name: str, value: Any) -> str:
    if name == "predict":
        return f"load_run({str(value)!r}).predict(...)"
    return name if value is None else f"{name}={value!r}"


class RunError(_Message, ValueError):
    """What was asked for cannot be done; the message says what to change.

    Attributes
    ----------
    argument : str or None
        The argument that it is about.
    found : object
        The value that was given, or found in the data.
    suggestion : str or None
        What was probably meant.
    """


class RunWarning(_Message, UserWarning):
    """Something to look at before a run is relied upon.

    Attributes
    ----------
    argument : str or None
        The argument that would help.
    found : object
        What was found in the data, such as a :class:`Leak`.
    """


def hint(argument: str) -> str:
    """An argument in a message, which is shown as Python has it, or as an option."""
    return f"{{{_MARK} {argument}}}"


def path_of(argument: str, value: Any) -> Path:
    """A path that the system takes; any other is told by the name of the argument."""
    try:
        return as_path(hint(argument), value)
    except (TypeError, ValueError) as error:
        raise RunError(str(error), found=value) from error


def named(*arguments: str) -> str:
    """Arguments with commas between."""
    *others, last = (f"{hint(name)}" for name in arguments)
    return f"{', '.join(others)} and {last}" if others else last


def unknown(found: str, known: Iterable[str], text: str, there: str = "there are") -> RunError:
    """An error of a name that is not there: it suggests the nearest, or lists those that are."""
    known = list(known)
    near = nearest(found, known)
    hint = f"did you mean '{near}'?" if near else f"{there} {listed(known)}."
    return RunError(f"{text}; {hint}", found=found, suggestion=near)
