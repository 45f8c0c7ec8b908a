"""Many cells: the few groupings of them that models and rules learn in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import final

import numpy as np
import torch

from apfex.chunks import JointTargets
from apfex.front._cell_effects import CellLabels, pairs_that_matter
from apfex.groups import Groups

MOST_CELLS = 64
"""Up to so many cells models and rules know each of them."""
_LEVEL_ROWS, _MOST_LEVELS = 100, 32
"""Rows that a level of an attribute needs for a group of its own, and the most that have one."""
_CELL_ROWS, _MOST_ALONE = 250, 24
"""The same for a cell."""
_PAIR_GROUPS = 48
"""Groups of all pairs of attributes together."""
_N_BANDS = 8
"""Bands of cells with like labels."""


@final
@dataclass(frozen=True, eq=False)
class CellGroupings:
    """Groupings of the cells of a crossing: by attributes, by pairs of them, and by like labels.

    A cell with a handful of rows tells nothing of its own, but the levels that it is made of do:
    what a rule adds to the score of a cell is a mean of what it adds to its groups, one of each
    grouping. So models and rules have as many groups as there are levels, not as there are cells.

    Attributes
    ----------
    cells : int64 array of shape [k, s]
        The groups that each cell is in; those of all groupings are numbered one after the other.
    sizes : tuple of s numbers
        Groups of each grouping, two at least.
    attributes : tuple of s tuples of names
        What each grouping is by; the last one, of no attribute, has large cells alone, and others
        in bands with like labels.

    Examples
    --------
    >>> from apfex.groups import make_groups
    >>> rng = np.random.default_rng(0)
    >>> crossing = make_groups({"age": rng.integers(0, 50, 5000), "sex": rng.integers(0, 2, 5000)})
    >>> strata = crossing.codes * 2 + rng.integers(0, 2, 5000)
    >>> found = CellGroupings.of(crossing, np.bincount(strata, minlength=200).reshape(100, 2))
    >>> found.attributes, found.cells.shape
    ((('age',), ('sex',), ()), (100, 3))
    """

    cells: np.ndarray
    sizes: tuple[int, ...]
    attributes: tuple[tuple[str, ...], ...]

    @staticmethod
    def of(crossing: Groups | None, counts: np.ndarray) -> CellGroupings | None:
        """Group the cells by rows of each cell and label [k, c]; None where the cells are few."""
        if crossing is None or len(crossing) <= MOST_CELLS:
            return None
        labels = CellLabels.of(counts)
        pairs = pairs_that_matter(crossing, labels, _PAIR_GROUPS)
        by = [(name,) for name in crossing.attributes] + pairs
        levels = {names: crossing.parent_codes(names) for names in by}
        found: dict[tuple[str, ...], np.ndarray] = {
            names: _largest(groups, labels.rows, _LEVEL_ROWS, _MOST_LEVELS)
            for names, groups in levels.items()
            if groups.max() > 0
        }
        found[()] = _alone_or_in_bands(labels, labels.by_effects([*levels.values()]))
        if not found[()].max():
            del found[()]
        sizes = tuple(int(groups.max()) + 1 for groups in found.values())
        starts = accumulate(sizes, initial=0)
        numbered = [groups + start for groups, start in zip(found.values(), starts, strict=False)]
        return CellGroupings(np.stack(numbered, 1), sizes, tuple(found))

    @staticmethod
    def targets(many: CellGroupings | None, shape: tuple[int, int]) -> JointTargets:
        """What models learn of rows with so many cells and classes."""
        if many is None:
            return JointTargets(shape)
        return JointTargets((many.n_groups, shape[1]), torch.from_numpy(many.cells), many.sizes)

    @property
    def n_groups(self) -> int:
        """Groups of all groupings."""
        return sum(self.sizes)

    def parents(self, groupings: Sequence[Groups]) -> list[np.ndarray]:
        """For each grouping whose gaps count, the place [groups] of our groups in it; -1: in none.

        For an attribute the groups of its levels. For the crossing all groups: the rates of
        attributes and bands lie within those of the cells, so that their gap is that of the cells
        as far as these can be told apart.
        """
        if len(groupings) == 1 and len(groupings[0]) == len(self.cells):
            return [np.arange(self.n_groups)]
        found = []
        for grouping in groupings:
            place = self.attributes.index(grouping.attributes)
            start, size = sum(self.sizes[:place]), self.sizes[place]
            parent = np.full(self.n_groups, -1)
            parent[start : start + size] = np.arange(size)
            found.append(parent)
        return found


def _largest(codes: np.ndarray, rows: np.ndarray, least: int, most: int) -> np.ndarray:
    """Group [k] of cells with codes [k] and rows [k]: those with many rows alone, others together.

    What is left over joins the smallest, if it is too small for a group and two others remain.
    """
    sizes = np.bincount(codes, weights=rows)
    order = np.argsort(-sizes, kind="stable")[:most]
    alone = np.sort(order[(sizes[order] >= least) | (order == order[0])])
    groups = np.full(len(sizes), len(alone))
    groups[alone] = np.arange(len(alone))
    left_over = groups == len(alone)
    if len(alone) > 1 and sizes[left_over].sum() < least:
        groups[left_over] = sizes[alone].argmin()
    return groups[codes]


def _alone_or_in_bands(labels: CellLabels, expected: np.ndarray) -> np.ndarray:
    """Group [k] of each cell: large ones alone, then bands of others by their expected labels."""
    rows = labels.rows
    order = np.argsort(-rows, kind="stable")[:_MOST_ALONE]
    alone = np.sort(order[rows[order] >= _CELL_ROWS])
    groups = np.full(len(rows), -1)
    groups[alone] = np.arange(len(alone))
    others = groups < 0
    shares = labels.shrunken(expected)
    groups[others] = len(alone) + _bands(shares[others], rows[others])
    return groups


def _bands(shares: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Band [k] of each cell, by rising share, with about as many rows in each of them."""
    total = int(rows.sum())
    n = max(1, min(_N_BANDS, total // _LEVEL_ROWS))
    order = np.argsort(shares, kind="stable")
    middle = rows[order].cumsum() - rows[order] / 2
    bands = np.empty(len(rows), dtype=np.int64)
    bands[order] = np.minimum(n - 1, middle * n // max(1, total))
    return np.unique(bands, return_inverse=True)[1]
