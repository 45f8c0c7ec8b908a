"""An audit as a fragment of HTML: no script, nothing from elsewhere, names as text."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from apfex.auditing._names import escaped
from apfex.auditing._tables import TextTable, gaps_table, head_of, worst_table
from apfex.auditing._verdicts import VERDICTS

if TYPE_CHECKING:
    from apfex.auditing._audit import Audit


def as_html(audit: Audit, max_rows: int) -> str:
    """A ``section`` with two tables and the notes."""
    tables = [gaps_table(audit, max_rows, escaped), worst_table(audit, max_rows, escaped)]
    notes = "".join(f"<li>{escaped(note)}</li>" for note in audit.notes)
    return "\n".join(
        [
            '<section class="apfex-audit">',
            f"<p>{head_of(audit, escaped)}</p>",
            *map(_table, tables),
            *([f"<ul>{notes}</ul>"] if notes else []),
            "</section>",
        ]
    )


def _table(table: TextTable) -> str:
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in table.columns)
    body = "\n".join(
        f"<tr{_verdict(row)}>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>"
        for row in table.rows
    )
    after = f"\n<p>{html.escape(table.left_out)}</p>" if table.left_out else ""
    return (
        f"<table>\n<caption>{html.escape(table.title)}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>{after}"
    )


def _verdict(row: object) -> str:
    last = row[-1] if isinstance(row, list) else ""
    return f' data-verdict="{last}"' if last in VERDICTS else ""
