"""Gaps, tested: interval, noise floor, p-values and verdict of each criterion and grouping."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, final, get_args

import numpy as np
import pandas as pd

from apfex.groups import grouping_name
from apfex.metrics import GapInterval, GroupRates, interval_of_rates

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
    tables: tuple[GroupRates, ...]  # one for each rate of the criterion
    shrunken: tuple[np.ndarray, ...]  # their shrunken rates [c, k]; no verdict uses them
    interval: GapInterval

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those of the grouping."""
        return self.tables[0].counts.groups.attributes

    @property
    def by(self) -> str:
        """Name of the grouping."""
        return grouping_name(self.attributes)

    @property
    def n_groups(self) -> int:
        """Groups of the grouping that occur."""
        return len(self.tables[0].counts.groups)

    @property
    def groups_compared(self) -> int:
        """Groups that count for every rate of the criterion."""
        return int(np.all([table.counted.any(0) for table in self.tables], 0).sum())

    def at(self, confidence: float) -> GapInterval:
        """The interval at another confidence."""
        return _interval(self.tables, confidence)


def tested_gap(
    criterion: str, measured: Sequence[tuple[GroupRates, np.ndarray]], confidence: float
) -> Tested:
    """Test the largest gap over the rates of a criterion, and their classes.

    ``measured`` holds each rate with its shrunken rates. Several rates, or classes, are tested
    together and corrected for it: see :func:`apfex.metrics.gap_interval`. A criterion of two rates
    needs both of them.
    """
    tables, shrunken = zip(*measured, strict=True)
    return Tested(criterion, tables, shrunken, _interval(tables, confidence))


def _interval(tables: Sequence[GroupRates], confidence: float) -> GapInterval:
    n_draws = max(_DRAWS, math.ceil(5 / (1 - confidence)))
    return interval_of_rates(tables, confidence=confidence, n_draws=n_draws)


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
    found = interval_of_rates(one.tables, confidence=one.interval.confidence, n_draws=n_draws)
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
    if math.isnan(one.interval.gap):
        return pd.DataFrame({"group": [], "of": [], "rate": []})
    table = GroupRates.widest(one.tables)
    rates = table.counted_rates[table.usable]
    rates = rates[int(np.argmax(np.nanmax(rates, 1) - np.nanmin(rates, 1)))]
    ends = [int(np.nanargmin(rates)), int(np.nanargmax(rates))]
    names = np.array(table.counts.names, dtype=object)
    return pd.DataFrame({"group": names[ends], "of": table.rate, "rate": rates[ends]})


def gaps_frame(tested: Sequence[Tested], tolerance: float) -> pd.DataFrame:
    """A row per criterion and grouping, with the groups at its ends and how many are compared."""
    intervals = [one.interval for one in tested]
    ends = [_lowest_and_highest(one) for one in tested]
    frame = pd.DataFrame(
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
    names = ("lowest", "lowest_rate", "highest", "highest_rate")
    for name, column in zip(names, zip(*ends, strict=True), strict=True):
        frame[name] = list(column)
    frame["groups_compared"] = [one.groups_compared for one in tested]
    frame["groups"] = [one.n_groups for one in tested]
    return frame


def _lowest_and_highest(one: Tested) -> tuple[str | None, float, str | None, float]:
    ends = ends_of(one)
    if ends.empty:
        return None, math.nan, None, math.nan
    low, high = ends.to_dict("records")
    return low["group"], low["rate"], high["group"], high["rate"]


def worst_first(gaps: pd.DataFrame) -> pd.DataFrame:
    """Rows of gaps by verdict, the most alarming first, then by the lower end and the gap.

    Examples
    --------
    >>> verdicts = ["within tolerance", "not estimable", "violation"]
    >>> gaps = pd.DataFrame({"verdict": verdicts, "lower": 0.0, "gap": 0.0})
    >>> worst_first(gaps)["verdict"].tolist()
    ['violation', 'not estimable', 'within tolerance']
    """
    rank = [VERDICTS.index(verdict) for verdict in gaps["verdict"]]
    order = gaps.assign(_rank=rank).sort_values(
        ["_rank", "lower", "gap"], ascending=[True, False, False], kind="stable"
    )
    return order.drop(columns="_rank")
