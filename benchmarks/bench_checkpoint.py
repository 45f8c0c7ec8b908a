"""What a checkpoint costs: a fit on Adult with and without one, and going on when all is there.

``python benchmarks/bench_checkpoint.py --json benchmarks/results/checkpoint.json`` fits each kind
of front in turns without a checkpoint, with one, and again with the one that is finished. Processor
time is counted, as it hardly depends on who else uses the machine; medians of several rounds. The
writes are timed by themselves, too: their processor seconds, and with what they wait for the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from apfex import APFExClassifier, load_dataset
from apfex.persistence import FolderCheckpoint

KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "mlp": {"model": "mlp"},
    "inprocess": {"model": "mlp", "search": "inprocess"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    warnings.simplefilter("ignore", UserWarning)
    data = load_dataset("adult")
    writes = counted_writes()

    def fit(kind: str, checkpoint: Path | None) -> None:
        clf = APFExClassifier(random_state=0, n_jobs=asked.threads, **KINDS[kind])
        clf.fit(data.X, data.y, sensitive_features=data.sensitive, checkpoint=checkpoint)

    results = {}
    for kind in asked.kinds:
        rounds = [measure(lambda place, k=kind: fit(k, place), writes) for _ in range(asked.rounds)]
        results[kind] = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
        print(kind, json.dumps(results[kind]), flush=True)
    if asked.json is not None:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps({"machine": machine(asked), "results": results}, indent=1))


def measure(
    fit: Callable[[Path | None], None], writes: list[tuple[float, float]]
) -> dict[str, float]:
    """Processor seconds of the three fits, and what was written."""
    with tempfile.TemporaryDirectory() as home:
        place = Path(home) / "checkpoint"
        plain = processor_seconds(lambda: fit(None))
        writes.clear()
        kept = processor_seconds(lambda: fit(place))
        spent, waited = (sum(times) for times in zip(*writes, strict=True))
        n_writes = len(writes)
        size = sum(path.stat().st_size for path in place.iterdir())
        again = processor_seconds(lambda: fit(place))
    return {
        "without": plain,
        "with": kept,
        "going on from a finished one": again,
        "processor seconds within writes": round(spent, 3),
        "seconds within writes": round(waited, 3),
        "writes": n_writes,
        "megabytes": round(size / 1e6, 1),
    }


def processor_seconds(run: Callable[[], None]) -> float:
    started = time.process_time()
    run()
    return round(time.process_time() - started, 2)


def counted_writes() -> list[tuple[float, float]]:
    """Processor seconds and seconds of every write from now on."""
    write, seconds = FolderCheckpoint.write, []

    def timed(self: FolderCheckpoint, name: str, state: Any) -> None:
        started = time.thread_time(), time.perf_counter()
        write(self, name, state)
        seconds.append((time.thread_time() - started[0], time.perf_counter() - started[1]))

    FolderCheckpoint.write = timed
    return seconds


def machine(asked: argparse.Namespace) -> dict[str, Any]:
    packages = ("numpy", "torch", "xgboost-cpu")
    return {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "threads": asked.threads,
        "rounds": asked.rounds,
        **{name: version(name) for name in packages},
    }


if __name__ == "__main__":
    main()
