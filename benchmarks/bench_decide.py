"""A front decides as a whole, against point by point: 16 points on 10,000 rows of Adult's shape.

``python benchmarks/bench_decide.py`` fits a front of each kind to a synthetic table, lets all its
points decide for new rows in both ways, in turns, and prints medians and their ratio. Decisions
must be the same. Networks are trained for three epochs: how long does not matter here.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch

from apfex import APFExClassifier, make_biased

KINDS = {
    "rules on networks": {},
    "rules on trees": {"model": "boosting"},
    "rules on both": {"model": ("mlp", "boosting")},
    "a network for each point": {"search": "inprocess"},
    "trees for each point": {"model": "boosting", "search": "inprocess"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    fit = make_biased(given.rows, kind="marginal", strength=0.4, random_state=0)
    new = make_biased(given.rows, kind="marginal", strength=0.4, random_state=1)
    print(f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}")
    print("| front | points | point by point | as a whole | ratio |\n|---|---|---|---|---|")
    for name, settings in KINDS.items():
        clf = APFExClassifier(("dp", "tpr"), epochs=3, max_gap=1.0, random_state=0, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf.fit(fit.X, fit.y, sensitive_features=fit.sensitive)
        turn, whole = compare(clf, new.X, given.rounds)
        ratio = f"{turn / whole:.1f}"
        print(f"| {name} | {len(clf.front_)} | {turn:.2f} s | {whole:.2f} s | {ratio} |")


def compare(clf: APFExClassifier, X: object, rounds: int) -> tuple[float, float]:
    """Median seconds of both ways."""

    def in_turn() -> np.ndarray:
        return np.stack([clf.at(place).predict(X) for place in range(len(clf.front_))])

    assert (in_turn() == clf.decide_all(X)).all()
    seconds = [(timed(in_turn), timed(lambda: clf.decide_all(X))) for _ in range(rounds)]
    turn, whole = (statistics.median(column) for column in zip(*seconds, strict=True))
    return turn, whole


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
