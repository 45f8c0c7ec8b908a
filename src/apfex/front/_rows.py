"""Rows that a front is searched with: which of them learn, and by which points are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from sklearn.utils import _safe_indexing
from torch import Tensor

from apfex.groups import Groups, make_groups
from apfex.models import TrainingRows
from apfex.rates import ConfusionCounts, count_rows
from apfex.tables import stratified_sample


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that a front is searched with; those of weight zero are not among them.

    Attributes
    ----------
    X : table or array of n rows
        The columns that are inputs.
    y : int array of shape [n]
        Codes into ``classes``.
    classes : array of shape [c]
    crossing : Groups or None
        Of all sensitive attributes.
    groupings : sequence of Groups
        Those whose gaps count: the crossing, or each attribute.
    sample_weight : array of shape [n] or None
    """

    X: Any
    y: np.ndarray
    classes: np.ndarray
    crossing: Groups | None
    groupings: Sequence[Groups]
    sample_weight: np.ndarray | None

    def take(self, part: np.ndarray) -> Any:
        """Inputs of some of the rows."""
        return _safe_indexing(self.X, part)

    def training(self, part: np.ndarray, x: Tensor) -> TrainingRows:
        """Some of the rows with their inputs, to learn from."""
        codes = np.empty((len(self.groupings), len(part)), dtype=np.int64)
        for place, grouping in enumerate(self.groupings):
            codes[place] = grouping.codes[part]
        weight = self.sample_weight
        return TrainingRows(
            x=x,
            y=torch.from_numpy(self.y[part]).to(x.device),
            codes=torch.from_numpy(codes).to(x.device),
            n_groups=tuple(len(grouping) for grouping in self.groupings),
            sample_weight=None if weight is None else torch.from_numpy(weight[part]).to(x),
        )

    def validation(self, part: np.ndarray) -> ValidationRows:
        """Labels and groups of some of the rows, to choose by."""
        everybody = make_groups(np.zeros(len(self.y), dtype=np.int64))
        crossing = everybody if self.crossing is None else self.crossing
        weight = self.sample_weight
        return ValidationRows(
            y=self.y[part],
            groupings=[grouping.take(part) for grouping in self.groupings],
            crossing=crossing.take(part),
            sample_weight=None if weight is None else weight[part],
            classes=self.classes.tolist(),
        )


@final
@dataclass(frozen=True, eq=False)
class ValidationRows:
    """Labels, groups and weights of the rows by which points are chosen."""

    y: np.ndarray
    groupings: Sequence[Groups]
    crossing: Groups
    sample_weight: np.ndarray | None
    classes: Sequence[Any]

    @property
    def n_classes(self) -> int:
        """How many labels there are."""
        return len(self.classes)

    @property
    def is_multiclass(self) -> bool:
        """Whether there are more than two classes."""
        return self.n_classes > 2

    @property
    def weight(self) -> np.ndarray:
        """Weights, or ones."""
        return np.ones(len(self.y)) if self.sample_weight is None else self.sample_weight

    def count(self, decisions: np.ndarray, favorable: int) -> ConfusionCounts:
        """Confusion counts of decisions [n], of the groups of the crossing."""
        return count_rows(
            self.y,
            decisions,
            self.crossing,
            self.sample_weight,
            classes=self.classes,
            favorable=favorable,
        )


def strata(rows: Rows) -> np.ndarray:
    """Number of the label within the group of each row."""
    codes = np.zeros(len(rows.y), dtype=np.int64) if rows.crossing is None else rows.crossing.codes
    return codes * len(rows.classes) + rows.y


def split(rows: Rows, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and validation rows, even within each label and group.

    A label within a group has rows in both parts if it has two, and so has every label. The
    only row of a label is for training.
    """
    parts = strata(rows)
    chosen = stratified_sample(parts, fraction, seed, both=(parts, rows.y))
    chosen[np.bincount(rows.y)[rows.y] == 1] = False
    check_enough(rows)
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def deal(parts: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """Fold of each row, from 0 on; even within each of the parts [n]."""
    generator = np.random.default_rng([seed, n_folds])
    order = np.lexsort((generator.random(len(parts)), parts))
    folds = np.empty(len(parts), dtype=np.int64)
    folds[order] = np.arange(len(parts)) % n_folds
    return folds


def check_enough(rows: Rows) -> None:
    """Refuse rows of which none could choose."""
    if np.bincount(rows.y).max() < 2:
        raise ValueError(
            "y must have two rows of a class, one to learn from and one to choose by, got "
            f"n_samples={len(rows.y)} of {len(rows.classes)} classes."
        )
