"""An audit of more rows than memory, beside the bare query, polars, memory and fairlearn.

``python benchmarks/bench_audit.py --rows 100000000`` writes Parquet files once (3 attributes, 60
groups, label, decision, weight, score) to ``build/bench_audit``, then lets each method work in a
process of its own, in turns, and prints seconds and peak memory. The bare ``GROUP BY`` of DuckDB is
what no audit can be faster than. Methods that hold rows in memory get as many as they can bear
(``--memory-rows``, ``--fairlearn-rows``). Seconds are of the work, without imports.
``--json FILE`` keeps the figures with the machine. ``--form csv`` writes CSV in the place of
Parquet, for the query of DuckDB with its own parser, polars and an audit of these files.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KEYS = ["sex", "race", "age", "y", "yhat"]
SENSITIVE = KEYS[:3]
ROWS_PER_FILE = 10_000_000
PACKAGES = ("apfex", "ibis-framework", "duckdb", "polars", "fairlearn", "pandas", "numpy")


def main() -> None:
    given = options()
    if given.method:
        print(json.dumps(work(given.method, given.data, given.threads)))
        return
    sizes = {
        "duckdb": given.rows,
        "audit_table": given.rows,
        "duckdb weighted": given.rows,
        "audit_table weighted": given.rows,
        "audit_table scored": given.rows,
        "polars": given.rows,
        "audit in memory": min(given.rows, given.memory_rows),
        "fairlearn": min(given.rows, given.fairlearn_rows),
    }
    if given.form == "csv":
        sizes = {name: sizes[name] for name in ("duckdb", "audit_table", "polars")}
    data = {rows: make(rows, given.folder, given.form) for rows in {*sizes.values()}}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in sizes}
    for turn in range(given.rounds):
        for name, rows in sizes.items():
            if turn and name in ("fairlearn", "audit in memory", "audit_table scored"):
                continue
            found[name].append(in_child(name, data[rows], given.threads))
    figures = {name: summary(sizes[name], runs) for name, runs in found.items()}
    show(figures, given)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--memory-rows", type=int, default=10_000_000)
    parser.add_argument("--fairlearn-rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench_audit")
    parser.add_argument("--form", choices=["parquet", "csv"], default="parquet")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--note", default="")
    parser.add_argument("--method", help=argparse.SUPPRESS)
    parser.add_argument("--data", help=argparse.SUPPRESS)
    return parser.parse_args()


def make(rows: int, folder: Path, form: str = "parquet") -> str:
    """A folder of so many rows, written once; the glob of its files."""
    target = folder / (f"rows-{rows}" if form == "parquet" else f"rows-{rows}-{form}")
    if not (target / "done").exists():
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        import duckdb

        con = duckdb.connect(config={"memory_limit": "2GB"})
        con.execute("SELECT setseed(0.5)")
        for at, first in enumerate(range(0, rows, ROWS_PER_FILE)):
            n = min(ROWS_PER_FILE, rows - first)
            con.execute(
                f"""COPY (
                SELECT ['F', 'M'][1 + (2 * random())::INT % 2] AS sex,
                    ['A', 'B', 'C', 'D', 'E'][1 + floor(5 * random())::INT % 5] AS race,
                    ['18-24', '25-34', '35-44', '45-54', '55-64', '65+']
                        [1 + floor(6 * random())::INT % 6] AS age,
                    (random() < 0.4)::TINYINT AS y, (random() < 0.35)::TINYINT AS yhat,
                    0.5 + random() AS weight, random() AS score
                FROM range({n})) TO '{target / f"part-{at:04}.{form}"}' (FORMAT {form})"""
            )
        (target / "done").touch()
    return str(target / f"*.{form}")


def in_child(name: str, data: str, threads: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--method", name, "--data", data]
    done = subprocess.run(
        [*command, "--threads", str(threads)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def work(name: str, data: str, threads: int) -> dict[str, float]:
    """Seconds and memory of one method, in this process."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    prepared = METHODS[name](data, threads)
    started, used = time.perf_counter(), time.process_time()
    prepared()
    seconds, cpu = time.perf_counter() - started, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"seconds": seconds, "processor_seconds": cpu, "peak_gib": peak}


def bare(weighted: bool) -> Callable[[str, int], Callable[[], Any]]:
    def prepare(data: str, threads: int) -> Callable[[], Any]:
        import duckdb

        sums = ", fsum(weight), fsum(weight * weight)" if weighted else ""
        own = "read_csv('{}', all_varchar=true)" if data.endswith(".csv") else "read_parquet('{}')"
        query = f"SELECT {', '.join(KEYS)}, count(*){sums} FROM {own.format(data)} GROUP BY ALL"
        con = duckdb.connect(config={"threads": threads})
        return lambda: con.execute(query).fetchall()

    return prepare


def in_engine(**more: str) -> Callable[[str, int], Callable[[], Any]]:
    def prepare(data: str, threads: int) -> Callable[[], Any]:  # noqa: ARG001
        import ibis

        from apfex.auditing import audit_table

        assert ibis.duckdb  # is imported by this
        given = {"prediction": "yhat", "label": "y", "sensitive": SENSITIVE, **more}
        return lambda: audit_table(data, **given)

    return prepare


def by_polars(data: str, threads: int) -> Callable[[], Any]:
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars as pl

    rows = pl.scan_csv(data) if data.endswith(".csv") else pl.scan_parquet(data)
    query = rows.group_by(KEYS).agg(pl.len())
    return lambda: query.collect(engine="streaming")


def in_memory(data: str, threads: int) -> Callable[[], Any]:  # noqa: ARG001
    from glob import glob

    import pandas as pd

    from apfex import audit

    def run() -> Any:
        frame = pd.concat([pd.read_parquet(path, columns=KEYS) for path in sorted(glob(data))])
        frame = frame.reset_index(drop=True)
        return audit(frame["y"], frame["yhat"], sensitive_features=frame[SENSITIVE])

    return run


def by_fairlearn(data: str, threads: int) -> Callable[[], Any]:  # noqa: ARG001
    import duckdb
    from fairlearn.metrics import MetricFrame, selection_rate, true_positive_rate

    frame = duckdb.sql(f"SELECT {', '.join(KEYS)} FROM read_parquet('{data}')").df()
    metrics = {"dp": selection_rate, "tpr": true_positive_rate}

    def run() -> Any:
        return MetricFrame(
            metrics=metrics,
            y_true=frame["y"],
            y_pred=frame["yhat"],
            sensitive_features=frame[SENSITIVE],
        ).by_group

    return run


METHODS: dict[str, Callable[[str, int], Callable[[], Any]]] = {
    "duckdb": bare(weighted=False),
    "duckdb weighted": bare(weighted=True),
    "audit_table": in_engine(),
    "audit_table weighted": in_engine(weight="weight"),
    "audit_table scored": in_engine(score="score"),
    "polars": by_polars,
    "audit in memory": in_memory,
    "fairlearn": by_fairlearn,
}


def summary(rows: int, runs: list[dict[str, float]]) -> dict[str, float]:
    medians = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    return {"rows": rows, **medians, "peak_gib": max(run["peak_gib"] for run in runs)}


def show(figures: dict[str, dict[str, float]], given: argparse.Namespace) -> None:
    sys.path.insert(0, str(ROOT))
    from benchmarks.front.machine import describe, write_figures

    machine = describe(given.threads, PACKAGES)
    print(f"{machine}{f'; {given.note}' if given.note else ''}")
    print("| method | rows | seconds | to the bare query | of processors | GiB at most |")
    print("|---|---|---|---|---|---|")
    for name, own in figures.items():
        bare_one = figures["duckdb weighted" if "weighted" in name else "duckdb"]
        shown = ["-", "-"]
        if own["rows"] == given.rows:
            for place, part in enumerate(("seconds", "processor_seconds")):
                own[f"{part}_to_bare"] = own[part] / bare_one[part]
                shown[place] = f"{own[f'{part}_to_bare']:.2f}"
        cells = f"{own['rows']:,} | {own['seconds']:.2f} | {' | '.join(shown)}"
        cells += f" | {own['peak_gib']:.2f}"
        print(f"| {name} | {cells} |")
    if given.json is not None:
        write_figures(given.json, machine, {"note": given.note, "figures": figures})


if __name__ == "__main__":
    main()
