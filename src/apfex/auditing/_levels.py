"""Levels of an audit (each attribute, each pair, the crossing), and rates on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, final

import numpy as np

from apfex.auditing._counts import Counts
from apfex.groups import Groups, grouping_name
from apfex.metrics import effective_counts
from apfex.rates import RATES, RateName


@final
@dataclass(frozen=True, eq=False)
class Level:
    """Groups of some of the attributes, and the group of each cell of the crossing."""

    attributes: tuple[str, ...]
    names: tuple[str, ...]  # k names
    codes: np.ndarray  # [cells]

    @property
    def by(self) -> str:
        """Name of the level, as in ``sex x race``."""
        return grouping_name(self.attributes)

    def add_up(self, masses: np.ndarray) -> np.ndarray:
        """Masses of the groups [..., k, 4] from those of the cells [..., cells, 4]."""
        if len(self.names) == len(self.codes) and (np.diff(self.codes) == 1).all():
            return masses
        order = np.argsort(self.codes, kind="stable")
        starts = np.searchsorted(self.codes[order], np.arange(len(self.names)))
        return np.add.reduceat(masses[..., order, :], starts, axis=-2)


def everyone(groups: Groups) -> Level:
    """All rows as one group."""
    return Level((), ("all rows",), np.zeros(len(groups), dtype=np.int64))


def level_of(groups: Groups, attributes: tuple[str, ...]) -> Level:
    """The groups of some attributes."""
    return Level(attributes, groups.parent(attributes).names, groups.parent_codes(attributes))


def levels_of(groups: Groups) -> list[Level]:
    """Each attribute, each pair, the full crossing; the crossing is the last."""
    return [level_of(groups, subset) for subset in _subsets(groups.attributes)]


def _subsets(attributes: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    q = len(attributes)
    for size in sorted({1, min(2, q), q}):
        yield from combinations(attributes, size)


@final
@dataclass(frozen=True, eq=False)
class RateCounts:
    """One rate of the groups of a level; arrays have shape [c, k], c classes."""

    of: RateName
    level: Level
    classes: tuple[Any, ...]  # c labels, or () where there is one row without a class
    count: np.ndarray  # [k] rows of the group
    numerator: np.ndarray
    denominator: np.ndarray
    successes: np.ndarray  # effective counts
    totals: np.ndarray
    counted: np.ndarray  # whether the group counts for the gap

    @property
    def rates(self) -> np.ndarray:
        """Numerator over denominator; NaN without rows."""
        return quotient(self.numerator, self.denominator)

    @property
    def gap(self) -> float:
        """Largest gap over the classes that have two groups which count; NaN where none has."""
        rates = np.where(self.counted, self.rates, np.nan)[self.usable]
        return float((np.nanmax(rates, 1) - np.nanmin(rates, 1)).max()) if len(rates) else np.nan

    @property
    def usable(self) -> np.ndarray:
        """Which classes have two groups that count, shape [c]."""
        return self.counted.sum(1) >= 2


def quotient(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Above over below; NaN where below is 0."""
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), np.nan)


def rate_counts(counts: Counts, level: Level, of: RateName, min_count: float) -> RateCounts:
    """Count a rate on a level."""
    numerator, denominator = _sums(counts.sums, counts, level, of)
    successes, totals = numerator.astype(np.int64), denominator.astype(np.int64)
    if counts.squares is not None:
        squares = _sums(counts.squares, counts, level, of)[1]
        successes, totals = effective_counts(numerator, denominator, squares)
    return RateCounts(
        of=of,
        level=level,
        classes=counts.classes if of != "accuracy" else (),
        count=level.add_up(counts.rows)[0, :, 2:].sum(-1).astype(np.int64),
        numerator=numerator,
        denominator=denominator,
        successes=successes,
        totals=totals,
        counted=(totals >= min_count) & (denominator > 0),
    )


def _sums(
    masses: np.ndarray, counts: Counts, level: Level, of: RateName
) -> tuple[np.ndarray, np.ndarray]:
    """Numerator and denominator [c, k] of a rate."""
    added = level.add_up(masses)
    if of == "accuracy" and counts.classes:  # one share, whatever the class
        return added[..., 1].sum(0)[None], added[0, :, 2:].sum(-1)[None]
    above, below = (np.array(part, dtype=np.float64) for part in _coefficients(of))
    return np.maximum(added @ above, 0), np.maximum(added @ below, 0)


def _coefficients(of: RateName) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return RATES[of].numerator, RATES[of].denominator
