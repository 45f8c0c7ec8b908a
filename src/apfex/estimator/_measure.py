"""From decisions on the validation rows to the points of a front."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from apfex.estimator._criteria import Criteria
from apfex.estimator._front import Front, Point
from apfex.front import non_dominated
from apfex.groups import Groups
from apfex.metrics import (
    GapInterval,
    NotEstimableWarning,
    accuracy,
    balanced_accuracy,
    gap_inference,
    group_rates,
)
from apfex.rates import GroupIndex


@final
@dataclass(frozen=True, eq=False)
class Held:
    """Rows that choose: encoded inputs, labels, groups."""

    x: Tensor
    y: np.ndarray
    groupings: Sequence[Groups]
    crossing: Groups
    sample_weight: np.ndarray | None
    n_classes: int

    @property
    def is_multiclass(self) -> bool:
        """Whether there are more than two classes."""
        return self.n_classes > 2


@final
@dataclass(frozen=True, eq=False)
class Candidate:
    """A member at an epoch, by its decisions on the held rows."""

    member: int
    epoch: int
    decisions: np.ndarray
    values: np.ndarray
    """Error and gaps, all minimised."""
    module: nn.Module


def candidate_values(
    decisions: np.ndarray, held: Held, criteria: Criteria, balanced: bool
) -> np.ndarray:
    """Error and hard gaps of decisions [b, n], shape [b, 1 + criteria]."""
    score = balanced_accuracy if balanced else accuracy
    errors = [1 - score(held.y, row, sample_weight=held.sample_weight) for row in decisions]
    soft = torch.from_numpy(decisions)
    if held.is_multiclass:
        hard = (soft.unsqueeze(1) == torch.arange(held.n_classes)[:, None]).double()
    else:
        hard = soft.double()
    weight = None if held.sample_weight is None else torch.from_numpy(held.sample_weight)
    indexes = [GroupIndex.of(grouping) for grouping in held.groupings]
    gaps = criteria.gaps(hard, torch.from_numpy(held.y), indexes, weight, held.is_multiclass)
    return np.column_stack([errors, gaps.numpy()])


def make_front(
    candidates: Sequence[Candidate],
    held: Held,
    criteria: Criteria,
    favorable: int,
    n_points: int,
) -> Front:
    """Keep the non-dominated, distinct candidates, thin them, and measure what is left."""
    values = np.stack([candidate.values for candidate in candidates])
    kept = np.flatnonzero(non_dominated(values))
    kept = kept[np.unique(values[kept], axis=0, return_index=True)[1]]
    kept = kept[np.argsort(values[kept, 0])]
    if len(kept) > n_points:
        kept = kept[np.linspace(0, len(kept) - 1, n_points).round().astype(int)]
    chosen = [candidates[index] for index in kept]
    base = _favorable_rates(chosen[0].decisions, held, favorable)
    return Front([_point(candidate, held, criteria, favorable, base) for candidate in chosen])


def _point(
    candidate: Candidate, held: Held, criteria: Criteria, favorable: int, base: np.ndarray
) -> Point:
    decisions, weight = candidate.decisions, held.sample_weight
    rates = group_rates(
        None, (decisions == held.y).astype(int), rate="dp", sensitive_features=held.crossing
    )
    worst = rates["rate"].idxmin()
    change = _favorable_rates(decisions, held, favorable) - base
    lost = change < -0.005
    names = np.array(held.crossing.names)
    return Point(
        error=1 - accuracy(held.y, decisions, sample_weight=weight),
        balanced_error=1 - balanced_accuracy(held.y, decisions, sample_weight=weight),
        gaps={name: _interval(name, decisions, held, criteria) for name in criteria.names},
        worst_group=str(rates["group"][worst]),
        worst_group_accuracy=float(rates["rate"][worst]),
        share_positive=float(np.average(decisions == favorable, weights=weight)),
        trivial=is_trivial(held.y, decisions, held.n_classes),
        levelled_down=() if (change > 0.005).any() else tuple(names[lost].tolist()),
        member=candidate.member,
        epoch=candidate.epoch,
        module=candidate.module,
    )


def is_trivial(y: np.ndarray, decisions: np.ndarray, n_classes: int) -> bool:
    """One class for all rows, or balanced accuracy not above a constant's by more than .02."""
    if len(np.unique(decisions)) == 1:
        return True
    present, counts = np.unique(y, return_counts=True)
    recalls = np.array([(decisions[y == label] == label).mean() for label in present])
    spread = np.sqrt((recalls * (1 - recalls) / counts).sum()) / len(present)
    return bool(recalls.mean() + 1.645 * spread <= 1 / n_classes + 0.02)


def _interval(name: str, decisions: np.ndarray, held: Held, criteria: Criteria) -> GapInterval:
    """The interval of the largest gap among the rates and groupings of a criterion."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotEstimableWarning)
        for grouping in held.groupings:
            for rate in criteria.rates_of(name):
                found.append(
                    gap_inference(
                        held.y,
                        decisions,
                        rate=rate,
                        sensitive_features=grouping,
                        sample_weight=held.sample_weight,
                    )
                )
    return max(found, key=lambda interval: np.nan_to_num(interval.gap, nan=-1.0))


def _favorable_rates(decisions: np.ndarray, held: Held, favorable: int) -> np.ndarray:
    codes, k = held.crossing.codes, len(held.crossing)
    counts = np.bincount(codes, minlength=k)
    return np.bincount(codes, decisions == favorable, minlength=k) / np.maximum(counts, 1)
