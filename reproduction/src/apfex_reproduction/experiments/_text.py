"""Tables in plain text, for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from apfex_reproduction.experiments._grid import Grid, groups_of, plain
from apfex_reproduction.experiments._layouts import compact_grid
from apfex_reproduction.experiments._rows import Table

_LONGEST_NAME = 26


def to_text(table: Table | Grid, width: int = 100) -> str:
    r"""Columns of figures, then the notes.

    Parameters
    ----------
    table : Table or Grid
    width : int, optional
        Of the terminal. Columns move together to fit, and notes are wrapped; nothing is cut.

    Examples
    --------
    >>> from apfex_reproduction.experiments import Column, Grid, Line, to_text
    >>> columns = (Column("name"), Column("n", "of"), Column("m", "of"))
    >>> lines = (Line(("a", "1", "2\n±1")),)
    >>> print(to_text(Grid("Numbers", columns, (("Some", lines),), ("A note.",))))
    Numbers
    <BLANKLINE>
            of
    name  n   m
    -----------
    Some
    a     1   2
             ±1
    <BLANKLINE>
    A note.
    """
    grid = compact_grid(table) if isinstance(table, Table) else table
    head = [[plain(column.name)] for column in grid.columns]
    body = [(title, [_cells(line.cells) for line in lines]) for title, lines in grid.sections]
    every = [head, *(line for _, lines in body for line in lines)]
    widths = [max(_width(part) for row in every for part in row[at]) for at in range(len(head))]
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= width else 1
    out = [*_group_line(grid, widths, gap), *_lines(head, widths, gap)]
    out.append("-" * (sum(widths) + gap * (len(widths) - 1)))
    for at, (title, lines) in enumerate(body):
        out += ([""] if at else []) + ([plain(title)] if title else [])
        for line in lines:
            out += _lines(line, widths, gap)
    blocks = [textwrap.fill(plain(grid.title), width), "\n".join(out)]
    notes = "\n".join(
        textwrap.fill(plain(note), width, subsequent_indent="  ") for note in grid.notes
    )
    return "\n\n".join([*blocks, *([notes] if notes else [])])


def _cells(cells: Sequence[str]) -> list[list[str]]:
    """Each cell as lines; a long name goes on in the next one."""
    name = [
        part
        for line in cells[0].split("\n")
        for part in textwrap.wrap(
            plain(line), _LONGEST_NAME, subsequent_indent="  ", break_on_hyphens=False
        )
    ]
    return [name, *([plain(line) for line in cell.split("\n")] for cell in cells[1:])]


def _lines(row: Sequence[Sequence[str]], widths: Sequence[int], gap: int) -> list[str]:
    out = []
    for at in range(max(map(len, row))):
        parts = [cell[at] if at < len(cell) else "" for cell in row]
        spaces = [" " * (wide - _width(part)) for part, wide in zip(parts, widths, strict=True)]
        padded = [parts[0] + spaces[0]]
        padded += [space + part for part, space in zip(parts[1:], spaces[1:], strict=True)]
        out.append((" " * gap).join(padded).rstrip())
    return out


def _group_line(grid: Grid, widths: Sequence[int], gap: int) -> list[str]:
    spans = groups_of(grid.columns)
    if not any(name for name, _, _ in spans):
        return []
    cells = []
    for name, first, last in spans:
        wide = sum(widths[first : last + 1]) + gap * (last - first)
        cells.append(plain(name)[:wide].center(wide))
    return [(" " * gap).join(cells).rstrip()]


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)
