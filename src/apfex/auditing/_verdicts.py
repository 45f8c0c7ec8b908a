"""Gaps, tested: interval, noise floor, p-values and verdict of each criterion on each level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, final, get_args

import numpy as np
import pandas as pd

from apfex.auditing._levels import RateCounts
from apfex.metrics import GapInterval, gap_interval

Verdict = Literal["violation", "inconclusive", "not estimable", "within tolerance"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""The most alarming first: what is not known comes before what is fine."""
_DRAWS, _MOST_DRAWS = 1999, 50_000
_FINE_P = 0.004
"""What an adjusted p-value must be able to fall to."""


@final
@dataclass(frozen=True, eq=False)
class Tested:
    """One row of the gaps: what is compared, and how sure it is."""

    criterion: str
    attributes: tuple[str, ...]  # of the level
    tables: tuple[RateCounts, ...]  # one for each rate of the criterion
    approximate: bool
    interval: GapInterval

    @property
    def by(self) -> str:
        """Name of the level."""
        return self.tables[0].level.by

    @property
    def successes(self) -> np.ndarray:
        """Effective counts [c, k] of all rates and classes that are compared."""
        return np.concatenate([np.where(t.counted, t.successes, 0) for t in self.tables])

    @property
    def totals(self) -> np.ndarray:
        """Effective denominators [c, k], 0 for a group that does not count."""
        return np.concatenate([np.where(t.counted, t.totals, 0) for t in self.tables])

    def at(self, confidence: float) -> GapInterval:
        """The interval at another confidence."""
        return _interval(self.tables, confidence, self.approximate)


def tested_gap(
    criterion: str, tables: Sequence[RateCounts], confidence: float, approximate: bool
) -> Tested:
    """Test the largest gap over the rates of a criterion, and their classes.

    Several rates, or classes, are tested together and corrected for it: see
    :func:`apfex.metrics.gap_interval`. A criterion of two rates needs both of them.
    """
    interval = _interval(tables, confidence, approximate)
    return Tested(criterion, tables[0].level.attributes, tuple(tables), approximate, interval)


def _interval(tables: Sequence[RateCounts], confidence: float, approximate: bool) -> GapInterval:
    if not all(table.usable.any() for table in tables):
        nan, k = math.nan, max(int(table.counted.sum(1).max()) for table in tables)
        return GapInterval(nan, nan, nan, nan, nan, nan, nan, confidence, k, approximate)
    found = gap_interval(
        np.concatenate([np.where(table.counted, table.successes, 0) for table in tables]),
        np.concatenate([np.where(table.counted, table.totals, 0) for table in tables]),
        confidence=confidence,
        n_draws=max(_DRAWS, math.ceil(5 / (1 - confidence))),
        approximate=approximate,
    )
    return replace(found, gap=max(table.gap for table in tables if table.usable.any()))


def with_fine_p_value(one: Tested, n_rows: int) -> Tested:
    """The same, with draws enough for its p-value to stand among those of ``n_rows`` rows.

    A p-value from 1,999 draws is 1/2000 at least; multiplied by the number of rows it could never
    be small, however large the gap. Where no draw comes near, more are made.
    """
    p_value = one.interval.p_value
    n_tables = int(sum(table.usable.sum() for table in one.tables))
    n_draws = min(_MOST_DRAWS, math.ceil(n_tables * n_rows / _FINE_P)) - 1
    if not p_value <= 2 * n_tables / (_DRAWS + 1) or n_draws <= _DRAWS:
        return one
    found = gap_interval(
        one.successes, one.totals, confidence=one.interval.confidence, n_draws=n_draws
    )
    return replace(one, interval=replace(one.interval, p_value=found.p_value))


def verdict_of(lower: float, upper: float, tolerance: float) -> Verdict:
    """What an interval says of a tolerance."""
    if math.isnan(lower) or math.isnan(upper):
        return "not estimable"
    if lower > tolerance:
        return "violation"
    return "within tolerance" if upper < tolerance else "inconclusive"


def surely_above(asked: Sequence[tuple[Tested, float]], confidence: float) -> list[bool]:
    """Which gaps exceed their bounds, of all that are asked about together.

    Notes
    -----
    Holm's procedure: of m gaps those stand whose lower end exceeds the bound even with ``1 -
    confidence`` divided by m; if r do, the others are looked at with r fewer, and so on. The
    chance that any gap that is within its bound is called above it is then at most ``1 -
    confidence``, however many are asked about.
    """
    above = [False] * len(asked)
    left = sum(not math.isnan(one.interval.lower) for one, _ in asked)
    candidates = [at for at, (one, bound) in enumerate(asked) if one.interval.lower > bound]
    while candidates:
        stricter = 1 - (1 - confidence) / left
        found = [at for at in candidates if asked[at][0].at(stricter).lower > asked[at][1]]
        if not found:
            break
        for at in found:
            above[at] = True
        candidates = [at for at in candidates if not above[at]]
        left -= len(found)
    return above


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values; NaN are left out and stay NaN.

    The r-th smallest of m is multiplied by m - r + 1; none is below one before it.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * factors))
    return adjusted.tolist()


def ends_of(one: Tested) -> pd.DataFrame:
    """The groups with the lowest and the highest rate, where these lie farthest apart."""
    found: list[tuple[float, dict[str, object]]] = []
    for table in one.tables:
        names = np.array(table.level.names, dtype=object)
        for row in np.flatnonzero(table.usable):
            rates = np.where(table.counted[row], table.rates[row], np.nan)
            ends = [int(np.nanargmin(rates)), int(np.nanargmax(rates))]
            columns = {"group": names[ends], "of": table.of, "rate": rates[ends]}
            found.append((float(np.ptp(rates[ends])), columns))
    if math.isnan(one.interval.gap) or not found:
        return pd.DataFrame({"group": [], "of": [], "rate": []})
    return pd.DataFrame(max(found, key=lambda pair: pair[0])[1])


def gaps_frame(tested: Sequence[Tested], tolerance: float) -> pd.DataFrame:
    """A row per criterion and level."""
    intervals = [one.interval for one in tested]
    return pd.DataFrame(
        {
            "criterion": [one.criterion for one in tested],
            "by": [one.by for one in tested],
            "gap": [one.gap for one in intervals],
            "lower": [one.lower for one in intervals],
            "upper": [one.upper for one in intervals],
            "noise_floor": [one.noise_floor for one in intervals],
            "p_value": [one.p_value for one in intervals],
            "p_adjusted": holm([one.p_value for one in intervals]),
            "verdict": [verdict_of(one.lower, one.upper, tolerance) for one in intervals],
        }
    )
