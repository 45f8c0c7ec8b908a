"""Errors and warnings of this room: sentences for people, with what they are about as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, final

from apfex.plain import printable


@final
@dataclass(frozen=True)
class ArgumentHint:
    """The name of an argument in a message, with a value where one is proposed.

    A message shows it as Python has it; the command line shows it as its option.

    Examples
    --------
    >>> print(ArgumentHint("label"), ArgumentHint("drop", ["id"]))
    label drop=['id']
    """

    name: str
    value: Any = None

    def __str__(self) -> str:
        """As it is typed in Python."""
        return self.name if self.value is None else f"{self.name}={self.value!r}"


@final
@dataclass(frozen=True)
class PredictHint:
    """How to predict with the run in a folder, in a message.

    Examples
    --------
    >>> print(PredictHint(Path("people")))
    load_run('people').predict(...)
    """

    folder: Path

    def __str__(self) -> str:
        """As it is typed in Python."""
        return f"load_run({str(self.folder)!r}).predict(...)"


Part = str | ArgumentHint | PredictHint


class _Message(Exception):
    """A message in parts: text, and hints that are spelled as its reader types them."""

    def __init__(self, *parts: Part, found: Any = None, suggestion: str | None = None) -> None:
        self.parts, self.found, self.suggestion = parts, found, suggestion
        self.argument = next((part.name for part in parts if isinstance(part, ArgumentHint)), None)
        super().__init__(self.text())

    def text(self, spell: Callable[[Any], str] = str) -> str:
        """The message, with hints as ``spell`` writes them; names from data are only text."""
        return "".join(printable(p if isinstance(p, str) else spell(p)) for p in self.parts)


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


def named(*arguments: str) -> list[Part]:
    """Arguments with commas between."""
    parts: list[Part] = []
    for place, name in enumerate(arguments):
        parts += [" and " if place == len(arguments) - 1 else ", "] if place else []
        parts.append(ArgumentHint(name))
    return parts


def unknown(found: str, known: Iterable[str], *parts: Part, there: str = "there are") -> RunError:
    """An error of a name that is not there: it suggests the nearest, or lists those that are."""
    known = list(known)
    near = nearest(found, known)
    hint = f"did you mean '{near}'?" if near else f"{there} {listed(known)}."
    return RunError(*parts, f"; {hint}", found=found, suggestion=near)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    by_form: dict[str, str] = {}
    for one in known:
        by_form.setdefault(one.strip().casefold(), one)
    near = get_close_matches(name.strip().casefold(), list(by_form), n=1, cutoff=0.65)
    return by_form[near[0]] if near else None


def listed(names: Sequence[str], most: int = 12) -> str:
    """Some names, and how many more there are."""
    some = ", ".join(printable(name, 40) for name in names[:most])
    return some if len(names) <= most else f"{some} and {len(names) - most:,} more"
