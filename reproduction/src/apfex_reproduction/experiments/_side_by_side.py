"""The paper's tables in its own layout: its numbers, and ours beneath each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apfex_reproduction.experiments._grid import DASH, Column, Grid, Line, paper_cell, with_spread
from apfex_reproduction.experiments._labels import COLUMNS, data_name, judged_on, label_of
from apfex_reproduction.experiments._paper import REMARKS, defects_of, printed
from apfex_reproduction.experiments._printed import METRICS, Metric
from apfex_reproduction.experiments._protocol import MAMO_SIZES
from apfex_reproduction.experiments._results import summarise
from apfex_reproduction.experiments._rows import Cell, grouping_at
from apfex_reproduction.experiments._study import EVEN, Record, Study
from apfex_reproduction.experiments._two_kinds import two_kinds

_ROWS: dict[Metric, tuple[str, str]] = {
    "accuracy": ("Acc", "accuracy"),
    "deo": ("DEO", "tpr"),
    "ddp": ("DDP", "dp"),
}
"""In the paper's order: what it prints, and what ours is called."""


def side_by_side(records: Sequence[Record], number: int, dataset: str) -> Grid:
    """Every cell of a printed table, its spread and its defects, and ours beneath."""
    study, methods = Study(records), COLUMNS[number]
    lines: list[Line] = []
    splits = {EVEN: "ours"} | ({"mamo": "ours, MAMO's split"} if dataset in MAMO_SIZES else {})
    for metric, (word, name) in _ROWS.items():
        cells = [_paper(number, dataset, method, metric) for method in methods]
        lines.append(Line((f"{word}, paper", *cells)))
        for split, whose in splits.items():
            own = [_ours(study, number, dataset, method, name, split) for method in methods]
            lines.append(Line((f"{word}, {whose}", *own)))
    for split, whose in splits.items():
        counts = [_constants(study, dataset, method, split) for method in methods]
        lines.append(Line((f"Constant runs, {whose}", *counts)))
    columns = (Column(f"Table {number}"), *(Column(label_of(method)) for method in methods))
    title = f"Table {number} on {data_name(dataset)}, as printed and as we find it"
    return Grid(title, columns, (("", tuple(lines)),), tuple(_notes(number, dataset)))


def mixture_grid() -> Grid:
    """Printed accuracies that some constant runs and others of one accuracy give."""
    lines = []
    for number, columns in COLUMNS.items():
        for dataset in ("adult", "compas", "german", "celeba"):
            for method in columns:
                cell = printed(number, dataset, method)["accuracy"]
                found = two_kinds(cell)
                if found:
                    rest = 10 - found.constant_runs
                    lines.append(
                        Line(
                            (
                                f"Table {number}, {data_name(dataset)}: {label_of(method)}",
                                paper_cell(cell, spread=True),
                                f"{found.constant_runs} at {found.constant:.4f}",
                                f"{rest} at {found.other:.4f}",
                                f"{found.spread:.4f}",
                            )
                        )
                    )
    names = ("Column", "Printed accuracy", "Constant runs", "Other runs", "Their spread")
    title = "Printed accuracies that look like two kinds of runs in one mean"
    return Grid(title, tuple(Column(name) for name in names), (("", tuple(lines)),), ())


def _paper(number: int, dataset: str, method: str, metric: Metric) -> str:
    cell = printed(number, dataset, method)[metric]
    marks = ", ".join(sorted({d.mark for d in defects_of(cell)}))
    return f"{paper_cell(cell, spread=True)}{f' ({marks})' if marks else ''}"


def _ours(study: Study, number: int, dataset: str, method: str, name: str, split: str) -> str:
    runs = study.runs(dataset, method, split)
    if not runs:
        return DASH
    attributes = runs[0]["attributes"]
    by = grouping_at(judged_on(method, number), attributes) if name in ("dp", "tpr") else ""
    return with_spread(summarise(runs, attributes, "nearest").get((name, by), Cell(())))


def _constants(study: Study, dataset: str, method: str, split: str) -> str:
    runs = study.runs(dataset, method, split)
    return f"{study.constants(dataset, method, split)} of {len(runs)}" if runs else DASH


def _notes(number: int, dataset: str) -> Iterator[str]:
    yield (
        "Means ± standard deviation (ddof 0) over ten runs; ours on test rows, the model chosen by "
        "MAMO's rule ('nearest'). The gap is that of the column's attribute, of the worse one "
        "under Multi, of the intersection under Inter; of the baseline that of Attr1 in Table 1 "
        "and of the intersection in Table 2. "
        f"{DASH}: not run on this split."
    )
    if dataset in REMARKS:
        remark = REMARKS[dataset]
        yield f"{remark.mark} (all numbers of the paper here): {remark.sentence}"
    found = {
        d.mark: d.sentence
        for method in COLUMNS[number]
        for metric in METRICS
        for d in defects_of(printed(number, dataset, method)[metric])
    }
    yield from (f"{mark}: {sentence}" for mark, sentence in sorted(found.items()))
