"""On small tables: should one part of the rows choose, or each row in its turn?

Run ``python benchmarks/bench_validation.py``. In each repeat 70% of a table are fitted, once with
``validation="split"`` and once with "cross"; the point for each bound on the dp gap is taken as
``select`` takes it, and judged on the other 30%. Optimism is the test value minus what the front
said of the point.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import warnings
from collections import defaultdict

import numpy as np
from front.tables import deal

from apfex import APFExClassifier
from apfex.datasets import load_dataset
from apfex.groups import make_groups
from apfex.metrics import accuracy, dp_gap

BOUNDS = (0.05, 0.1, 0.2, 0.3)


def judge(name: str, seed: int) -> dict[str, list[tuple[float, float, float, float]]]:
    """Error, gap and the optimism of both at each bound, by way of validation."""
    data = load_dataset(name)
    codes = make_groups(data.sensitive).codes
    parts = deal(2 * codes + data.y, [0] * 7 + [1] * 3, np.random.default_rng([seed, 3]))
    train, test = np.flatnonzero(parts == 0), np.flatnonzero(parts == 1)
    found = defaultdict(list)
    for validation in ("split", "cross"):
        clf = APFExClassifier(("dp",), max_gap=1.0, validation=validation, random_state=seed)
        clf.fit(data.X.iloc[train], data.y[train], sensitive_features=data.sensitive.iloc[train])
        for bound in BOUNDS:
            place = clf.front_.choose({"dp": bound})
            place = clf.front_.nearest({"dp": bound}) if place is None else place
            decided, point = clf.at(place).predict(data.X.iloc[test]), clf.front_[place]
            error = 1 - accuracy(data.y[test], decided)
            gap = dp_gap(data.y[test], decided, sensitive_features=data.sensitive.iloc[test])
            found[validation].append((error, gap, error - point.error, gap - point.gaps["dp"].gap))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=["heart", "german"])
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | validation | bound | error | gap | optimism of error | of gap |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.tables:
        runs = [judge(name, seed) for seed in range(arguments.repeats)]
        for validation in ("split", "cross"):
            values = np.array([run[validation] for run in runs]).mean(0)
            for bound, row in zip(BOUNDS, values, strict=True):
                cells = " | ".join(f"{value:.3f}" for value in row)
                print(f"| {name} | {validation} | {bound} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
