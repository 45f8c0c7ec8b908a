"""The worst-off groups, and the attribute that drives each."""

from __future__ import annotations

import numpy as np
import pandas as pd

from apfex.auditing._counts import Counts
from apfex.auditing._levels import Level, everyone, level_of, quotient
from apfex.auditing._wilson import wilson_interval
from apfex.metrics import effective_counts


def worst_groups(counts: Counts, level: Level, confidence: float) -> pd.DataFrame:
    """Every group of a level, by how few favorable decisions it surely gets.

    Notes
    -----
    Groups are ranked by the upper end of the Wilson interval of their rate: among hundreds of
    small groups the lowest rate itself is mostly chance. The driver is the attribute in which the
    group differs from people who share all its others, where those fare better most clearly:
    smallest ``(p - q) / sqrt(s_p^2 + s_q^2)`` with smoothed rates. It describes decisions, and
    explains nothing.
    """
    above, below, totals = _favored(counts, level)
    rates = quotient(above, below)
    low, high = wilson_interval(rates, totals, confidence)
    overall_above, overall_below, _ = _favored(counts, everyone(counts.groups))
    driver, others = _drivers(counts, level)
    frame = pd.DataFrame(
        {
            "group": np.array(level.names, dtype=object),
            "count": level.add_up(counts.rows)[0, :, 2:].sum(-1).astype(np.int64),
            "favored": rates,
            "lower": low,
            "upper": high,
            "difference": rates - quotient(overall_above, overall_below),
            "driver": driver,
            "others": others,
        }
    )
    order = np.lexsort((rates, high))  # NaN last
    return frame.iloc[order].reset_index(drop=True)


def _favored(counts: Counts, level: Level) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Favorable decisions, all decisions and effective sizes of the groups, shape [k] each."""
    sums = level.add_up(counts.favored)
    above, below = sums[:, :2].sum(1), sums[:, 2:].sum(1)
    squares = counts.favored_squares
    if squares is None:
        return above, below, below.astype(np.int64)
    return above, below, effective_counts(above, below, level.add_up(squares)[:, 2:].sum(1))[1]


def _drivers(counts: Counts, level: Level) -> tuple[np.ndarray, np.ndarray]:
    """The driving attribute of each group, or None, and the rate of its others."""
    above, below, totals = _favored(counts, level)
    best = np.zeros(len(level.names))
    driver, others = np.full(len(best), None, dtype=object), np.full(len(best), np.nan)
    for name in level.attributes:
        rest = tuple(other for other in level.attributes if other != name)
        parent = level_of(counts.groups, rest) if rest else everyone(counts.groups)
        codes = np.zeros(len(best), dtype=np.int64)
        codes[level.codes] = parent.codes
        sums = [part[codes] for part in _favored(counts, parent)]
        rate = quotient(sums[0] - above, sums[1] - below)
        score = _score(quotient(above, below), totals, rate, sums[2] - totals)
        leads = score < best
        best = np.where(leads, score, best)
        driver, others = np.where(leads, name, driver), np.where(leads, rate, others)
    return driver, others


def _score(p: np.ndarray, n: np.ndarray, q: np.ndarray, m: np.ndarray) -> np.ndarray:
    known = (n > 0) & (m > 0) & ~np.isnan(q)
    n, m = np.where(known, n, 1), np.where(known, m, 1)
    p, q = (np.where(known, p, 0) * n + 1) / (n + 2), (np.where(known, q, 0) * m + 1) / (m + 2)
    error = np.sqrt(p * (1 - p) / (n + 2) + q * (1 - q) / (m + 2))
    return np.where(known, (p - q) / error, 0.0)
