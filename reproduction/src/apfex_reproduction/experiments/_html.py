"""Tables in HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence

from apfex_reproduction.experiments._grid import Column, Grid, Line, groups_of, plain
from apfex_reproduction.experiments._layouts import whole_grid
from apfex_reproduction.experiments._rows import Table


def to_html(table: Table | Grid) -> str:
    """A fragment of HTML: no script, no style, nothing from elsewhere.

    Examples
    --------
    >>> from apfex_reproduction.experiments import Column, Grid, Line, to_html
    >>> lines = (Line(("<b>", "1")),)
    >>> page = to_html(Grid("Numbers", (Column("name"), Column("n")), (("", lines),), ()))
    >>> "<b>" in page, "&lt;b&gt;" in page
    (False, True)
    """
    grid = whole_grid(table) if isinstance(table, Table) else table
    head = "".join(f'<th scope="col">{_escaped(column.name)}</th>' for column in grid.columns)
    parts = [
        '<section class="apfex-table">',
        "<table>",
        f"<caption>{_escaped(grid.title)}</caption>",
        f"<thead>{_groups(grid.columns)}<tr>{head}</tr></thead>",
    ]
    for title, lines in grid.sections:
        wide = f'<tr><th colspan="{len(grid.columns)}" scope="rowgroup">{_escaped(title)}</th></tr>'
        parts += ["<tbody>", *([wide] if title else []), *map(_line, lines), "</tbody>"]
    notes = "".join(f"<li>{_escaped(note)}</li>" for note in grid.notes)
    after = [f"<ul>{notes}</ul>"] if notes else []
    return "\n".join([*parts, "</table>", *after, "</section>"]) + "\n"


def _groups(columns: Sequence[Column]) -> str:
    spans = groups_of(columns)
    if not any(name for name, _, _ in spans):
        return ""
    cells = "".join(
        f'<th colspan="{last - first + 1}" scope="colgroup">{_escaped(name)}</th>'
        if name
        else "<td></td>"
        for name, first, last in spans
    )
    return f"<tr>{cells}</tr>"


def _line(line: Line) -> str:
    name, *cells = map(_escaped, line.cells)
    marked = [f"<em>{c}</em>" if at in line.marked else c for at, c in enumerate(cells, start=1)]
    kind = f' class="{html.escape(line.kind)}"' if line.kind else ""
    tds = "".join(f"<td>{cell}</td>" for cell in marked)
    return f'<tr{kind}><th scope="row">{name}</th>{tds}</tr>'


def _escaped(text: str) -> str:
    return html.escape(plain(text), quote=True).replace("± ", "±&nbsp;")  # one line, or before ±
