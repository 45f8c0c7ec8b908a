"""The printed report, from the records alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from rivals.common import BOUNDS

from front.records import Record, Run
from front.rows import Row, best_of, problems_of, rows_of, told_ratio
from front.tables import TABLES

DEFAULT = "APFEx"
SAME_Q = {
    "APFEx": "LinearPost + our q",
    "APFEx, group thresholds": "LinearPost + our q, group known",
}
"""Rivals that are given the very probabilities that a form of ours has."""
Lines = Iterator[str]


def report(
    records: Mapping[Run, Record],
    tables: Sequence[str],
    own: Collection[str],
    asked: Sequence[Run] = (),
) -> str:
    """Default form, other forms, all methods, bounds and notes.

    ``own`` are our methods; a rival that lacks one of the runs ``asked`` for is not one to beat.
    """
    found = {name: rows for name in tables if (rows := rows_of(records, name, asked))}
    parts = [
        "## The default form against the rivals",
        *_against(found, own, lambda method: method == DEFAULT),
        "## Other forms against the rivals",
        *_against(found, own, lambda method: method != DEFAULT),
    ]
    for name, rows in found.items():
        parts += [f"## {name}", *_introduction(rows), *_all_methods(rows, own), *_notes(rows)]
        parts += [*_at_bounds(rows, own)]
    machines = sorted({record["machine"] for run, record in records.items() if run.table in found})
    return "\n\n".join([*parts, *(f"Machine: {machine}." for machine in machines)])


def _against(found: Mapping[str, Mapping[str, Row]], own: Collection[str], wanted) -> Lines:  # noqa: ANN001
    """Ratios to the best blind rival, to LinearPost on the same q, and to the best of all."""
    head = ("table", "seeds", "problem", "form", "score", "best blind rival", "ratio")
    head += ("ratio, LinearPost on the same q", "best rival", "ratio")
    lines = []
    for name, rows in found.items():
        rivals = [row for method, row in rows.items() if method not in own]
        for problem in problems_of(rows):
            blind, best = (best_of(rivals, problem, blind=only) for only in (True, False))
            for method, row in rows.items():
                if method not in own or not wanted(method) or not row.scores(problem):
                    continue
                overlap = TABLES[name].overlap
                same = rows.get(SAME_Q.get(method, ""))
                seeds = str(len(row.scores(problem)))
                line = [name, seeds, problem, method, _short(row.mean(problem))]
                line += [_named(blind, problem), told_ratio(row, blind, problem, overlap)]
                line += [told_ratio(row, same, problem, overlap)]
                line += [_named(best, problem), told_ratio(row, best, problem, overlap)]
                lines.append(line)
    yield _table([head, *lines])


def _introduction(rows: Mapping[str, Row]) -> Lines:
    finished = [record for row in rows.values() for record in row.records]
    if not finished:
        return
    k, positive, negative = finished[0]["groups"]
    best = finished[0]["problems"]
    made = any("best" in told for told in best.values())
    yield (
        f"Error of the best constant decision {finished[0]['constant_error']:.4f} (one seed); {k} "
        f"groups, {positive} of which count for true positive rates and {negative} for false ones."
        + (" Scores are shares of the best without the attribute." if made else "")
    )


def _all_methods(rows: Mapping[str, Row], own: Collection[str]) -> Lines:
    problems = problems_of(rows)
    head = ["method", "seeds", *(f"HV {problem}" for problem in problems)]
    head += ["points", "of both", "constant", "CPU s", "of dp alone", "MB"]
    lines = [head]
    first = problems[0] if problems else "dp"
    for row in sorted(rows.values(), key=lambda row: -row.mean(first)):
        if not row.records:
            continue
        megabytes = np.mean([record["peak_megabytes"] for record in row.records])
        shown = problems if first in row.records[0]["problems"] else [*row.records[0]["problems"]]
        line = [_marked(row, own), str(len(row.records))]
        line += [_short(row.mean(p)) if row.scores(p) else "-" for p in problems]
        line += [f"{row.points(shown[0]):.1f}", f"{row.points('both'):.1f}"]
        line += [f"{row.points(shown[0], 'n_constant'):.1f}", f"{row.seconds():.1f}"]
        lines.append([*line, f"{row.seconds('dp'):.1f}", f"{megabytes:.0f}"])
    yield _table(lines)


def _at_bounds(rows: Mapping[str, Row], own: Collection[str]) -> Lines:
    for problem in problems_of(rows):
        lines = [["method", *(f"{problem} <= {bound:g}" for bound in BOUNDS)]]
        for row in rows.values():
            cells = [_cell(row.within(problem, bound)) for bound in BOUNDS]
            if any(cell != "-" for cell in cells):
                lines.append([_marked(row, own), *cells])
        if len(lines) > 1:
            yield (
                f"Asked for a bound, {problem}: error and gap on test rows (mean +- standard error "
                "over seeds)."
            )
            yield _table(lines)


def _cell(values: Sequence[Sequence[float]]) -> str:
    if not values:
        return "-"
    means = np.mean(values, axis=0)
    if len(values) < 2:
        return ", ".join(f"{mean:.4f}" for mean in means)
    errors = np.std(values, axis=0, ddof=1) / np.sqrt(len(values))
    return ", ".join(f"{m:.4f} +- {e:.4f}" for m, e in zip(means, errors, strict=True))


def _notes(rows: Mapping[str, Row]) -> Lines:
    said = []
    for row in rows.values():
        by_error: dict[str, list[int]] = {}
        for record in row.failed:
            by_error.setdefault(record["error"], []).append(record["seed"])
        said += [f"- Could not run: {row.method}: {e} (seeds {s})" for e, s in by_error.items()]
        if row.missing:
            said.append(f"- Did not run: {row.method} (seeds {sorted(row.missing)})")
    if said:
        yield "\n".join(said)


def _marked(row: Row, own: Collection[str]) -> str:
    return row.method + (" (o)" if row.method in own else "") + " *" * row.needs_attribute


def _named(row: Row | None, problem: str) -> str:
    return "-" if row is None else f"{row.method} {_short(row.mean(problem))}"


def _short(value: float) -> str:
    return f"{value:.4f}"


def _table(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in (lines[0], rule, *lines[1:])
    )
