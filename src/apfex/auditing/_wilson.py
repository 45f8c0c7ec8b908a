"""Intervals of one rate, and of the difference of two."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm


def wilson_interval(
    rates: np.ndarray, totals: np.ndarray, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval; NaN where there are no rows.

    Notes
    -----
    The rates p whose score ``|rate - p| / sqrt(p (1 - p) / n)`` is at most z.
    """
    z2 = norm.ppf(0.5 + confidence / 2) ** 2
    n = np.where(totals > 0, totals, np.nan)
    centre = (rates + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 / n * (rates * (1 - rates) + z2 / (4 * n))) / (1 + z2 / n)
    # Rounding must not leave the rate itself, 0 or 1, outside.
    return np.clip(centre - half, 0, rates), np.clip(centre + half, rates, 1)


def difference_interval(
    now: np.ndarray,
    now_totals: np.ndarray,
    earlier: np.ndarray,
    earlier_totals: np.ndarray,
    confidence: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Newcombe's interval of ``now - earlier`` for two independent samples."""
    low, high = wilson_interval(now, now_totals, confidence)
    low_before, high_before = wilson_interval(earlier, earlier_totals, confidence)
    change = now - earlier
    return (
        change - np.hypot(now - low, high_before - earlier),
        change + np.hypot(high - now, earlier - low_before),
    )
