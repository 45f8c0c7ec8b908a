"""Do the figures of a front hold on new rows, and do their intervals cover the truth?

Run ``python benchmarks/bench_reported.py``. Tables are drawn from a population that is known
(``make_biased``), so that the true error and gaps of every point can be measured on as many new
rows as one likes. For all points of a front, and for the one that ``fit`` chooses for a bound, it
prints the mean of the true minus the reported error and dp gap (above 0: the front flatters), and
the share of 95% intervals of the dp gap that hold the truth. ``--json FILE`` keeps the figures.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch
from front.machine import describe, write_figures

from apfex import APFExClassifier, make_biased
from apfex.metrics import dp_gap

NEW_ROWS, BOUND = 200_000, 0.1


def judge(task: tuple[int, int, float]) -> list[tuple[bool, float, float, bool]]:
    """For each point: whether it was chosen, optimism of error and gap, whether it is covered."""
    n, seed, base_rate = task
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    data = make_biased(n, base_rate=base_rate, random_state=seed)
    new = make_biased(NEW_ROWS, base_rate=base_rate, random_state=10_000 + seed)
    clf = APFExClassifier(("dp",), max_gap=BOUND, n_jobs=1, random_state=seed)
    clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    found = []
    for place, decided in enumerate(clf.decide_all(new.X)):
        point = clf.front_[place]
        if point.trivial:
            continue
        error = float((decided != new.y).mean())
        gap = dp_gap(new.y, decided, sensitive_features=new.sensitive)
        known = point.gaps["dp"]
        covers = bool(known.lower <= gap <= known.upper)
        found.append((place == clf.point_, error - point.error, gap - known.gap, covers))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    records = []
    print("| rows | base rate | points | fits | error: true - reported | gap: true - reported "
          "| gaps covered |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for n, base_rate in ((1_000, 0.5), (4_000, 0.5), (8_000, 0.5), (8_000, 0.2)):
            tasks = [(n, seed, base_rate) for seed in range(arguments.repeats)]
            fits = list(pool.map(judge, tasks))
            for which in ("all", "chosen"):
                rows = [point for fit in fits for point in fit if which == "all" or point[0]]
                error, gap, covered = np.array(rows, dtype=float)[:, 1:].mean(0).tolist()
                records.append([n, base_rate, which, len(fits), error, gap, covered])
                cells = f"{error:+.4f} | {gap:+.4f} | {covered:.3f}"
                print(f"| {n} | {base_rate} | {which} | {len(fits)} | {cells} |", flush=True)
    if arguments.json:
        columns = ["rows", "base_rate", "points", "fits", "error", "gap", "covered"]
        figures = {"columns": columns, "records": records}
        write_figures(arguments.json, describe(), figures)


if __name__ == "__main__":
    main()
