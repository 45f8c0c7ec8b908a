"""The printed report, from the records alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from rivals.common import GAPS

from front.judge import LEAST_POSITIVES
from front.records import Record, Run
from front.rows import Row, make_row, ratio

PACES = ("fairlearn EG + LR", "fairlearn EG + HGB", "plain XGBoost")
"""Our time for a front is also told in points of these methods."""

ByMethod = Mapping[str, Sequence[Record]]
HEAD = ("method", "seeds", "HV dp", "ratio", "ratio, no attr.", "HV tpr", "ratio")
HEAD += ("ratio, no attr.", "inputs", "CPU s", "wall s", "MB", "points", "constant")
COSTS = ("seconds", "wall_seconds", "peak_megabytes", "n_points", "n_constant")


def report(
    records: Mapping[Run, Record], tables: Sequence[str], pooling: str, own: Collection[str]
) -> str:
    """A table for each data set, with notes, and the machines; ``own`` are our methods."""
    shown = {run: record for run, record in records.items() if run.table in tables}
    machines = sorted({record["machine"] for record in shown.values()})
    lines = []
    for name in tables:
        by_method: dict[str, list[Record]] = defaultdict(list)
        for run, record in shown.items():
            if run.table == name:
                by_method[run.method].append(record)
        if by_method:
            lines += _section(name, by_method, pooling, own, machines)
    for number, machine in enumerate(machines, start=1):
        lines.append(f"Machine{f' {number}' if len(machines) > 1 else ''}: {machine}.")
    return "\n".join(lines)


def _section(
    name: str, by_method: ByMethod, pooling: str, own: Collection[str], machines: Sequence[str]
) -> list[str]:
    rows = [row for m, found in by_method.items() if (row := make_row(m, found, pooling))]
    lines = [f"## {name}", ""]
    finished = [r for found in by_method.values() for r in found if "constant_error" in r]
    if finished:
        lines += [_introduction(finished[0]), ""]
    notes = (
        *(f"{row.method}, {text}." for row in rows for text in row.left_out),
        *_time_notes(rows, by_method, own, machines),
        *_machine_note(by_method, machines),
        *_failures(by_method),
    )
    return [*lines, *_table(rows, own), *(f"- {note}" for note in notes), ""]


def _introduction(record: Record) -> str:
    return (
        f"Constant predictor's error {record['constant_error']:.4f} (one seed); tpr gap "
        f"over {record['tpr_groups']} groups with at least {LEAST_POSITIVES} test "
        "positives. *: needs the attribute at prediction; (o): ours. Inputs: the encoding that "
        "counts, dp/tpr. Ratios to the best rival, and to the best that needs no attribute at "
        "prediction, of those with more than half of the seeds, paired, 95% interval. CPU s: of "
        "one fit of the whole front."
    )


def _table(rows: Sequence[Row], own: Collection[str]) -> Iterator[str]:
    rivals = [row for row in rows if row.method not in own]
    # One that has run on fewer seeds than others may look best by luck of the seeds.
    most = max((len(row.scores["dp"]) for row in rivals), default=0)
    rivals = [row for row in rivals if 2 * len(row.scores["dp"]) > most]
    blind = [row for row in rivals if not row.needs_attribute]
    best = {
        gap: [max(among, key=lambda row: row.mean(gap), default=None) for among in (rivals, blind)]
        for gap in GAPS
    }
    cells = [HEAD]
    for row in sorted(rows, key=lambda row: -row.mean("dp")):
        mark = " (o)" if row.method in own else " *" if row.needs_attribute else ""
        line = [row.method + mark, str(len(row.scores["dp"]))]
        for gap in GAPS:
            line.append(f"{row.mean(gap):.4f}")
            for other in best[gap]:
                same = other is None or other is row
                line.append("best" if same else ratio(row.scores[gap], other.scores[gap]))
        cells.append((*line, "/".join(row.inputs()), *(row.cost(field) for field in COSTS)))
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEAD))]
    rule = tuple("-" * width for width in widths)
    for line in (cells[0], rule, *cells[1:]):
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield "| " + " | ".join(padded) + " |"


def _time_notes(
    rows: Sequence[Row], by_method: ByMethod, own: Collection[str], machines: Sequence[str]
) -> Iterator[str]:
    """Time of one of our fronts in points of the pace, on the same machine and inputs."""
    for row in rows:
        for encoding in row.inputs() if row.method in own else ():
            ours = _seconds_by_machine(row.records[encoding])
            for name in PACES:
                finished = [r for r in by_method.get(name, ()) if "error" not in r]
                pace = _seconds_by_machine([r for r in finished if r["encoding"] == encoding], True)
                said = f"{row.method}, {encoding} inputs: time of one whole front"
                for machine in sorted(ours.keys() & pace.keys()):
                    times = np.mean(ours[machine]) / np.mean(pace[machine])
                    where = f" (machine {machines.index(machine) + 1})" if len(machines) > 1 else ""
                    yield f"{said} / {name}'s time per point = {times:.2f}{where}."


def _seconds_by_machine(
    records: Sequence[Record], per_point: bool = False
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for record in records:
        points = record["n_points"] if per_point else 1
        found[record["machine"]].append(record["seconds"] / points)
    return found


def _machine_note(by_method: ByMethod, machines: Sequence[str]) -> Iterator[str]:
    """Which methods were timed where, if in more than one place."""
    used: dict[int, set[str]] = defaultdict(set)
    for method, found in by_method.items():
        for record in found:
            if "error" not in record:
                used[machines.index(record["machine"]) + 1].add(method)
    if len(used) > 1:
        where = "; ".join(f"machine {i}: {', '.join(sorted(used[i]))}" for i in sorted(used))
        yield f"Different machines, so seconds and MB compare only within one: {where}."


def _failures(by_method: ByMethod) -> Iterator[str]:
    for method, found in by_method.items():
        seeds: dict[str, list[int]] = defaultdict(list)
        for record in found:
            if "error" in record:
                seeds[f"{record['encoding']} inputs: {record['error']}"].append(record["seed"])
        for text, failed in seeds.items():
            yield f"Could not run: {method}, {text} (seeds {failed})"
