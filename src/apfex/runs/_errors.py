"""What a user can put right: errors and warnings that carry what they are about as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, final

from apfex.plain import printable

_NAMED = 12


@final
@dataclass(frozen=True)
class Argument:
    """An argument of a function of this room, and a value where one is proposed.

    A message shows it as Python has it; the command line shows it as its option.

    Examples
    --------
    >>> print(Argument("label"), Argument("drop", ["id"]))
    label drop=['id']
    """

    name: str
    value: Any = None

    def __str__(self) -> str:
        """As it is typed in Python."""
        return self.name if self.value is None else f"{self.name}={self.value!r}"


@final
@dataclass(frozen=True)
class Predicting:
    """How a run that is in a folder decides for new rows.

    Examples
    --------
    >>> print(Predicting(Path("people")))
    load_run('people').predict(...)
    """

    folder: Path

    def __str__(self) -> str:
        """As it is typed in Python."""
        return f"load_run({str(self.folder)!r}).predict(...)"


Part = str | Argument | Predicting


class Told(Exception):
    """A message in parts: text, and what its reader would type."""

    def __init__(self, *parts: Part, found: Any = None, suggestion: str | None = None) -> None:
        self.parts, self.found, self.suggestion = parts, found, suggestion
        self.argument = next((part.name for part in parts if isinstance(part, Argument)), None)
        super().__init__(self.told())

    def told(self, spell: Callable[[Any], str] = str) -> str:
        """The message, with arguments spelled as its reader types them; names are only text."""
        return "".join(printable(p if isinstance(p, str) else spell(p)) for p in self.parts)


class RunError(Told, ValueError):
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


class RunWarning(Told, UserWarning):
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
        parts.append(Argument(name))
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


def listed(names: Sequence[str], most: int = _NAMED) -> str:
    """Some names, and how many more there are."""
    some = ", ".join(printable(name, 40) for name in names[:most])
    return some if len(names) <= most else f"{some} and {len(names) - most:,} more"
