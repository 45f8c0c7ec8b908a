"""What a record says of its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apfex_reproduction.experiments._rows import (
    CRITERIA,
    OVERALL,
    WORST,
    Cell,
    Measure,
    gap_in,
    groupings_of,
)

Record = Mapping[str, Any]


def result_of(record: Record, rule: str) -> tuple[str, Record]:
    """What a run gives under a rule, and the rule's name: its one model if it has no choice."""
    results = record["results"]
    for name in (rule, "chosen", "nearest"):
        if name in results:
            return name, results[name]
    raise ValueError(
        f"The record of {record['method']!r} on {record['dataset']!r}, seed {record['seed']}, has "
        f"no result for rule {rule!r}, only for {sorted(results)}."
    )


def summarise(runs: Sequence[Record], attributes: Sequence[str], rule: str) -> dict[Measure, Cell]:
    """Every figure over some runs."""
    results = [result_of(run, rule)[1] for run in runs]
    measures: dict[Measure, Cell] = {
        (name, ""): Cell(tuple(result[name] for result in results)) for name in OVERALL
    }
    for by in (*groupings_of(attributes), WORST):
        for name in CRITERIA:
            measures[name, by] = Cell(tuple(gap_in(result, name, by) for result in results))
    return measures
