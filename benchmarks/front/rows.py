"""A method's row on one table: its scores by problem and seed, its costs, and what counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rivals.common import PROBLEMS

from front.intervals import ratio
from front.records import Record, Run


@dataclass(frozen=True, eq=False)
class Row:
    """One method on one table."""

    method: str
    needs_attribute: bool
    records: list[Record]  # of those that finished
    failed: list[Record]
    missing: frozenset[int] = frozenset()  # seeds that were asked for and did not run

    def scores(self, problem: str) -> dict[int, float]:
        """By seed; on synthetic tables the share of the best score there is."""
        found = {}
        for record in self.records:
            if problem in record["problems"]:
                told = record["problems"][problem]
                found[record["seed"]] = told["hypervolume"] / told.get("best", 1.0)
        return found

    def mean(self, problem: str) -> float:
        """Mean over seeds; -1 where the method does not have the problem."""
        scores = self.scores(problem)
        return float(np.mean([*scores.values()])) if scores else -1.0

    def counts(self, problem: str) -> bool:
        """Whether every run finished, so that it may be the one to beat."""
        return not self.failed and not self.missing and bool(self.scores(problem))

    def within(self, problem: str, bound: float) -> list[list[float]]:
        """Error and gaps at a bound, for each seed."""
        found = (record["problems"].get(problem, {"within": {}}) for record in self.records)
        return [told["within"][f"{bound:g}"] for told in found if f"{bound:g}" in told["within"]]

    def seconds(self, problem: str | None = None) -> float:
        """Mean CPU seconds of a fit, of all problems or of one."""
        if problem is None:
            return float(np.mean([record["seconds"] for record in self.records]))
        found = [r["problems"][problem] for r in self.records if problem in r["problems"]]
        return float(np.mean([told["seconds"] for told in found])) if found else float("nan")

    def points(self, problem: str, field: str = "n_points") -> float:
        found = [r["problems"][problem] for r in self.records if problem in r["problems"]]
        return float(np.mean([told[field] for told in found])) if found else 0.0


def rows_of(
    records: Mapping[Run, Record], table: str, asked: Iterable[Run] = ()
) -> dict[str, Row]:
    """Every method that was run on a table, of all runs that were asked for."""
    found: dict[str, list[Record]] = defaultdict(list)
    for run, record in records.items():
        if run.table == table:
            found[run.method].append(record)
    missing: dict[str, set[int]] = defaultdict(set)
    for run in asked:
        if run.table == table and run not in records:
            missing[run.method].add(run.seed)
    return {
        method: Row(
            method,
            bool(told[0]["needs_attribute"]),
            [record for record in told if "error" not in record],
            [record for record in told if "error" in record],
            frozenset(missing[method]),
        )
        for method, told in found.items()
    }


def best_of(rows: Sequence[Row], problem: str, *, blind: bool) -> Row | None:
    """The rival with the highest mean, of those that count."""
    asked = [row for row in rows if row.counts(problem) and not (blind and row.needs_attribute)]
    return max(asked, key=lambda row: row.mean(problem), default=None)


def told_ratio(ours: Row, theirs: Row | None, problem: str, overlap: float) -> str:
    """The paired ratio of two rows and its interval; "-" where there is none."""
    found = theirs and ratio(ours.scores(problem), theirs.scores(problem), overlap)
    if not found:
        return "-"
    middle, low, high = found
    if low == 0.0:  # a single seed has no interval
        return f"{middle:.3f}"
    return f"{middle:.3f} [{low:.3f}, {high:.3f}]"


def problems_of(rows: Mapping[str, Row]) -> list[str]:
    return [p for p in PROBLEMS if any(row.scores(p) for row in rows.values())]
