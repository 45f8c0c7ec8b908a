"""A method's row on one table: the encoding that counts, its scores, and ratios between rows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rivals.common import GAPS
from scipy import stats

from front.records import Record

Scores = dict[str, dict[int, float]]  # by gap and seed


@dataclass(frozen=True, eq=False)
class Row:
    """One method on one table, with the better encoding for each gap."""

    method: str
    needs_attribute: bool
    encoding: dict[str, str]  # by gap
    scores: Scores
    records: dict[str, list[Record]]  # by encoding, of those that were compared
    left_out: list[str]  # for a reader: encodings with fewer seeds, and how they did

    def mean(self, gap: str) -> float:
        return _mean(self.scores[gap])

    def inputs(self) -> list[str]:
        """Encodings that count; two where the gaps have different ones."""
        return list(dict.fromkeys(self.encoding[gap] for gap in GAPS))

    def cost(self, field: str) -> str:
        """Mean of a field for each of the inputs; "-" where no record has it."""
        found = ([r[field] for r in self.records[e] if field in r] for e in self.inputs())
        return "/".join(_short(np.mean(values)) if values else "-" for values in found)


def make_row(method: str, records: Sequence[Record], pooling: str) -> Row | None:
    """Choose the better encoding for each gap by the mean over seeds; None if nothing ran."""
    by_encoding: dict[str, list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record["seed"]):
        if "error" not in record:
            by_encoding[record["encoding"]].append(record)
    if not by_encoding:
        return None
    scores = {e: _scores_of(found, pooling) for e, found in by_encoding.items()}
    # An encoding that failed for some seeds does not win by the easier ones.
    most = max(map(len, by_encoding.values()))
    compared = {e: found for e, found in by_encoding.items() if len(found) == most}
    encoding = {gap: max(compared, key=lambda e: _mean(scores[e][gap])) for gap in GAPS}
    left_out = [
        _beside(e, scores[e], other, scores[other])
        for e in sorted(by_encoding.keys() - compared.keys())
        for other in sorted(compared)
    ]
    chosen = {gap: scores[encoding[gap]][gap] for gap in GAPS}
    return Row(method, records[0]["needs_attribute"], encoding, chosen, compared, left_out)


def ratio(ours: dict[int, float], theirs: dict[int, float]) -> str:
    """Paired ratio over common seeds: geometric mean and 95% interval (t on logarithms)."""
    seeds = sorted(ours.keys() & theirs.keys())
    a, b = np.array([ours[s] for s in seeds]), np.array([theirs[s] for s in seeds])
    if not len(seeds) or (a <= 0).any() or (b <= 0).any():
        return "-"  # no logarithm
    logs = np.log(a / b)
    middle = logs.mean()
    if len(seeds) < 2:
        return f"{math.exp(middle):.3f}"
    half = stats.t.ppf(0.975, len(seeds) - 1) * logs.std(ddof=1) / math.sqrt(len(seeds))
    return f"{math.exp(middle):.3f} [{math.exp(middle - half):.3f}, {math.exp(middle + half):.3f}]"


def _scores_of(records: Sequence[Record], pooling: str) -> Scores:
    return {gap: {r["seed"]: _score_of(r, gap, pooling) for r in records} for gap in GAPS}


def _score_of(record: Record, gap: str, pooling: str) -> float:
    by_bound = pooling == "bound" and record.get("hypervolume_by_bound")
    return record["hypervolume_by_bound" if by_bound else "hypervolume"][gap]


def _beside(encoding: str, scores: Scores, other: str, others: Scores) -> str:
    """How an encoding with fewer seeds did, beside the other on the seeds of both."""
    seeds = sorted(scores[GAPS[0]])
    common = [seed for seed in seeds if seed in others[GAPS[0]]]
    said = f"encoding {encoding}: only seeds {seeds}"
    if not common:
        return f"{said}, none of which {other} has"
    ours, theirs = (
        {gap: _mean({seed: found[gap][seed] for seed in common}) for gap in GAPS}
        for found in (scores, others)
    )
    means = ("/".join(f"{mean:.4f}" for mean in found.values()) for found in (ours, theirs))
    where = "the same seeds" if common == seeds else f"seeds {common}"
    better = " and ".join(gap for gap in GAPS if ours[gap] > theirs[gap])
    said += f", hypervolume dp/tpr mean {next(means)} beside {next(means)} of {other} on {where}"
    return f"{said}: better for {better}, but left out" if better else said


def _mean(by_seed: dict[int, float]) -> float:
    return float(np.mean(list(by_seed.values())))


def _short(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"
