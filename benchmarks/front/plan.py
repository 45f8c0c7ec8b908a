"""What a sweep will take, from the records there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from front.records import Record, Run
from front.tables import TABLES


def plan(records: Mapping[Run, Record], wanted: Sequence[Run]) -> str:
    """Core seconds of all wanted runs of a method on a table, as far as one of them is recorded."""
    lines, total, unknown = [], 0.0, []
    for table, method in dict.fromkeys((run.table, run.method) for run in wanted):
        runs = sum((run.table, run.method) == (table, method) for run in wanted)
        found = [r for run, r in records.items() if (run.table, run.method) == (table, method)]
        known = [r["seconds"] * TABLES[table].n_splits for r in found if "error" not in r]
        if not known:
            unknown.append(f"{table} | {method} | {runs} runs | not known")
            continue
        seconds = runs * float(np.mean(known))
        total += seconds
        lines.append(f"{table} | {method} | {runs} runs | {seconds:.0f} s")
    return "\n".join([*lines, *unknown, f"{total:.0f} core seconds, {total / 57600:.2f} h of 16"])
