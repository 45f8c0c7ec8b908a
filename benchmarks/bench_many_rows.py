"""Ten million rows through the command line: time and the peak of memory.

``python benchmarks/bench_many_rows.py --json benchmarks/results/many-rows.json`` writes a Parquet
file with two sensitive attributes into a temporary folder, and runs ``apfex explore --model
linear`` on it, streamed and in memory, each as a process of its own. A run that takes more memory
than ``--most-gib`` is stopped and recorded as such.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench_disk import write
from front import machine

WAYS = {"streamed": "--stream", "memory": "--no-stream"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--most-gib", type=float, default=8.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, given.rows, given.columns)
        print("| way | rows | file, MB | seconds | processor seconds | peak of memory, MB | exit |")
        print("|---|---|---|---|---|---|---|")
        for way in given.ways:
            one = measure(path, WAYS[way], given.threads, given.most_gib * 2**30)
            facts = {"way": way, "rows": given.rows, "columns": given.columns}
            found.append({**facts, "file_bytes": path.stat().st_size, **one})
            print(
                f"| {way} | {given.rows:,} | {path.stat().st_size / 2**20:.0f} | "
                f"{one['seconds']:.0f} | {one['processor_seconds']:.0f} | "
                f"{one['peak_bytes'] / 2**20:.0f} | {one['exit']} |",
                flush=True,
            )
    if given.json:
        packages = ("apfex", "torch", "pyarrow", "pandas")
        line = machine.describe(given.threads, packages)
        machine.write_figures(given.json, line, {"runs": found})


def measure(path: Path, way: str, threads: int, most: float) -> dict[str, Any]:
    """One run of the command line in a process of its own."""
    out = path.parent / f"run{way}"
    command = [sys.executable, "-m", "apfex", "explore", str(path), "--label", "y"]
    command += ["--positive", "1", "--sensitive", "sex,race", "--model", "linear", way]
    command += ["--threads", str(threads), "--out", str(out)]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    with (path.parent / f"log{way}").open("w+") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        peak = 0
        while child.poll() is None:
            peak = max(peak, memory_of(child.pid))
            if peak > most:
                child.kill()
            time.sleep(0.2)
        log.seek(0)
        print(log.read()[-3000:], file=sys.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "seconds": time.monotonic() - started,
        "processor_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peak_bytes": peak,
        "exit": child.returncode,
        "points": points_of(out) if child.returncode in (0, 1) else None,
    }


def memory_of(process: int) -> int:
    """Bytes that it holds now at the most, by the system's own count; 0 where it is gone."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(x.split()[1]) * 1024 for x in lines if x.startswith("VmHWM")), 0)


def points_of(out: Path) -> list[dict[str, float]]:
    """Gain over the constant decision and the largest gap in selection, by point, on test rows."""
    points = json.loads((out / "front.json").read_text())["points"]
    return [
        {
            "gain": one["gain"],
            "dp_gap": max(gap["gap"] for gap in one["gaps"] if gap["criterion"] == "dp"),
        }
        for one in points
    ]


if __name__ == "__main__":
    main()
