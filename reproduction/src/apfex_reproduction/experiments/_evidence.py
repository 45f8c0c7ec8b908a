"""What a verdict on a claim is made of: counts, constants, gaps and shares, and their words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from apfex_reproduction.experiments._labels import data_name, judged_on
from apfex_reproduction.experiments._protocol import DATASETS, MAMO_SIZES
from apfex_reproduction.experiments._rows import grouping_at
from apfex_reproduction.experiments._study import Record, Study

Verdict = Literal["holds", "holds in part", "does not hold", "cannot be told"]


def by_counts(counts: dict[str, int]) -> Verdict:
    """Holds where most are above, does not where most are below."""
    if counts["above"] > counts["level"] + counts["below"]:
        return "holds"
    most_below = counts["below"] > counts["level"] + counts["above"]
    return "does not hold" if most_below else "cannot be told"


def counted(counts: dict[str, int]) -> str:
    """Counts in words."""
    return f"{counts['above']} above, {counts['level']} level, {counts['below']} below"


def constants(study: Study, dataset: str, methods: Sequence[str]) -> str:
    """Constant runs of ten of each method, on each split."""
    splits = {"70/15/15": "", **({"mamo": " on MAMO's split"} if dataset in MAMO_SIZES else {})}
    parts = [
        f"{' and '.join(str(study.constants(dataset, m, split)) for m in methods)}{words}"
        for split, words in splits.items()
    ]
    return f"constant runs of ten on {data_name(dataset)}: {', '.join(parts)}"


def place(study: Study, dataset: str, method: str) -> str:
    """Where a method is judged."""
    return grouping_at(judged_on(method), study.runs(dataset, method)[0]["attributes"])


def mean_gap(study: Study, dataset: str, method: str, name: str) -> float:
    """Over the runs, where the method is judged."""
    return float(np.mean(study.values(dataset, method, name, place(study, dataset, method))))


def spread(study: Study, dataset: str, method: str) -> float:
    """Of the dp gap, where the method is judged."""
    return float(np.std(study.values(dataset, method, "dp", place(study, dataset, method))))


def worst_loss(study: Study, method: str) -> str:
    """The data set where a method loses most accuracy against the baseline."""
    lost = {d: study.difference(d, method, "plain", "accuracy") for d in DATASETS}
    known = {d: interval for d, interval in lost.items() if interval is not None}
    dataset = min(known, key=lambda d: known[d].mean)
    return f"{known[dataset]} on {data_name(dataset)}"


def logarithm_of_descent(run: Record) -> float | None:
    """Of omega in the last stretch over that in the first."""
    omega = run.get("course", {}).get("omega")
    if not omega:
        return None
    return float(np.log10(max(omega[-1], 1e-8) / max(omega[0], 1e-8)))


def mean_shares(study: Study, dataset: str, method: str) -> dict[str, float]:
    """Mean shares of the windows by strategy."""
    shares = [run.get("shares", {}) for run in study.runs(dataset, method)]
    names = ("PCP", "AW", "PSS")
    return {n: float(np.mean([s.get(n, 0.0) for s in shares])) for n in names} if shares else {}


def percent(shares: dict[str, float]) -> str:
    """Shares in per cent."""
    return " / ".join(f"{100 * share:.0f}" for share in shares.values())


def listed(values: Iterable[float]) -> str:
    """Values with four digits."""
    return ", ".join(f"{value:.4f}" for value in values)
