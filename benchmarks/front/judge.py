"""What points are worth: error and gaps, pooled over folds, and the hypervolume of a front."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rivals.common import GAPS, Point

from apfex.front import hypervolume, non_dominated
from apfex.metrics import accuracy, dp_gap, tpr_gap
from front.tables import Split, make_splits, read_table

WORST_GAP, LEAST_POSITIVES = 0.5, 10
BOUNDS = np.linspace(0.0, WORST_GAP, 26)


@dataclass(frozen=True, eq=False)
class Judge:
    """Error and gaps of decisions on some rows of a table."""

    y: NDArray[np.int64]
    group: NDArray[np.int64]
    tpr_groups: NDArray[np.int64]

    def values(self, rows: NDArray[np.intp], decided: NDArray[Any]) -> tuple[float, float, float]:
        """Error, dp gap, tpr gap; a gap of 1 where fewer than two groups tell."""
        decided = np.asarray(decided).astype(np.int64)
        y, group = self.y[rows], self.group[rows]
        if decided.shape != y.shape or not np.isin(decided, (0, 1)).all():
            raise ValueError(f"A point must hold {len(y)} decisions of 0 or 1 for these rows.")
        known = np.isin(group, self.tpr_groups)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dp = dp_gap(y, decided, sensitive_features=group)
            tpr = (
                tpr_gap(y[known], decided[known], sensitive_features=group[known])
                if known.any()
                else math.nan
            )
        return 1 - accuracy(y, decided), *(1.0 if math.isnan(gap) else gap for gap in (dp, tpr))


def make_judge(name: str, splits: Sequence[Split]) -> Judge:
    data, groups = read_table(name)
    test = np.concatenate([split.test for split in splits])
    positives = np.bincount(groups.codes[test], data.y[test], minlength=len(groups))
    return Judge(data.y, groups.codes, np.flatnonzero(positives >= LEAST_POSITIVES))


def score(values: NDArray[np.float64], constant_error: float) -> float:
    """Hypervolume of (error, gap) as a share of the box."""
    return hypervolume(values, (constant_error, WORST_GAP)) / (constant_error * WORST_GAP)


def judge_points(name: str, seed: int, fronts: Sequence[Sequence[Point]]) -> dict[str, Any]:
    """Everything a record says of the points; one list of points for each fold."""
    splits = make_splits(name, seed)
    judge = make_judge(name, splits)
    test = np.concatenate([split.test for split in splits])
    share = float(judge.y[test].mean())
    constant_error = min(share, 1 - share)
    names = [[point.name for point in front] for front in fronts]
    for found in names:
        if not found or len(set(found)) < len(found):
            raise ValueError("A method must return at least one point, each with its own name.")
    by_name = all(sorted(found) == sorted(names[0]) for found in names)
    by_bound = score_by_bound(judge, splits, fronts, constant_error) if len(splits) > 1 else {}
    points = pool_by_name(judge, splits, fronts) if by_name else []
    scores = score_by_name(points, constant_error) if by_name else by_bound
    constant = [np.ptp(np.asarray(p.test).astype(int)) == 0 for front in fronts for p in front]
    return {
        "hypervolume": scores,
        "hypervolume_by_bound": by_bound,
        "pooled_by": "name" if by_name else "bound",
        "n_points": sum(map(len, fronts)) / len(fronts),
        "n_constant": sum(map(int, constant)) / len(fronts),
        "constant_error": round(constant_error, 6),
        "tpr_groups": len(judge.tpr_groups),
        "points": points,
    }


def pool_by_name(
    judge: Judge, splits: Sequence[Split], fronts: Sequence[Sequence[Point]]
) -> list[dict[str, Any]]:
    """Values of each named point on the validation and on the test rows of all folds."""
    validation = np.concatenate([split.validation for split in splits])
    test = np.concatenate([split.test for split in splits])
    pooled = []
    for name in [point.name for point in fronts[0]]:
        found = [next(point for point in front if point.name == name) for front in fronts]
        chosen_by = judge.values(validation, np.concatenate([p.validation for p in found]))
        scored_by = judge.values(test, np.concatenate([p.test for p in found]))
        pooled.append(
            {
                "name": name,
                "validation": [round(value, 6) for value in chosen_by],
                "test": [round(value, 6) for value in scored_by],
            }
        )
    return pooled


def counting(points: Sequence[dict[str, Any]], gap: str) -> NDArray[np.bool_]:
    """Whether each pooled point counts: non-dominated on validation rows in (error, gap)."""
    validation = np.array([point["validation"] for point in points])
    return non_dominated(validation[:, [0, 1 + GAPS.index(gap)]])


def score_by_name(points: Sequence[dict[str, Any]], constant_error: float) -> dict[str, float]:
    """Score for each gap of the pooled points that count."""
    test = np.array([point["test"] for point in points])
    scores = {}
    for column, gap in enumerate(GAPS, start=1):
        kept = counting(points, gap)
        scores[gap] = round(score(test[kept][:, [0, column]], constant_error), 6)
    return scores


def score_by_bound(
    judge: Judge,
    splits: Sequence[Split],
    fronts: Sequence[Sequence[Point]],
    constant_error: float,
) -> dict[str, float]:
    """Score for each gap of what the folds pick together, one choice for each bound."""
    test = np.concatenate([split.test for split in splits])
    known = [
        np.array([judge.values(split.validation, point.validation) for point in front])
        for split, front in zip(splits, fronts, strict=True)
    ]
    scores = {}
    for column, gap in enumerate(GAPS, start=1):
        picked: dict[tuple[int, ...], tuple[float, ...]] = {}
        for bound in BOUNDS:
            choice = tuple(pick(values[:, 0], values[:, column], bound) for values in known)
            if choice not in picked:
                chosen = zip(choice, fronts, strict=True)
                decided = np.concatenate([front[index].test for index, front in chosen])
                picked[choice] = judge.values(test, decided)
        values = np.array(list(picked.values()))[:, [0, column]]
        scores[gap] = round(score(values, constant_error), 6)
    return scores


def pick(errors: NDArray[np.float64], gaps: NDArray[np.float64], bound: float) -> int:
    """Least error within the bound; least gap where none is within."""
    within = gaps <= bound
    if not within.any():
        return int(np.lexsort((errors, gaps))[0])
    return int(np.where(within, errors, np.inf).argmin())
