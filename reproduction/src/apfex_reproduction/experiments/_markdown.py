"""Tables in Markdown, as GitHub reads it."""

from __future__ import annotations

import html

from apfex_reproduction.experiments._grid import Grid, plain
from apfex_reproduction.experiments._layouts import whole_grid
from apfex_reproduction.experiments._rows import Table


def to_markdown(table: Table | Grid) -> str:
    r"""A table for GitHub.

    Examples
    --------
    >>> from apfex_reproduction.experiments import Column, Grid, Line, to_markdown
    >>> lines = (Line(("a|b", "1")),)
    >>> print(to_markdown(Grid("Numbers", (Column("name"), Column("n")), (("", lines),), ())))
    **Numbers**
    <BLANKLINE>
    | name | n |
    | --- | ---: |
    | a\|b | 1 |
    <BLANKLINE>
    """
    grid = whole_grid(table) if isinstance(table, Table) else table
    names = [_escaped(f"{column.group} {column.name}".strip()) for column in grid.columns]
    rows = [names, ["---", *("---" if c.words else "---:" for c in grid.columns[1:])]]
    for title, lines in grid.sections:
        rows += [[f"*{_escaped(title)}*", *[""] * (len(names) - 1)]] if title else []
        for line in lines:
            cells = [_escaped(cell) for cell in line.cells]
            rows.append([f"*{c}*" if at in line.marked else c for at, c in enumerate(cells)])
    body = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    notes = "\n".join(f"- {_escaped(note)}" for note in grid.notes)
    return "\n\n".join([f"**{_escaped(grid.title)}**", body, *([notes] if notes else [])]) + "\n"


def _escaped(text: str) -> str:
    safe = html.escape(plain(text), quote=False)
    return "".join(f"\\{mark}" if mark in "\\|`*_[]~#" else mark for mark in safe)
