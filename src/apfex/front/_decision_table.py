"""What many rules decide for rows that are not in memory: counts by group, label and decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from apfex.front._candidates import Candidate, HasMembers
from apfex.front._criteria import Criteria
from apfex.front._scoring import Scoring
from apfex.groups import Groups
from apfex.metrics import is_trivial_table
from apfex.rates import ConfusionCounts


def count_decisions(
    decisions: np.ndarray, targets: np.ndarray, weight: np.ndarray | None, shape: tuple[int, int]
) -> np.ndarray:
    """Rows, sums of weights and of their squares [3, b, k, c, c] of decisions [b, n].

    The last two axes are label and decision. Without weights there are rows alone, [1, ...].

    Examples
    --------
    >>> decisions, targets = np.array([[0, 1, 1]]), np.array([0, 0, 1])
    >>> count_decisions(decisions, targets, None, (1, 2))[0, 0, 0].tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    (k, c), b = shape, len(decisions)
    keys = ((np.arange(b)[:, None] * (k * c) + targets) * c + decisions).ravel()
    weights = [None] if weight is None else [None, weight, weight**2]
    found = [
        np.bincount(keys, None if w is None else np.tile(w, b), b * k * c * c) for w in weights
    ]
    return np.stack(found).reshape(len(found), b, k, c, c).astype(np.float64)


@final
@dataclass(frozen=True, eq=False)
class CountedRows:
    """Validation rows as counts; decisions on them are tables of :func:`count_decisions`.

    It answers as :class:`~apfex.front._rows.ValidationRows` does, from sums alone.

    Attributes
    ----------
    counts : array of shape [1 or 3, k, c]
        Rows, sums of weights and of squares, by group and label.
    crossing : Groups
        Without rows; everybody where there are no sensitive attributes.
    groupings : sequence of Groups
        Those whose gaps count.
    classes : sequence of labels
    """

    counts: np.ndarray
    crossing: Groups
    groupings: Sequence[Groups]
    classes: Sequence[Any]

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return int(self.counts[0].sum())

    @property
    def n_classes(self) -> int:
        """How many labels there are."""
        return len(self.classes)

    def count(self, decisions: np.ndarray, favorable: int) -> ConfusionCounts:
        """Confusion counts of a table [1 or 3, k, c, c], of the groups of the crossing."""
        table = decisions
        c, weighted = self.n_classes, len(table) > 1
        own = slice(favorable, favorable + 1) if c == 2 else slice(None)
        rows, sums, squares = (_one_against_rest(table[i])[own] for i in _parts(table))
        counted = rows.astype(np.int64)
        return ConfusionCounts(
            groups=self.crossing.take(np.arange(0)),
            rows=counted,
            sums=sums if weighted else counted,
            squares=squares if weighted else None,
            classes=tuple(self.classes) if c > 2 else (),
            favorable=favorable if c > 2 else 1,
            weight=None if weighted else 1.0,
        )

    def errors(self, decisions: np.ndarray) -> tuple[float, float]:
        """Error and balanced error of a table."""
        summed = _sums(decisions[:, None]).sum(1)
        losses = [Scoring(name).losses_of(summed) for name in ("error", "balanced_error")]
        return float(losses[0][0]), float(losses[1][0])

    def constant_losses(self, scoring: Scoring) -> Tensor:
        """Losses [c] of deciding for each class alone."""
        labels = (self.counts[0] if len(self.counts) == 1 else self.counts[1]).sum(0)
        tables = labels[None, :, None] * np.eye(self.n_classes)[:, None, :]
        return scoring.losses_of(tables)

    def values(self, tables: np.ndarray, criteria: Criteria, scoring: Scoring) -> np.ndarray:
        """Loss and gaps [b, 1 + criteria] of tables [1 or 3, b, k, c, c]; NaN: not estimable."""
        sums = _sums(tables)
        losses = scoring.losses_of(sums.sum(1))
        if not criteria.names:
            return losses.unsqueeze(1).numpy()
        counts = torch.from_numpy(_one_against_rest(sums).swapaxes(0, 1).copy())  # [b, c, k, 4]
        if self.n_classes == 2:
            counts = counts[:, 1:]
        parts = []
        for grouping in self.groupings:
            parent = torch.from_numpy(self.crossing.parent_codes(grouping.attributes))
            empty = counts.new_zeros(*counts.shape[:2], len(grouping), 4)
            parts.append(empty.index_add(2, parent, counts))
        row = float(sums[0].sum()) / self.n_rows
        return torch.cat([losses.unsqueeze(1), criteria.gaps_of(parts, row)], 1).numpy()

    def trivial(self, tables: np.ndarray) -> np.ndarray:
        """Which tables [1 or 3, b, k, c, c] are those of a constant, or no better, bool [b]."""
        rows, sums, squares = (tables[i].sum(1) for i in _parts(tables))
        return is_trivial_table(rows, sums, squares)

    def candidates(
        self,
        tables: np.ndarray,
        values: np.ndarray,
        trivial: np.ndarray,
        steps: np.ndarray,
        snapshot: HasMembers,
        ranks: np.ndarray,
    ) -> list[Candidate]:
        """Those with measurable gaps, by their tables."""
        is_finite = np.isfinite(values).all(1) & np.isfinite(ranks).all((0, 2))
        return [
            Candidate(
                int(member),
                int(steps[member]),
                tables[:, member],
                values[member],
                ranks[:, member],
                bool(trivial[member]),
                snapshot,
            )
            for member in np.flatnonzero(is_finite)
        ]


def _parts(table: np.ndarray) -> tuple[int, int, int]:
    return (0, 1, 2) if len(table) > 1 else (0, 0, 0)


def _sums(tables: np.ndarray) -> np.ndarray:
    return tables[_parts(tables)[1]]


def _one_against_rest(table: np.ndarray) -> np.ndarray:
    """Counts [c, ..., k, 4] of each class against the rest, from tables [..., k, c, c]."""
    positives, selected = table.sum(-1), table.sum(-2)
    hits = np.diagonal(table, axis1=-2, axis2=-1)
    everyone = positives.sum(-1, keepdims=True)
    # Differences of sums of weights may be off by rounding.
    false, negatives = np.maximum(selected - hits, 0), np.maximum(everyone - positives, 0)
    stacked = np.stack([false, hits, negatives, positives], -1)  # [..., k, c, 4]
    return np.ascontiguousarray(np.moveaxis(stacked, -2, 0))
