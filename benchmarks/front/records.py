"""Records of finished runs: one JSON line each, one file per table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROTOCOL = 2
"""Version of the protocol in the docstring of ``bench_front.py``; raised with any change of it."""

Record = dict[str, Any]


@dataclass(frozen=True, order=True)
class Run:
    """One cell of the benchmark."""

    table: str
    seed: int
    method: str


def read_records(folder: Path) -> dict[Run, Record]:
    """Latest record of every run of this protocol, in order; a half-written line is ignored."""
    records = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            if record.get("protocol") == PROTOCOL:
                records[Run(record["table"], record["seed"], record["method"])] = record
    return {run: records[run] for run in sorted(records)}


def write_record(folder: Path, record: Record) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record['table']}.jsonl"
    broken = path.exists() and not path.read_bytes().endswith(b"\n")
    line = json.dumps({"protocol": PROTOCOL, **record}, separators=(",", ":")) + "\n"
    with path.open("a") as file:
        file.write(("\n" if broken else "") + line)
