"""What stands beneath a table: how to read it, and what is wrong with the paper's numbers."""

from __future__ import annotations

from collections.abc import Iterable

from apfex_reproduction.experiments._grid import DASH, NAMES, paper_cell
from apfex_reproduction.experiments._labels import label_of
from apfex_reproduction.experiments._paper import REMARKS
from apfex_reproduction.experiments._printed import Printed
from apfex_reproduction.experiments._rivals import RIVALS
from apfex_reproduction.experiments._rows import Table

_WORDS = {"accuracy": "accuracy", "ddp": "DDP", "deo": "DEO"}
_POST = (
    "ROC is post-processing: unlike all others it needs the sensitive attribute when it decides."
)


def notes_of(table: Table) -> tuple[str, ...]:
    """All notes, most general first."""
    return (
        *_reading(table),
        *_left_out(table),
        *_unlike_asked(table),
        *_paper(table),
        *_rivals(table),
    )


def _reading(table: Table) -> Iterable[str]:
    yield (
        "Means ± standard deviation (ddof 0) over the seeds, on test rows. DDP and DEO: largest "
        "difference of positive rates and of true positive rates between groups. Bal: balanced "
        "accuracy. Pos: share decided 1. Worst: accuracy of the worst group of the crossing."
    )
    yield (
        "CONST: in how many runs the model decides alike for everybody, or no better than one "
        "that does; its gaps say nothing. No row is set in bold: ranks within the spread mean "
        "little."
    )
    if any(len(row.cell(*key).known) < len(row.seeds) for row in table.rows for key in row.cells):
        yield f"(n): mean of the n runs in which it can be estimated; {DASH}: of none."
    if any(row.method.startswith("roc") and row.seeds for row in table.rows):
        yield _POST


def _left_out(table: Table) -> Iterable[str]:
    for (name, by), count in table.left_out.items():
        yield (
            f"{NAMES[name]} on {by}: in {count} of {len(table.seeds)} test sets a group has no "
            "rows for the rate, and is left out."
        )


def _unlike_asked(table: Table) -> Iterable[str]:
    found: dict[str, list[str]] = {}
    for row in table.rows:
        for rule in sorted(set(row.rules) - {table.rule, "chosen"}):
            found.setdefault(rule, []).append(row.label)
    for rule, labels in sorted(found.items()):
        yield f"Without a model chosen by {table.rule!r}, shown at {rule!r}: {', '.join(labels)}."


def _paper(table: Table) -> Iterable[str]:
    if table.dataset in REMARKS:
        remark = REMARKS[table.dataset]
        yield f"{remark.mark} (all of the paper's numbers on {table.dataset}): {remark.sentence}"
    marked = {d.mark: d.sentence for row in table.rows for d in row.defects}
    for mark, sentence in sorted(marked.items()):
        yield f"{mark}: {sentence}"


def _rivals(table: Table) -> Iterable[str]:
    """They stand beneath Table 1, which has their columns."""
    by_row: dict[tuple[str, str], list[Printed]] = {}
    for cell in RIVALS if table.number == 1 else ():
        if cell.dataset == table.dataset:
            by_row.setdefault((cell.source, cell.method), []).append(cell)
    for (source, method), cells in by_row.items():
        values = ", ".join(
            f"{_WORDS[cell.metric]} {paper_cell(cell, spread=True)}" for cell in cells
        )
        why = " ".join(dict.fromkeys(d.sentence for cell in cells for d in cell.defects))
        yield f"The authors of {source} print for {label_of(method)}: {values}. {why}".strip()
