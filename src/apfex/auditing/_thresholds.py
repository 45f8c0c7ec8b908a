"""The same rates and gaps, had the scores been cut elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from apfex.auditing._counts import ScoreCounts
from apfex.auditing._levels import Level, quotient
from apfex.auditing._settings import AuditSettings
from apfex.metrics import CRITERIA, effective_counts
from apfex.rates import RATES, RateName

THRESHOLDS = (
    "threshold",
    "criterion",
    "by",
    "gap",
    "lowest",
    "lowest_rate",
    "highest",
    "highest_rate",
)
"""Columns of the gaps over all thresholds."""


def threshold_gaps(
    scores: ScoreCounts, levels: Sequence[Level], settings: AuditSettings
) -> pd.DataFrame:
    """A row per threshold, criterion and level; no intervals (audit one threshold for those)."""
    frames = []
    for criterion in settings.criteria:
        for level in levels:
            found = [_gaps(scores, level, rate, settings.min_count) for rate in CRITERIA[criterion]]
            best = found[0]
            for other in found[1:]:  # the larger one; NaN where either is
                larger = ~(best["gap"] >= other["gap"]) & ~best["gap"].isna()
                best = best.where(~larger, other)
            best.insert(0, "threshold", scores.thresholds)
            best.insert(1, "criterion", criterion)
            best.insert(2, "by", level.by)
            frames.append(best)
    return pd.concat(frames, ignore_index=True)


def threshold_rates(
    scores: ScoreCounts, levels: Sequence[Level], rates: Sequence[RateName]
) -> pd.DataFrame:
    """A row per threshold, rate and group."""
    frames = []
    for of in rates:
        for level in levels:
            values, _ = _rates(scores, level, of)
            t, k = values.shape
            columns = {
                "threshold": np.repeat(scores.thresholds, k),
                "by": level.by,
                "group": np.tile(np.array(level.names, dtype=object), t),
                "of": of,
                "rate": values.ravel(),
            }
            frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def _rates(scores: ScoreCounts, level: Level, of: RateName) -> tuple[np.ndarray, np.ndarray]:
    """Rates [t, k], and the rows that they rest on, effective ones where there are weights."""
    above, below = (np.array(part, dtype=np.float64) for part in _coefficients(of))
    sums = level.add_up(scores.sums)
    numerator, denominator = sums @ above, sums @ below
    rows = denominator
    if scores.squares is not None:
        rows = effective_counts(numerator, denominator, level.add_up(scores.squares) @ below)[1]
    return quotient(numerator, denominator), rows


def _gaps(scores: ScoreCounts, level: Level, of: RateName, min_count: float) -> pd.DataFrame:
    rates, rows = _rates(scores, level, of)
    counts = (rows >= min_count) & ~np.isnan(rates)
    low, high = np.where(counts, rates, np.inf), np.where(counts, rates, -np.inf)
    names = np.array(level.names, dtype=object)
    frame = pd.DataFrame(
        {
            "gap": high.max(1) - low.min(1),
            "lowest": names[low.argmin(1)],
            "lowest_rate": low.min(1),
            "highest": names[high.argmax(1)],
            "highest_rate": high.max(1),
        }
    )
    return frame.where(pd.Series(counts.sum(1) >= 2), np.nan)


def _coefficients(of: RateName) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return RATES[of].numerator, RATES[of].denominator
