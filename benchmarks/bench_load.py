"""How many ``predict`` calls a second does one loaded model answer, asked by eight threads?

``python benchmarks/bench_load.py --json benchmarks/results/load.json`` fits a front of each kind to
4,000 rows of a synthetic table, saves and loads it, and has eight threads ask the loaded model for
one row (and for 100 rows) at a time, as fast as they are answered. Every decision must be the one
that a single thread gets; the calls a second, by the clock and of processor time, and the 50th and
99th percentile of what a call took, are recorded. In turn with these, the same is asked of XGBoost
alone, which answers for few rows otherwise than a loaded ensemble. The aim is 200 calls a second.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from front import machine
from sklearn.linear_model import LogisticRegression

import apfex
from apfex import APFExClassifier, make_biased
from apfex.boosters._few_rows import FewRows

THREADS, PARTS = 8, 5
KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"model": "linear", "epochs": 3},
    "mlp": {"model": "mlp", "epochs": 3},
    "boosting": {"model": "boosting"},
    "networks of their own": {"model": "mlp", "search": "inprocess", "epochs": 3},
    "trees of their own": {"model": "boosting", "search": "inprocess", "n_estimators": 20},
    "group thresholds": {"model": "boosting", "group_thresholds": True},
    "a user's model": {"model": LogisticRegression(max_iter=1000)},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 100])
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    data, new = make_biased(4_000, random_state=0), make_biased(2_000, random_state=1)
    found = []
    print(
        "| model | rows a call | calls a second | a processor second | of XGBoost alone | 99%, ms |"
    )
    print("|---|---|---|---|---|---|")
    for kind in given.kinds:
        server = loaded(KINDS[kind], data)
        for rows in given.rows:
            one = {"kind": kind, **in_turn(server, new, rows, given.calls)}
            found.append(one)
            print(
                f"| {kind} | {rows} | {one['calls_a_second']:.0f} | "
                f"{one['calls_a_processor_second']:.0f} | "
                f"{one['calls_a_processor_second_of_xgboost']:.0f} | "
                f"{one['p99_ms']:.1f} |",
                flush=True,
            )
    if given.json:
        line = machine.describe(1, ("apfex", "torch", "xgboost", "pandas"))
        figures = {"threads": THREADS, "load": os.getloadavg()[0], "calls": found}
        machine.write_figures(given.json, line, figures)


def loaded(settings: dict[str, Any], data: Any) -> APFExClassifier:
    clf = APFExClassifier(max_gap=1.0, random_state=0, n_jobs=1, **settings)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        clf.fit(data.X, data.y, sensitive_features=data.sensitive)
        return apfex.load(clf.save(Path(folder) / "model"))


def in_turn(server: APFExClassifier, new: Any, rows: int, calls: int) -> dict[str, Any]:
    """Parts of the calls, each asked both ways: the part with the median of processor time."""
    usual, found, others = FewRows.is_faster_for, [], []
    for _ in range(PARTS):
        found.append(measure(server, new, rows, calls // PARTS))
        try:
            FewRows.is_faster_for = lambda *_: False
            others.append(measure(server, new, rows, calls // PARTS))
        finally:
            FewRows.is_faster_for = usual
    by = "calls_a_processor_second"
    middle = sorted(found, key=lambda one: one[by])[PARTS // 2]
    of_xgboost = sorted(one[by] for one in others)[PARTS // 2]
    return middle | {"calls": calls, f"{by}_of_xgboost": of_xgboost}


def measure(server: APFExClassifier, new: Any, rows: int, calls: int) -> dict[str, Any]:
    starts = np.random.default_rng(0).integers(0, len(new.X) - rows, calls)
    groups = new.sensitive if server.group_thresholds else None

    def ask(start: int) -> tuple[np.ndarray, float]:
        begun = time.perf_counter()
        part = slice(start, start + rows)
        more = {} if groups is None else {"sensitive_features": groups[part]}
        return server.predict(new.X[part], **more), time.perf_counter() - begun

    alone = [ask(start)[0] for start in starts]
    with ThreadPoolExecutor(THREADS) as threads:
        begun, worked = time.perf_counter(), time.process_time()
        answers = list(threads.map(ask, starts))
        seconds, worked = time.perf_counter() - begun, time.process_time() - worked
    if not all(np.array_equal(a, b) for (a, _), b in zip(answers, alone, strict=True)):
        raise SystemExit("Threads got other decisions than one thread did.")
    waits = 1000 * np.array([wait for _, wait in answers])
    return {
        "rows": rows,
        "calls": calls,
        "calls_a_second": calls / seconds,
        "calls_a_processor_second": calls / worked,
        "median_ms": float(np.median(waits)),
        "p99_ms": float(np.quantile(waits, 0.99)),
    }


if __name__ == "__main__":
    main()
