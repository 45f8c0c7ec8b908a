"""Training from disk: memory and processor time of streamed fits, beside those in memory.

Run ``python benchmarks/bench_disk.py --json benchmarks/results/disk/two-cores.json``: about five
minutes on one quiet core. Every fit is a process of its own, on one thread. Growth of peak memory
is that over a fit to 8,000 rows by the same way, so that imports do not count. Streams are fitted
by the default settings ("streamed"), and with fewer rows for rules ("small rules"). A record that
exists keeps what is not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from front import machine

WAYS = ("memory", "streamed", "small rules")
CHILD = """
import json, resource, sys, time, warnings
import pandas as pd
from apfex import APFExClassifier
from apfex.streams import StreamSettings

warnings.simplefilter("ignore")
way, model, small, large = sys.argv[1:]
names = ["sex", "race"]


def fit(path):
    streaming = StreamSettings(rule_rows=2**14) if way == "small rules" else None
    clf = APFExClassifier(
        model=model, validation="split", n_jobs=1, random_state=0, streaming=streaming
    )
    if way != "memory":
        return clf.fit(path, y="y", sensitive_features=names)
    table = pd.read_parquet(path)
    return clf.fit(table.drop(columns=["y", *names]), table["y"], sensitive_features=table[names])


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


fit(small)
before, started = peak(), time.process_time()
front = fit(large).front_.to_frame()
fair = front["error"][front["dp_gap"] <= 0.1].min()
seconds = time.process_time() - started
print(json.dumps({
    "growth_bytes": peak() - before, "seconds": seconds, "error": front["error"].min(),
    "error_within_0.1": None if fair != fair else fair,
}))
"""


def write(path: Path, n: int, columns: int) -> None:
    """Rows with two sensitive attributes, whose labels are noisy."""
    rng, writer = np.random.default_rng(0), None
    for start in range(0, n, 50_000):
        m = min(50_000, n - start)
        sex, race = rng.integers(0, 2, m), rng.choice(3, m, p=[0.7, 0.28, 0.02])
        x = rng.normal(size=(m, columns))
        x[:, 0] += 0.8 * sex
        x[:, 1] += 0.6 * (race == 1)
        score = x[:, 0] + 0.7 * x[:, 1] + 0.5 * x[:, 2] * x[:, 3] + 0.3 * sex - 0.5
        table = {f"x{place}": column for place, column in enumerate(x.T)}
        table["y"] = (score + rng.logistic(size=m) > 0).astype(np.int64)
        table |= {"sex": np.array(["F", "M"])[sex], "race": np.array(["A", "B", "C"])[race]}
        rows = pa.table(table)
        writer = writer or pq.ParquetWriter(path, rows.schema, compression="none")
        writer.write_table(rows)
    assert writer is not None
    writer.close()


def measure(way: str, model: str, small: Path, large: Path) -> dict[str, float]:
    """One fit in a process of its own."""
    command = [sys.executable, "-c", CHILD, way, model, str(small), str(large)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def kept(record: Path, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fits of a record that were not measured again."""
    if not record.exists():
        return []
    again = {(one["model"], one["rows"], one["way"]) for one in found}
    fits = json.loads(record.read_text(encoding="utf-8"))["fits"]
    return [one for one in fits if (one["model"], one["rows"], one["way"]) not in again]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", type=int, default=[25_000, 50_000, 100_000, 200_000])
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--models", nargs="+", default=["linear"])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = []
    print(
        "| model | rows | data, MB | way | growth of peak memory, MB | processor seconds | error |"
    )
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        small, large = (Path(folder) / f"{name}.parquet" for name in ("small", "large"))
        write(small, 8_000, arguments.columns)
        for n in arguments.rows:
            write(large, n, arguments.columns)
            size = large.stat().st_size
            for model in arguments.models:
                for way in arguments.ways:
                    one = measure(way, model, small, large)
                    facts = {"model": model, "rows": n, "data_bytes": size, "way": way}
                    found.append({**facts, "columns": arguments.columns, **one})
                    growth, seconds = one["growth_bytes"] / 2**20, one["seconds"]
                    print(
                        f"| {model} | {n:,} | {size / 2**20:.0f} | {way} | {growth:.0f} | "
                        f"{seconds:.1f} | {one['error']:.4f} |",
                        flush=True,
                    )
    if arguments.json:
        line = machine.describe(1, ("apfex", "torch", "xgboost", "pyarrow"))
        machine.write_figures(arguments.json, line, {"fits": kept(arguments.json, found) + found})


if __name__ == "__main__":
    main()
