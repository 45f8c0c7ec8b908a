"""The worst-off groups, and the attribute that drives each."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import norm

from apfex.auditing._counts import Counts
from apfex.auditing._levels import Level, RateCounts, everyone, level_of, quotient
from apfex.auditing._shrink import shrunken_rates
from apfex.auditing._wilson import wilson_interval
from apfex.metrics import effective_counts


def worst_groups(counts: Counts, level: Level, confidence: float) -> pd.DataFrame:
    """Every group of a level, by how few favorable decisions it surely gets.

    Notes
    -----
    Groups are ranked by their shrunken rate: among hundreds of small ones the lowest raw rate is
    mostly chance, and the lowest upper end of an interval belongs to a large one. The driver is
    the attribute in which the group differs from people who share all its others, where those
    fare better most clearly: smallest ``(p - q) / sqrt(s_p^2 + s_q^2)`` with smoothed rates
    (Agresti and Caffo), of the attributes where this interval of ``p - q`` and the raw difference
    lie below 0. It describes decisions, and explains nothing.
    """
    own = _favored(counts, level)
    rates = own.rates[0]
    low, high = wilson_interval(rates, own.totals[0], confidence)
    driver, others = _drivers(counts, own, confidence)
    frame = pd.DataFrame(
        {
            "group": np.array(level.names, dtype=object),
            "count": own.count,
            "favored": rates,
            "lower": low,
            "upper": high,
            "difference": rates - _favored(counts, everyone(counts.groups)).rates[0],
            "driver": driver,
            "others": others,
        }
    )
    order = np.lexsort((rates, _shrunken(counts, own)))  # NaN last
    return frame.iloc[order].reset_index(drop=True)


def count_worse_off(counts: Counts, level: Level, confidence: float) -> int:
    """Groups whose interval, corrected for their number, lies below the rate of all rows."""
    own, all_rows = _favored(counts, level), _favored(counts, everyone(counts.groups))
    stricter = 1 - (1 - confidence) / len(level.names)
    high = wilson_interval(own.rates, own.totals, stricter)[1]
    return int((high < all_rows.rates).sum())


def _favored(counts: Counts, level: Level) -> RateCounts:
    """Favorable decisions among all decisions, as one rate; all groups count."""
    sums = level.add_up(counts.favored)[None]
    above, below = sums[..., :2].sum(-1), sums[..., 2:].sum(-1)
    successes, totals = above.astype(np.int64), below.astype(np.int64)
    squares = counts.favored_squares
    if squares is not None:
        squared = level.add_up(squares)[None, :, 2:].sum(-1)
        successes, totals = effective_counts(above, below, squared)
    return RateCounts(
        of="dp",
        level=level,
        classes=(),
        count=level.add_up(counts.rows)[0, :, 2:].sum(-1).astype(np.int64),
        numerator=above,
        denominator=below,
        successes=successes,
        totals=totals,
        counted=below > 0,
    )


def _shrunken(counts: Counts, own: RateCounts) -> np.ndarray:
    groups = counts.groups
    parents = {name: _favored(counts, level_of(groups, (name,))) for name in own.level.attributes}
    return shrunken_rates(own, _favored(counts, everyone(groups)), parents)[0]


def _drivers(counts: Counts, own: RateCounts, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """The driving attribute of each group, or None, and the rate of its others."""
    level, k = own.level, len(own.level.names)
    best = np.zeros(k)
    driver, others = np.full(k, None, dtype=object), np.full(k, np.nan)
    for name in level.attributes:
        rest = tuple(other for other in level.attributes if other != name)
        parent = level_of(counts.groups, rest) if rest else everyone(counts.groups)
        codes = np.zeros(k, dtype=np.int64)
        codes[level.codes] = parent.codes
        above = _favored(counts, parent)
        rate, totals = _without(above, codes, own)
        score = _score(own.rates[0], own.totals[0], rate, totals, confidence)
        leads = score < best
        best = np.where(leads, score, best)
        driver, others = np.where(leads, name, driver), np.where(leads, rate, others)
    return driver, others


def _without(
    parent: RateCounts, codes: np.ndarray, own: RateCounts
) -> tuple[np.ndarray, np.ndarray]:
    """Rate and effective size of a group's parent without the group itself."""
    above = np.maximum(parent.numerator[0, codes] - own.numerator[0], 0)
    below = np.maximum(parent.denominator[0, codes] - own.denominator[0], 0)
    rate = np.minimum(quotient(above, below), 1)  # rounding of weights
    return rate, np.maximum(parent.totals[0, codes] - own.totals[0], 0)


def _score(
    p: np.ndarray, n: np.ndarray, q: np.ndarray, m: np.ndarray, confidence: float
) -> np.ndarray:
    """How clearly p lies below q, as a negative number; 0 where it does not."""
    known = (n > 0) & (m > 0) & ~np.isnan(q)
    n, m = np.where(known, n, 1), np.where(known, m, 1)
    p, q = np.where(known, p, 0), np.where(known, q, 0)
    below = known & (p < q)  # smoothing alone would set a few rows apart
    p, q = (p * n + 1) / (n + 2), (q * m + 1) / (m + 2)
    score = (p - q) / np.sqrt(p * (1 - p) / (n + 2) + q * (1 - q) / (m + 2))
    return np.where(below & (score < -norm.ppf(0.5 + confidence / 2)), score, 0.0)
