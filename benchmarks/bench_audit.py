"""Time and memory of ``apfex audit`` on a large file, in a process of its own.

``python benchmarks/bench_audit.py --rows 10000000`` writes a Parquet file of decisions, labels and
two sensitive columns to a temporary folder, audits it, and prints seconds and peak memory.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decisions.parquet"
        frame = pd.DataFrame(
            {
                "sex": pd.Categorical.from_codes(rng.integers(0, 2, rows), ["F", "M"]),
                "race": pd.Categorical.from_codes(rng.integers(0, 5, rows), list("ABCDE")),
                "y": rng.integers(0, 2, rows, dtype=np.int8),
                "yhat": rng.integers(0, 2, rows, dtype=np.int8),
            }
        )
        frame.to_parquet(path)
        del frame
        command = [sys.executable, "-m", "apfex.cli", "audit", str(path), "--prediction", "yhat"]
        started = time.perf_counter()
        subprocess.run(
            [*command, "--label", "y", "--sensitive", "sex,race"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"{rows:,} rows: {seconds:.1f} s, {peak:.1f} GiB at most")


if __name__ == "__main__":
    main()
