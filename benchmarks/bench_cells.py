"""What do many cells cost, and what becomes of the front?

Run ``python benchmarks/bench_cells.py``. Synthetic tables (``front/crossed.py``) have up to eight
attributes whose crossing has 4 to 10,000 cells. Each method is fitted in a process of its own, one
after the other, on one thread: processor seconds of the fit, its memory at the most (all of the
process, and beyond what it held before the fit), and its points on 100,000 test rows: hypervolume
of error and gap, for the gap over all cells with 200 test rows, over attributes, and over pairs of
them; and the least error with half of the plain model's gap over the cells. The criterion is dp.
``--json FILE`` keeps the figures; a line that is there already is not computed again.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from front.crossed import LEVELS, draw
from front.judge import score
from front.machine import describe
from numpy.typing import NDArray
from rivals.base_models import histogram
from rivals.common import Part
from rivals.linear_program import fair_rule

from apfex.estimator import APFExClassifier
from apfex.groups import Groups, make_groups
from apfex.tables import TableEncoder

TEST_ROWS, LEAST_ROWS = 100_000, 200
BOUNDS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 1.0)
"""Of the linear programmes: one for each point."""

Fit = Callable[[Part, int], Callable[[Part], NDArray[Any]]]
"""From rows and a seed to what decides on test rows, [points, n]."""


def ours(**given: Any) -> Fit:
    def fit(rows: Part, seed: int) -> Callable[[Part], NDArray[Any]]:
        clf = APFExClassifier(("dp",), n_jobs=1, device="cpu", random_state=seed, **given)
        clf.fit(rows.table, rows.y, sensitive_features=rows.sensitive)
        return lambda test: np.asarray(clf.decide_all(test.table))

    return fit


def plain(rows: Part, seed: int) -> Callable[[Part], NDArray[Any]]:
    model = histogram(rows, seed).fit(rows.x, rows.y)
    return lambda test: model.predict(test.x)[None]


class Caught(Exception):
    """Our own fit, stopped once its models are trained."""


def linear_post(rows: Part, seed: int) -> Callable[[Part], NDArray[Any]]:
    """Linear programmes on the out-of-fold probabilities that our own rules would be fitted to."""
    from apfex.front import _postprocess

    learn = _postprocess._JointFit.to

    def catch(*given: Any) -> None:
        raise Caught(learn(*given))

    fitted: Any = None
    with mock.patch.object(_postprocess._JointFit, "to", staticmethod(catch)):
        try:
            ours()(rows, seed)
        except Caught as caught:
            (fitted,) = caught.args
    seen = fitted.predictions.probabilities.double().numpy()
    rules = [fair_rule(seen, {"dp": bound}) for bound in BOUNDS]

    def decide(test: Part) -> NDArray[Any]:
        x = torch.from_numpy(fitted.encoder.transform(test.table))
        with torch.no_grad():
            parts = [fitted.model(part).double().numpy() for part in x.split(2**14)]
        return np.stack([np.concatenate([rule.decide(q) for q in parts]) for rule in rules])

    return decide


METHODS: dict[str, tuple[Fit, int]] = {
    "APFEx": (ours(), 10_000),
    "APFEx, attributes": (ours(grouping="attributes"), 10_000),
    "APFEx, inprocess": (ours(search="inprocess"), 10_000),
    "LinearPost + our q": (linear_post, 1_024),
    "plain HGB": (plain, 10_000),
}
"""With the most cells that each is tried with."""


def gaps(decided: NDArray[Any], groups: Groups) -> list[float]:
    """Gaps in dp over the cells, over the attributes, and over pairs of them; enough rows each."""
    chosen = np.bincount(groups.codes, weights=decided, minlength=len(groups))

    def gap(parent: NDArray[np.int64]) -> float:
        rows = np.bincount(parent, weights=groups.counts)
        known = rows >= LEAST_ROWS
        return float(np.ptp(np.bincount(parent, weights=chosen)[known] / rows[known]))

    names = groups.attributes
    alone = [gap(groups.parent_codes(name)) for name in names]
    pairs = [gap(groups.parent_codes(pair)) for pair in combinations(names, 2)]
    return [gap(np.arange(len(groups))), max(alone), max(pairs)]


def measure(method: str, cells: int, n: int, seed: int) -> dict[str, Any]:
    """Fit in this process, and judge on test rows."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows, test = parts_of(cells, n, seed)
    before, start = peak_mb(), time.process_time()
    decide = METHODS[method][0](rows, seed)
    seconds, peak = time.process_time() - start, peak_mb()
    groups, decided = make_groups(test.sensitive), decide(test)
    values = np.array([[np.mean(one != test.y), *gaps(one, groups)] for one in decided])
    return {
        "method": method,
        "cells": cells,
        "occur": rows.n_groups,
        "judged": int((groups.counts >= LEAST_ROWS).sum()),
        "rows": n,
        "seed": seed,
        "seconds": round(seconds, 1),
        "peak_mb": peak,
        "more_mb": peak - before,
        "constant_error": round(float(min(test.y.mean(), 1 - test.y.mean())), 5),
        "points": np.unique(values.round(5), axis=0).tolist(),
    }


def peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def parts_of(cells: int, n: int, seed: int) -> list[Part]:
    """Rows to learn from, and test rows."""
    drawn = [draw(cells, n, seed), draw(cells, TEST_ROWS, 10_000 + seed)]
    encoder, found = TableEncoder(categories="codes").fit(drawn[0].X), []
    for data in drawn:
        groups, x = make_groups(data.sensitive), encoder.transform(data.X)
        found.append(Part(x, data.y, groups.codes, len(groups), data.X, data.sensitive))
    return found


def volumes(record: dict[str, Any]) -> list[float]:
    """Hypervolumes of error and gap: over cells, attributes and pairs, as a share of the box."""
    values = np.array(record["points"])
    return [score(values[:, [0, column]], record["constant_error"]) for column in (1, 2, 3)]


def error_at_half(record: dict[str, Any], records: list[dict[str, Any]]) -> float:
    """Least error with half of the plain model's gap over the cells; infinite where none has it."""
    same = ("cells", "rows", "seed")
    of_plain = [r for r in records if r["method"] == "plain HGB"]
    gap = next(r["points"][0][1] for r in of_plain if all(r[x] == record[x] for x in same))
    values = np.array(record["points"])
    return float(values[values[:, 1] <= gap / 2, 0].min(initial=np.inf))


def table(records: list[dict[str, Any]]) -> str:
    """Means over seeds, in Markdown."""
    lines = [
        "| cells x rows | method | processor s | MB, and beyond the table | cells | attributes "
        "| pairs | error at half the gap |",
        "|---|---|---|---|---|---|---|---|",
    ]
    keys = dict.fromkeys((r["cells"], r["rows"], r["method"]) for r in records)
    for cells, n, method in sorted(keys, key=lambda key: key[:2]):
        own = [r for r in records if (r["cells"], r["rows"], r["method"]) == (cells, n, method)]
        seconds, peak, more = (
            float(np.mean([r[name] for r in own])) for name in ("seconds", "peak_mb", "more_mb")
        )
        found = np.mean([volumes(r) for r in own], axis=0)
        halves = [error_at_half(r, records) for r in own]
        half = f"{np.mean(halves):.3f}" if np.isfinite(halves).all() else "none"
        lines.append(
            f"| {cells:,} x {n:,} | {method} | {seconds:.0f} | {peak:.0f}, {more:.0f} | "
            f"{' | '.join(f'{value:.3f}' for value in found)} | {half} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, nargs="+", default=[*LEVELS], choices=[*LEVELS])
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000])
    parser.add_argument("--methods", nargs="+", default=[*METHODS], choices=[*METHODS])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*json.loads(arguments.one))))
        return
    records: list[dict[str, Any]] = []
    if arguments.json and arguments.json.exists():
        records = json.loads(arguments.json.read_text())["records"]
    known = {(r["method"], r["cells"], r["rows"], r["seed"]) for r in records}
    tasks = [
        (method, cells, n, seed)
        for n in arguments.rows
        for cells in arguments.cells
        for seed in arguments.seeds
        for method in arguments.methods
        if METHODS[method][1] >= cells and (method, cells, n, seed) not in known
    ]
    for task in tasks:
        command = [sys.executable, __file__, "--one", json.dumps(task)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        records.append(json.loads(done.stdout.splitlines()[-1]))
        print(*task, f"{records[-1]['seconds']} s", flush=True)
        if arguments.json:
            keep(arguments.json, records)
    print(table(records))


def keep(path: Path, records: list[dict[str, Any]]) -> None:
    """Write a record a line, so that what changes can be read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join("  " + json.dumps(record) for record in records)
    machine = json.dumps(describe())
    path.write_text(f'{{\n "machine": {machine},\n "records": [\n{lines}\n ]\n}}\n')


if __name__ == "__main__":
    main()
