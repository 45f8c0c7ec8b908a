"""Tables in LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

from apfex_reproduction.experiments._grid import Column, Grid, Line, groups_of, plain
from apfex_reproduction.experiments._layouts import whole_grid
from apfex_reproduction.experiments._rows import Table

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after the end of a line it would open an argument
    "]": "{]}",
    "*": "{*}",
    "±": r"$\pm$",
    "·": r"$\cdot$",
    "–": "--",  # noqa: RUF001
}
_LAST_LATIN = "\xff"
"""Beyond it, what a font can show depends on the document."""


def to_latex(table: Table | Grid) -> str:
    r"""A fragment of LaTeX, two columns wide, that needs the package ``booktabs`` and no other.

    Examples
    --------
    >>> from apfex_reproduction.experiments import Column, Grid, Line, to_latex
    >>> lines = (Line(("L_DP & 5%", "1")),)
    >>> page = to_latex(Grid("Numbers", (Column("name"), Column("n")), (("", lines),), ()))
    >>> print(next(line for line in page.splitlines() if "5" in line))
    L\_DP \& 5\% & 1 \\
    """
    grid = whole_grid(table, stack=True) if isinstance(table, Table) else table
    n = len(grid.columns)
    lines = [
        r"\begin{table*}",
        r"\centering\scriptsize\setlength{\tabcolsep}{2pt}",
        rf"\caption{{{_escaped(grid.title)}}}",
        rf"\begin{{tabular}}{{l{'r' * (n - 1)}}}",
        r"\toprule",
        *_groups(grid.columns),
        " & ".join(_escaped(column.name) for column in grid.columns) + r" \\",
    ]
    for title, rows in grid.sections:
        lines.append(r"\midrule")
        lines += [rf"\multicolumn{{{n}}}{{l}}{{\textit{{{_escaped(title)}}}}} \\"] if title else []
        lines += [_line(row) for row in rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\raggedright {_escaped(note)}" for note in grid.notes]
    return "\n".join([*lines, r"\end{table*}"]) + "\n"


def _groups(columns: Sequence[Column]) -> list[str]:
    spans = groups_of(columns)
    if not any(name for name, _, _ in spans):
        return []
    cells = [
        rf"\multicolumn{{{last - first + 1}}}{{c}}{{{_escaped(name)}}}" if name else ""
        for name, first, last in spans
    ]
    rules = [rf"\cmidrule(lr){{{first + 1}-{last + 1}}}" for name, first, last in spans if name]
    return [" & ".join(cells) + r" \\", " ".join(rules)]


def _line(line: Line) -> str:
    cells = [
        rf"\textit{{{_cell(cell)}}}" if at in line.marked else _cell(cell)
        for at, cell in enumerate(line.cells)
    ]
    return " & ".join(cells) + r" \\"


def _cell(text: str) -> str:
    lines = [_escaped(line) for line in text.split("\n")]
    joined = r"\\".join(lines)
    return rf"\shortstack[r]{{{joined}}}" if len(lines) > 1 else joined


def _escaped(text: str) -> str:
    return "".join(map(_mark, plain(text)))


def _mark(mark: str) -> str:
    if mark in _ESCAPES:
        return _ESCAPES[mark]
    return mark if mark <= _LAST_LATIN else f"U+{ord(mark):04X}"
