"""An audit in a terminal, and in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apfex.auditing._names import in_markdown, plain, width
from apfex.auditing._tables import TextTable, gaps_table, head_of, worst_table

if TYPE_CHECKING:
    from apfex.auditing._audit import Audit

_NUMBERS = {"gap", "noise floor", "p adjusted", "rows", "favored", "to overall"}


def as_text(audit: Audit, most_gaps: int = 8, most_groups: int = 5) -> str:
    """A screenful at most."""
    tables = [
        gaps_table(audit, most_gaps, lambda name: plain(name, 36)),
        worst_table(audit, most_groups, lambda name: plain(name, 44)),
    ]
    parts = [head_of(audit, lambda name: plain(name, 60)), *map(_columns, tables)]
    return "\n\n".join([*parts, *(["\n".join(map(plain, audit.notes))] if audit.notes else [])])


def as_markdown(audit: Audit, max_rows: int) -> str:
    """Two tables; names cannot leave their cell."""
    tables = [gaps_table(audit, max_rows, in_markdown), worst_table(audit, max_rows, in_markdown)]
    parts = [head_of(audit, in_markdown), *map(_pipes, tables)]
    parts += ["\n".join(f"- {in_markdown(note)}" for note in audit.notes)] if audit.notes else []
    return "\n\n".join(parts) + "\n"


def _columns(table: TextTable) -> str:
    cells = [table.columns, *table.rows]
    widths = [max(width(row[at]) for row in cells) for at in range(len(table.columns))]
    lines = [table.title]
    for row in cells:
        padded = [
            " " * (wide - width(cell)) + cell
            if name in _NUMBERS
            else cell + " " * (wide - width(cell))
            for cell, wide, name in zip(row, widths, table.columns, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join([*lines, *([table.left_out] if table.left_out else [])])


def _pipes(table: TextTable) -> str:
    rules = ["---:" if name in _NUMBERS else "---" for name in table.columns]
    lines = [f"| {' | '.join(row)} |" for row in (table.columns, rules, *table.rows)]
    after = ["", in_markdown(table.left_out)] if table.left_out else []
    return "\n".join([f"**{table.title}**", "", *lines, *after])
