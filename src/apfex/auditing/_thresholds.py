"""The same rates and gaps, had the scores been cut elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from apfex.auditing._settings import AuditSettings
from apfex.groups import grouping_name
from apfex.metrics import CRITERIA, GroupRates, largest_gap
from apfex.rates import RateName, ScoreCounts

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


def precise_threshold(threshold: float, bits: int) -> float:
    """A threshold as scores of so many bits have it, as numpy compares them with it.

    Examples
    --------
    >>> np.float32(0.7) >= 0.7, float(np.float32(0.7)) >= 0.7
    (np.True_, False)
    >>> float(np.float32(0.7)) >= precise_threshold(0.7, 32)
    True
    """
    kind = {16: np.float16, 32: np.float32}.get(bits, np.float64)
    with np.errstate(over="ignore"):  # beyond the largest of these numbers nobody decides
        return float(kind(threshold))


def threshold_gaps(grouped: Sequence[ScoreCounts], settings: AuditSettings) -> pd.DataFrame:
    """A row per threshold, criterion and grouping; no intervals (audit one threshold for those)."""
    frames = []
    for criterion in settings.criteria:
        for scores in grouped:
            found = [
                _gaps(GroupRates.of(scores.counts, rate, settings.min_count))
                for rate in CRITERIA[criterion]
            ]
            best = found[0]
            for other in found[1:]:  # the larger one; NaN where either is
                larger = ~(best["gap"] >= other["gap"]) & ~best["gap"].isna()
                best = best.where(~larger, other)
            best.insert(0, "threshold", scores.thresholds)
            best.insert(1, "criterion", criterion)
            best.insert(2, "by", _name(scores))
            frames.append(best)
    return pd.concat(frames, ignore_index=True)


def threshold_rates(grouped: Sequence[ScoreCounts], rates: Sequence[RateName]) -> pd.DataFrame:
    """A row per threshold, rate and group."""
    frames = []
    for of in rates:
        for scores in grouped:
            values = GroupRates.of(scores.counts, of).rates
            t, k = values.shape
            columns = {
                "threshold": np.repeat(scores.thresholds, k),
                "by": _name(scores),
                "group": np.tile(np.array(scores.counts.names, dtype=object), t),
                "of": of,
                "rate": values.ravel(),
            }
            frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def _gaps(table: GroupRates) -> pd.DataFrame:
    rates, counted = table.counted_rates, table.counted
    low, high = np.where(counted, rates, np.inf), np.where(counted, rates, -np.inf)
    names = np.array(table.counts.names, dtype=object)
    frame = pd.DataFrame(
        {
            "gap": largest_gap(rates[:, None]).numpy(),
            "lowest": names[low.argmin(1)],
            "lowest_rate": low.min(1),
            "highest": names[high.argmax(1)],
            "highest_rate": high.max(1),
        }
    )
    return frame.where(pd.Series(table.usable), np.nan)


def _name(scores: ScoreCounts) -> str:
    return grouping_name(scores.counts.groups.attributes)
