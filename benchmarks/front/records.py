"""Records of finished runs: one JSON line each, one file per table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rivals.common import GAPS

from front.judge import counting

Record = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One cell of the benchmark."""

    table: str
    seed: int
    method: str
    encoding: str


def read_records(folder: Path) -> dict[Run, Record]:
    """Latest record of every run, in order; a half-written last line is ignored."""
    records = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            key = Run(record["table"], record["seed"], record["method"], record["encoding"])
            records[key] = record
    return {run: records[run] for run in sorted(records, key=_place)}


def write_record(folder: Path, record: Record) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record['table']}.jsonl"
    broken = path.exists() and not path.read_bytes().endswith(b"\n")
    with path.open("a") as file:
        file.write(("\n" if broken else "") + _line(record))


def write_compact(folder: Path, records: Mapping[Run, Record]) -> list[Path]:
    """Write compact records, a file anew for each of their tables; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    lines: dict[Path, list[str]] = {}
    for run in sorted(records, key=_place):
        lines.setdefault(folder / f"{run.table}.jsonl", []).append(_line(compact(records[run])))
    for path, found in lines.items():
        path.write_text("".join(found))
    return list(lines)


def compact(record: Record) -> Record:
    """The record with those points only that count for a gap.

    Values have 4 decimals. Scores keep their 6, so that a report does not change.
    """
    points = record.get("points")
    if not points or "counts" in points[0]:
        return record
    counted = {gap: counting(points, gap) for gap in GAPS}
    kept = []
    for index, point in enumerate(points):
        gaps = [gap for gap in GAPS if counted[gap][index]]
        values = {part: [round(v, 4) for v in point[part]] for part in ("validation", "test")}
        if gaps:
            kept.append({"name": point["name"], "counts": gaps, **values})
    return {**record, "points": kept}


def _place(run: Run) -> tuple[str, int, str, str]:
    return run.table, run.seed, run.encoding, run.method


def _line(record: Record) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"
