"""A table as text in cells: what all ways of showing it have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from apfex.plain import printable
from apfex_reproduction.experiments._printed import METRICS, Metric, Printed
from apfex_reproduction.experiments._rows import Cell

DASH = "–"  # noqa: RUF001
"""No run, or nothing to estimate from."""
DOT = "·"
"""A value of the paper that is not at hand."""

NAMES = {
    "accuracy": "Acc",
    "dp": "DDP",
    "tpr": "DEO",
    "balanced_accuracy": "Bal",
    "positive_rate": "Pos",
    "worst_group_accuracy": "Worst",
}


@final
@dataclass(frozen=True)
class Column:
    """A column's name, the name of the columns that it stands with, and whether it holds words."""

    name: str
    group: str = ""
    words: bool = False


@final
@dataclass(frozen=True)
class Line:
    """Cells of text; which of them are marked; a word for what the line is."""

    cells: tuple[str, ...]
    marked: frozenset[int] = frozenset()
    kind: str = ""


@final
@dataclass(frozen=True)
class Grid:
    """A titled table of text in named sections, with notes; the first column names the line.

    Examples
    --------
    >>> from apfex_reproduction.experiments import Column, Grid, Line, to_text
    >>> lines = (Line(("a", "1")), Line(("b", "22")))
    >>> print(to_text(Grid("Numbers", (Column("name"), Column("n")), (("", lines),), ())))
    Numbers
    <BLANKLINE>
    name   n
    --------
    a      1
    b     22
    """

    title: str
    columns: tuple[Column, ...]
    sections: tuple[tuple[str, tuple[Line, ...]], ...]
    notes: tuple[str, ...]


def plain(text: str) -> str:
    """In one line; control characters and changes of direction are shown, not obeyed."""
    return printable(text.replace("\n", " "))


def groups_of(columns: Sequence[Column]) -> list[tuple[str, int, int]]:
    """Names that stand over columns, each with its first and last column, from 0."""
    spans: list[tuple[str, int, int]] = []
    for at, column in enumerate(columns):
        if spans and column.group and spans[-1][0] == column.group:
            spans[-1] = (column.group, spans[-1][1], at)
        else:
            spans.append((column.group, at, at))
    return spans


def number(value: float | None, digits: int = 3) -> str:
    """Without the zero before the point: a column less, ten times in a line."""
    if value is None:
        return DASH
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    sign, size = ("-", text[1:]) if text.startswith("-") else ("", text)
    return sign + (size[1:] if size.startswith("0.") else size)


def with_spread(cell: Cell) -> str:
    """Mean and spread; in brackets how many runs they are of, where not of all."""
    if cell.mean is None:
        return DASH
    return f"{number(cell.mean)} ± {number(cell.spread)}{_of(cell, ' ')}"


def stacked(cell: Cell) -> str:
    """The same, one below the other."""
    if cell.mean is None:
        return DASH
    return f"{number(cell.mean)}\n±{number(cell.spread)}{_of(cell, chr(10))}"


def paper_cell(cell: Printed | None, spread: bool) -> str:
    """A number as printed, with its decimals."""
    if cell is None:
        return DOT
    shown = [cell.mean, *([cell.spread] if spread and cell.spread is not None else [])]
    return " ± ".join("0" if value == 0 else number(value, cell.digits) for value in shown)


def paper_cells(cells: dict[Metric, Printed], spread: bool) -> str:
    """Accuracy, DDP and DEO as printed; one dot where nothing is at hand."""
    between = " / " if spread else "/"
    texts = [paper_cell(cells.get(metric), spread) for metric in METRICS]
    return between.join(texts) if cells else DOT


def _of(cell: Cell, before: str) -> str:
    known, runs = len(cell.known), len(cell.values)
    return f"{before}({known})" if known < runs else ""
