"""A point's ``predict`` beside the bare models below it, in rows a second and processor time.

``python benchmarks/bench_predict.py --json benchmarks/results/predict/one_thread.json`` fits a
front of each kind to Adult, and lets one point decide for 1,000, 100,000 and 1,000,000 rows
(Adult's own, repeated in another order), in turns with

- the same models bare: all boosters of all folds by ``inplace_predict``, or all networks, and the
  mean of their probabilities, on the matrix that the encoder made. The aim is set against it: at
  most 1.5 times its time. ``predict`` takes the table, so that encoding is a part of its time;
- the encoding alone, so that the bare models can be seen with it;
- one ``XGBClassifier`` with the settings of one of our ensembles, on the table itself, whose text
  becomes categories: what a user without fairness would run. It is one model and not five, and
  knows nothing of groups.

Processor time is counted, as it hardly depends on who else uses the machine; medians of several
rounds, of three at most for a million rows.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import xgboost
from torch import nn

from apfex import APFExClassifier, load_dataset
from apfex.models import JointTrees

KINDS: dict[str, dict[str, Any]] = {
    "boosting": {"model": "boosting"},
    "linear": {"model": "linear", "epochs": 3},
    "mlp": {"model": "mlp", "epochs": 3},
    "default": {},
}
FIT_ROWS = {"default": 4_000}
"""So few that the default is a mixture, of trees and linear models; others get 20,000."""
CHUNK = 2**12
"""Rows that bare networks see at once, as ours do: more leave the cache."""
MANY, MANY_ROUNDS, WARM = 500_000, 3, 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    data = load_dataset("adult")
    single = fit_single(data.X[:20_000], data.y[:20_000], given.threads)
    record: dict[str, Any] = {"machine": machine(given.threads), "rounds": given.rounds}
    print("| models | rows | rows a second | to bare | encoding to bare | to both | to one model |")
    print("|---|---|---|---|---|---|---|")
    for kind in given.kinds:
        clf = fit(data, KINDS[kind], FIT_ROWS.get(kind, 20_000), given.threads)
        for n in given.rows:
            rounds = given.rounds if n < MANY else min(given.rounds, MANY_ROUNDS)
            found = measure(clf, repeat(data.X, n), single, rounds)
            record.setdefault(kind, {"mixture": clf.mixture_})[str(n)] = found
            print(row(kind, n, found), flush=True)
            if given.json is not None:
                given.json.parent.mkdir(parents=True, exist_ok=True)
                given.json.write_text(json.dumps(record, indent=1) + "\n")


def machine(threads: int) -> str:
    versions = ", ".join(
        f"{name} {version(name)}" for name in ("apfex", "torch", "xgboost-cpu", "pandas", "numpy")
    )
    return (
        f"{os.cpu_count()} cores, {threads} threads, {platform.machine()}, load "
        f"{os.getloadavg()[0]:.1f}; Python {platform.python_version()}, {versions}"
    )


def fit(data: Any, settings: dict[str, Any], n: int, threads: int) -> APFExClassifier:
    clf = APFExClassifier(("dp", "tpr"), max_gap=1.0, random_state=0, n_jobs=threads, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(data.X[:n], data.y[:n], sensitive_features=data.sensitive[:n])


def fit_single(X: pd.DataFrame, y: np.ndarray, threads: int) -> Callable[[pd.DataFrame], Any]:
    """One XGBoost classifier on the table, with the settings of an ensemble of ours."""
    dtypes = {n: pd.CategoricalDtype(sorted(c.dropna().unique())) for n, c in text_of(X).items()}
    model = xgboost.XGBClassifier(
        n_estimators=100,
        max_depth=6,
        learning_rate=0.1,
        colsample_bytree=0.5,
        enable_categorical=True,
        tree_method="hist",
        n_jobs=threads,
    ).fit(X.astype(dtypes), y)
    return lambda new: model.predict(new.astype(dtypes))


def text_of(X: pd.DataFrame) -> pd.DataFrame:
    return X.select_dtypes(exclude="number")


def repeat(X: pd.DataFrame, n: int) -> pd.DataFrame:
    rows = np.random.default_rng(0).permutation(np.arange(n) % len(X))
    return X.iloc[rows].reset_index(drop=True)


def measure(
    clf: APFExClassifier, X: pd.DataFrame, single: Callable[[Any], Any], rounds: int
) -> dict[str, float]:
    """Medians of processor seconds, the ways taking turns, and of their ratios."""
    x = clf.fitted_.encode(X)
    module: Any = clf.front_[clf.point_].module
    ways = {
        "predict": lambda: clf.predict(X),
        "bare": lambda: run_bare(module.joint, x, clf.front_.dtype),
        "encode": lambda: clf.fitted_.encode(X),
        "one XGBClassifier": lambda: single(X),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for work in ways.values() if len(X) < WARM else ():
        work()  # warms up
    for _ in range(rounds):
        for name, work in ways.items():
            times[name].append(timed(work, at_least=0.2))
    seconds = {name: np.array(found) for name, found in times.items()}
    found = {f"{name}, s": statistics.median(one) for name, one in seconds.items()}
    bare, encode, whole = (seconds[name] for name in ("bare", "encode", "predict"))
    return found | {
        "rows a second": len(X) / found["predict, s"],
        "bare rows a second": len(X) / found["bare, s"],
        "predict / bare": statistics.median(whole / bare),
        "encode / bare": statistics.median(encode / bare),
        "predict / (encode + bare)": statistics.median(whole / (encode + bare)),
        "predict / one XGBClassifier": statistics.median(whole / seconds["one XGBClassifier"]),
    }


def run_bare(joint: Any, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The same models, without anything around: what they say of group and label, as a mean."""
    total: Any = 0.0
    networks = []
    for model, weight in zip(joint.models, joint.weights, strict=True):
        inner, start, stop = getattr(model, "model", model), 0, x.shape[1]
        if inner is not model:  # it sees some of the inputs
            start, stop = model.start, model.stop
        if isinstance(inner, JointTrees):
            total = total + weight * run_trees(inner, x[:, start:stop], joint.shape)
        else:
            networks.append((weight, inner, start, stop))
    return total + run_networks(networks, x, dtype) if networks else total


def run_networks(
    networks: Sequence[tuple[float, nn.Module, int, int]], x: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    found = []
    with torch.no_grad():
        for part in x.split(CHUNK):
            inputs = part.to(dtype)
            parts = [w * torch.softmax(net(inputs[:, a:b]), 1) for w, net, a, b in networks]
            found.append(sum(parts[1:], parts[0]))
    return torch.cat(found)


def run_trees(trees: JointTrees, x: torch.Tensor, shape: tuple[int, int]) -> torch.Tensor:
    """Margins of the label, and of the group given each label: one call for each."""
    assert trees.group is not None
    matrix = np.ascontiguousarray(x.numpy())
    label = trees.label.booster.inplace_predict(matrix, predict_type="margin")
    p = torch.sigmoid(torch.from_numpy(label.copy()))
    found = []
    for y in range(shape[1]):
        inputs = np.hstack([matrix, np.full((len(x), 1), y, np.float32)])
        margins = trees.group.booster.inplace_predict(inputs, predict_type="margin")
        groups = torch.softmax(torch.from_numpy(margins.reshape(len(x), -1).copy()), 1)
        found.append((p if y else 1 - p).unsqueeze(1) * groups)
    return torch.stack(found, 2).flatten(1)


def timed(work: Callable[[], object], at_least: float) -> float:
    """Processor seconds of one call; quick ones are called several times."""
    calls, started = 0, time.process_time()
    while calls == 0 or time.process_time() - started < at_least:
        work()
        calls += 1
    return (time.process_time() - started) / calls


def row(kind: str, n: int, found: dict[str, float]) -> str:
    return (
        f"| {kind} | {n:,} | {found['rows a second']:,.0f} | {found['predict / bare']:.2f} | "
        f"{found['encode / bare']:.2f} | {found['predict / (encode + bare)']:.2f} | "
        f"{found['predict / one XGBClassifier']:.1f} |"
    )


if __name__ == "__main__":
    main()
