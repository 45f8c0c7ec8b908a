"""What points are worth: error and gaps on test rows, pooled over folds, and hypervolumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rivals.common import Handed, n_allowed
from scipy.optimize import linear_sum_assignment

from apfex.front import hypervolume
from front.made import MIXTURES, best_values
from front.tables import TABLES, make_splits, read_table

WORST_GAP, LEAST_ROWS = 0.5, 10
COLUMNS = {"dp": [0, 1], "tpr": [0, 2], "eo": [0, 3], "both": [0, 1, 2]}
"""What counts for each problem, of error, dp gap, tpr gap and the gap of equalized odds."""


@dataclass(frozen=True, eq=False)
class Judge:
    """Error and gaps of decisions on test rows.

    ``cells`` [n, k, 2] tell how much of each row is in a group with a label: one of them is 1 where
    rows are known, and true probabilities on synthetic tables.
    """

    cells: NDArray[np.float64]

    @property
    def totals(self) -> NDArray[np.float64]:
        return self.cells.sum(0)

    @property
    def constant_error(self) -> float:
        labels = self.totals.sum(0)
        return float(labels.min() / labels.sum())

    def n_groups(self, label: int) -> int:
        """Groups whose rate for this label counts."""
        return int((self.totals[:, label] >= LEAST_ROWS).sum())

    def values(self, decided: NDArray[Any]) -> NDArray[np.float64]:
        """Error, dp gap, tpr gap and eo gap [p, 4] of decisions [p, n].

        A gap is 1 where fewer than two groups tell.
        """
        decided = np.asarray(decided)
        if decided.shape[1] != len(self.cells) or not np.isin(decided, (0, 1)).all():
            raise ValueError(f"A point must hold {len(self.cells)} decisions of 0 or 1.")
        k = len(self.totals)
        chosen = (decided.astype(np.float64) @ self.cells.reshape(len(self.cells), -1)).reshape(
            -1, k, 2
        )
        wrong = chosen[:, :, 0].sum(1) + (self.totals[:, 1] - chosen[:, :, 1]).sum(1)
        dp = _gap(chosen.sum(2), self.totals.sum(1), 1)
        fpr, tpr = (_gap(chosen[:, :, y], self.totals[:, y], LEAST_ROWS) for y in (0, 1))
        return np.stack([wrong / self.totals.sum(), dp, tpr, np.maximum(tpr, fpr)], 1)


def _gap(
    chosen: NDArray[np.float64], totals: NDArray[np.float64], least: float
) -> NDArray[np.float64]:
    known = totals >= least
    if known.sum() < 2:
        return np.ones(len(chosen))
    return np.ptp(chosen[:, known] / totals[known], axis=1)


def make_judge(name: str, seed: int, needs_attribute: bool) -> Judge:
    """The judge of a table; one who reads the attribute is judged given the true group."""
    data, groups = read_table(name, seed)
    test = np.concatenate([split.test for split in make_splits(name, seed)])
    own = np.zeros((len(test), len(groups), 2))
    own[np.arange(len(test)), groups.codes[test], data.y[test]] = 1.0
    if not TABLES[name].is_made:
        return Judge(own)
    q = MIXTURES[name].probabilities(data.X.iloc[test].to_numpy())
    if needs_attribute:
        q = q * own.sum(2, keepdims=True)
        q = q / q.sum((1, 2), keepdims=True)
    return Judge(q)


def score(values: NDArray[np.float64], constant_error: float) -> float:
    """Hypervolume of (error, gap, ...) as a share of the box."""
    corner = (constant_error, *[WORST_GAP] * (values.shape[1] - 1))
    return hypervolume(values, corner) / float(np.prod(corner))


def match(handed: Sequence[Handed]) -> NDArray[Any]:
    """Decisions [p, n] of points on all folds.

    The longest list tells how many; a point of it goes with one point of every other fold: with
    that in its place, shorter lists being stretched, or, where figures are shown, so that matched
    figures are nearest in all (each in units of its spread).
    """
    longest = max(handed, key=lambda found: len(found.points))
    matched = []
    for found in handed:
        if longest.figures is None or found.figures is None:
            last = len(found.points) - 1
            places = np.linspace(0, last, len(longest.points)).round().astype(int)
        else:
            spread = np.concatenate([other.figures for other in handed]).std(0) + 1e-9
            places = _nearest(longest.figures / spread, found.figures / spread)
        matched.append(np.stack([np.asarray(found.points[place]) for place in places]))
    return np.concatenate(matched, axis=1)


def _nearest(wanted: NDArray[np.float64], found: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each of the wanted points [p, m] one of those found [q <= p, m], all of them taken."""
    squares = ((wanted[:, None] - found) ** 2).sum(2)
    places = squares.argmin(1)
    rows, columns = linear_sum_assignment(squares)
    places[rows] = columns
    return places


def judge_problem(problem: str, judge: Judge, handed: Sequence[Handed]) -> dict[str, Any]:
    """What a record says of a problem; one ``Handed`` for each fold."""
    most = n_allowed(problem)
    for found in handed:
        if not 1 <= len(found.points) <= most:
            raise ValueError(
                f"A method must hand out 1 to {most} points for {problem!r}, got "
                f"{len(found.points)}."
            )
    decided = match(handed)
    columns = COLUMNS[problem]
    values = judge.values(decided)[:, columns]
    within = {
        f"{bound:g}": _rounded(
            judge.values(np.concatenate([np.asarray(h.within[bound]) for h in handed])[None])[
                0, columns
            ]
        )
        for bound in handed[0].within
    }
    return {
        "hypervolume": round(score(values, judge.constant_error), 6),
        "n_points": len(decided),
        "n_constant": int((np.ptp(decided.astype(int), axis=1) == 0).sum()),
        "points": [_rounded(row) for row in np.unique(values, axis=0)],
        "within": within,
    }


def best_scores(name: str, constant_error: float) -> Mapping[str, float]:
    """Scores of the best decisions of a synthetic table, without reading the attribute."""
    return {p: round(score(v, constant_error), 6) for p, v in best_values(name).items()}


def _rounded(values: NDArray[np.float64]) -> list[float]:
    return [round(float(value), 5) for value in values]
