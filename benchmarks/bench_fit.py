"""How long does the default fit of Adult take, and what takes it?

``python benchmarks/bench_fit.py`` fits all rows several times in one process, on a GPU if there is
one; the first fit warms up and is told apart. ``--json benchmarks/results/fit/MACHINE.json`` keeps
the figures.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from front.machine import describe, write_figures

import apfex.front._early_trees as early
import apfex.front._postprocess as search
import apfex.front._rows as look
import apfex.front._search as front
from apfex import APFExClassifier, load_dataset

PARTS = {
    "a look at a sample": ((look, early), "networks_help"),
    "models of group and label": ((search,), "fit_joint_model"),
    "rules": ((search,), "explore_rules"),
    "points": ((front,), "make_front"),
}
"""What is timed, and where it is called; on several threads trees grow during the look."""


def timed(work: Callable[..., Any], name: str, taken: dict[str, float]) -> Callable[..., Any]:
    def measured(*given: Any, **named: Any) -> Any:
        start = time.perf_counter()
        try:
            return work(*given, **named)
        finally:
            taken[name] += time.perf_counter() - start

    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--json", type=Path, help="file for the figures")
    given = parser.parse_args()
    taken: dict[str, float] = defaultdict(float)
    for name, (rooms, function) in PARTS.items():
        for room in rooms:
            setattr(room, function, timed(getattr(room, function), name, taken))
    data, rounds = load_dataset("adult"), []
    for _ in range(given.rounds + 1):
        taken.clear()
        start = time.perf_counter()
        clf = APFExClassifier(device=given.device, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what it says of Adult is known
            clf.fit(data.X, data.y, sensitive_features=data.sensitive)
        whole = time.perf_counter() - start
        rounds.append({"whole": whole, **taken, "all else": whole - sum(taken.values())})
        print("  ".join(f"{name} {seconds:.2f} s" for name, seconds in rounds[-1].items()))
    machine = describe(torch.get_num_threads(), ("apfex", "torch", "xgboost"))
    if torch.cuda.is_available() and given.device != "cpu":
        machine = f"{torch.cuda.get_device_name()}; {machine}"
    first, *warm = rounds
    medians = {name: round(median(one[name] for one in warm), 2) for name in first}
    wholes = sorted(round(one["whole"], 2) for one in warm)
    print(f"{machine}\nwarm, median of {len(warm)}: {medians}; fastest {wholes[0]}")
    if given.json:
        figures = {"first": round(first["whole"], 2), "warm": wholes, "medians": medians}
        write_figures(given.json, machine, figures)


if __name__ == "__main__":
    main()
