"""What attributes, alone and in pairs, tell of the labels of the cells that they make up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np

from apfex.groups import Groups

_SWEEPS = 10
"""Of fitting the effects one after the other; more change nothing that counts."""
_PRIOR_ROWS = 200.0
"""With so many rows the labels of a level, or a cell, count as much as what is known without."""
_SURE = 4.0
"""Standard deviations by which the labels of a pair of attributes must differ beyond chance."""


@final
@dataclass(frozen=True, eq=False)
class CellLabels:
    """Rows of each cell, and how many of them have the most common label.

    Attributes
    ----------
    rows, hits : arrays of shape [k]

    Examples
    --------
    >>> found = CellLabels.of(np.array([[1, 0], [1, 2]]))
    >>> found.rows, found.hits
    (array([1, 3]), array([1, 1]))
    """

    rows: np.ndarray
    hits: np.ndarray

    @staticmethod
    def of(counts: np.ndarray) -> CellLabels:
        """Those of rows by cell and label [k, c]."""
        return CellLabels(counts.sum(1), counts[:, counts.sum(0).argmax()])

    @property
    def share(self) -> float:
        """Of the most common label."""
        return float(self.hits.sum() / self.rows.sum())

    def by_effects(self, groupings: Sequence[np.ndarray]) -> np.ndarray:
        """Share [k] that is expected in each cell, as a sum of effects of its groups.

        ``groupings`` hold the group of each cell. Effects are shrunken to nothing, the less rows
        a group has (ridge, fitted by sweeps over the groupings).
        """
        expected = np.full(len(self.rows), self.share)
        effects = [np.zeros(int(groups.max()) + 1) for groups in groupings]
        sizes = [np.bincount(groups, weights=self.rows) for groups in groupings]
        for _ in range(_SWEEPS):
            for groups, effect, n in zip(groupings, effects, sizes, strict=True):
                expected -= effect[groups]
                left = np.bincount(groups, weights=self.hits - self.rows * expected)
                effect[:] = left / (n + _PRIOR_ROWS)
                expected += effect[groups]
        return expected

    def shrunken(self, expected: np.ndarray) -> np.ndarray:
        """Share [k] in each cell, between its own labels and what is expected of it."""
        return (self.hits + _PRIOR_ROWS * expected) / (self.rows + _PRIOR_ROWS)

    def surprise(self, groups: np.ndarray, expected: np.ndarray, n_free: int) -> float:
        """By how many standard deviations groups [k] of cells differ from what is expected.

        Pearson's statistic, less its mean by chance, ``n_free``, over its spread.
        """
        left = np.bincount(groups, weights=self.hits - self.rows * expected)
        n = np.bincount(groups, weights=self.rows)
        variance = self.share * (1 - self.share)
        found = float((left[n > 0] ** 2 / n[n > 0]).sum() / max(variance, 1e-12))
        return (found - n_free) / (2 * n_free) ** 0.5


def pairs_that_matter(
    crossing: Groups, labels: CellLabels, most_groups: int
) -> list[tuple[str, str]]:
    """Pairs of attributes whose labels are no sum of effects of the two, the surest first.

    As many as have no more groups than ``most_groups`` together.

    Examples
    --------
    >>> from apfex.groups import make_groups
    >>> a, b, c = np.random.default_rng(0).integers(0, 2, (3, 4000))
    >>> crossing = make_groups({"a": a, "b": b, "c": c})
    >>> counts = np.bincount(crossing.codes * 2 + (a ^ b), minlength=2 * len(crossing))
    >>> labels = CellLabels.of(counts.reshape(-1, 2))
    >>> pairs_that_matter(crossing, labels, 32)
    [('a', 'b')]
    """
    alone = {name: crossing.parent_codes(name) for name in crossing.attributes}
    several = [name for name, groups in alone.items() if groups.max() > 0]
    expected = labels.by_effects([*alone.values()])
    found = []
    for first, second in combinations(several, 2):
        groups = crossing.parent_codes((first, second))
        n_free = int(alone[first].max() * alone[second].max())
        sure = labels.surprise(groups, expected, n_free)
        found.append((sure, int(groups.max()) + 1, (first, second)))
    chosen, n_groups = [], 0
    for sure, size, pair in sorted(found, key=lambda one: -one[0]):
        if sure > _SURE and n_groups + size <= most_groups:
            chosen.append(pair)
            n_groups += size
    return chosen
