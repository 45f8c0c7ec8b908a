"""From how many rows on is a call of XGBoost faster than trees in NumPy, with the same bits?

``python benchmarks/bench_few_rows.py --json benchmarks/results/few-rows.json`` grows an ensemble of
each kind and asks both in turn for a few rows. Times are processor time of one call, the least of
several; it stops where a bit differs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from front import machine

from apfex.boosters._few_rows import FewRows
from apfex.models import Trees

KINDS: dict[str, dict[str, Any]] = {
    "two classes, 160 trees of depth 3": {"trees": 160, "max_depth": 3},
    "two classes, 140 trees of depth 6": {"trees": 140, "max_depth": 6},
    "two classes, 160 trees of depth 3, categories": {"trees": 160, "max_depth": 3, "codes": 2},
    "three classes, 480 trees of depth 3": {"trees": 160, "max_depth": 3, "c": 3},
    "three classes, 480 trees of depth 3, categories": {
        "trees": 160,
        "max_depth": 3,
        "c": 3,
        "codes": 2,
    },
}
ROWS = (1, 5, 20, 50, 100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = []
    print("| ensemble | rows | XGBoost, us | NumPy, us | taken |")
    print("|---|---|---|---|---|")
    for kind, settings in KINDS.items():
        trees, x = grown(**settings)
        assert trees.few_rows is not None
        for n in ROWS:
            one = {"kind": kind, "rows": n, **compare(trees, trees.few_rows, x[:n].copy())}
            found.append(one)
            print(f"| {kind} | {n} | {one['xgboost_us']:.0f} | {one['numpy_us']:.0f} | ", end="")
            print("NumPy |" if one["is_taken"] else "XGBoost |", flush=True)
    if given.json:
        line = machine.describe(1, ("apfex", "numpy", "xgboost"))
        machine.write_figures(given.json, line, {"calls": found})


def grown(trees: int, max_depth: int, c: int = 2, codes: int = 0) -> tuple[Trees, np.ndarray]:
    """An ensemble that was written and read, and rows to ask it for, some values missing."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2_000, 6)).astype(np.float32)
    x[:, :codes] = rng.integers(0, 20, (2_000, codes))
    y = (x.sum(1) + 2 * rng.normal(size=2_000) > 0) + (c == 3) * (x[:, 3] > 1)
    x[rng.random(x.shape) < 0.02] = np.nan
    types = ["c"] * codes + ["q"] * (6 - codes)
    objective: dict[str, Any] = {"objective": "binary:logistic"}
    if c > 2:
        objective = {"objective": "multi:softprob", "num_class": c}
    booster = xgboost.train(
        {**objective, "max_depth": max_depth, "learning_rate": 0.05, "nthread": 1},
        xgboost.DMatrix(x, y, feature_types=types, enable_categorical=True),
        trees,
    )
    return Trees.from_json(Trees(booster).to_json()), x


def compare(trees: Trees, few: FewRows, x: np.ndarray) -> dict[str, Any]:
    ways: dict[str, Callable[[], np.ndarray]] = {
        "xgboost_us": lambda: trees._margins(x),
        "numpy_us": lambda: few.margins(x),
    }
    bits = [np.ascontiguousarray(way()).view(np.int32) for way in ways.values()]
    if not np.array_equal(*bits):
        raise SystemExit("Bits differ.")
    least = dict.fromkeys(ways, np.inf)
    for _ in range(30):
        for name, way in ways.items():
            begun = time.process_time()
            for _ in range(10):
                way()
            least[name] = min(least[name], 1e5 * (time.process_time() - begun))
    return {**least, "is_taken": few.is_faster_for(x)}


if __name__ == "__main__":
    main()
