"""What is printed, and where: results on stdout, everything else on stderr.

With ``--json`` the only thing on stdout is one JSON document. Nothing that comes from data is ever
read as markup, and control characters are shown, not obeyed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from apfex.plain import jsonable, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDE = 200  # columns where nobody looks at once, as in a pipe


class Screen:
    """Where a command talks to its user.

    Parameters
    ----------
    as_json : bool
        Whether stdout is kept for one JSON document.

    Attributes
    ----------
    results, asides : rich.console.Console
        Where results, and everything else, are printed.

    Examples
    --------
    >>> Screen().say("Written: table.md")
    Written: table.md
    """

    results: Console
    asides: Console

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json
        self.results = _console(stderr=as_json)
        self.asides = _console(stderr=True)

    def say(self, text: str = "") -> None:
        """A part of the result."""
        _print(self.results, text)

    def aside(self, text: str, style: str = "dim") -> None:
        """Something that is no result: what goes on."""
        _print(self.asides, text, style)

    def warn(self, text: str) -> None:
        """Something that the user should look at."""
        _print(self.asides, f"Warning: {text}", "yellow")

    def error(self, text: str) -> None:
        """Why it went no further."""
        _print(self.asides, f"Error: {text}", "bold red")

    def facts(self, facts: Mapping[str, str]) -> None:
        """A few lines of a name and what it is."""
        from rich.table import Table

        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for name, fact in facts.items():
            table.add_row(_lines(name), _lines(fact))
        _print_table(self.results, table)

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        left: Sequence[str] = (),
        styles: Mapping[str, str] | None = None,
    ) -> None:
        """A compact table.

        Parameters
        ----------
        columns : names
        rows : cells
        left : columns that hold words; the others are right-aligned numbers
        styles : mapping from the text of a cell to how it is drawn
        """
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
        for name in columns:
            table.add_column(
                _lines(name), justify="left" if name in left else "right", overflow="fold"
            )
        for row in rows:
            table.add_row(*(Text(_lines(cell), (styles or {}).get(cell, "")) for cell in row))
        _print_table(self.results, table)

    def finish(self, document: Mapping[str, Any]) -> None:
        """The JSON document, where it was asked for."""
        if not self.as_json:
            return
        plain = jsonable(document)
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False)
        try:
            text.encode(sys.stdout.encoding or "utf-8")
        except UnicodeEncodeError:
            text = json.dumps(plain, allow_nan=False)
        with _told_of("Standard output"):
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()


@contextmanager
def standard_streams() -> Iterator[None]:
    """Stdout and stderr that take every text, until the block ends.

    What an encoding has no sign for is shown by number; a stream that was closed leads nowhere.
    """
    with ExitStack() as stack:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is None:
                nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
                stack.callback(setattr, sys, name, None)
                setattr(sys, name, nowhere)
            elif hasattr(stream, "reconfigure"):
                stack.callback(_handle_errors, stream, stream.errors)
                stream.reconfigure(errors="backslashreplace")
        yield


def _handle_errors(stream: Any, errors: str) -> None:
    with suppress(OSError, ValueError):  # nobody reads any more
        stream.reconfigure(errors=errors)


@contextmanager
def _told_of(what: str) -> Iterator[None]:
    """Errors of the system say what could not be written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(f"{what} cannot be written: {error.strerror or error}.") from error


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        stderr=stderr,
        markup=False,
        highlight=False,
        emoji=False,
        width=None if stream.isatty() else _WIDE,
    )


def _print(console: Console, text: str, style: str | None = None) -> None:
    with suppress(OSError) if console.stderr else _told_of("Standard output"):
        # In a pipe a line stays a line.
        console.print(_lines(text), style=style, soft_wrap=not console.is_terminal)


def _lines(text: str) -> str:
    """Whatever is printed was made safe, also where a message quotes data."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _print_table(console: Console, table: Table) -> None:
    """A file or a pipe gets no spaces at the ends of lines."""
    with suppress(OSError) if console.stderr else _told_of("Standard output"):
        if console.is_terminal:
            console.print(table)
            return
        with console.capture() as caught:
            console.print(table)
        lines = (line.rstrip() for line in caught.get().splitlines())
        console.print("\n".join(lines), soft_wrap=True)
