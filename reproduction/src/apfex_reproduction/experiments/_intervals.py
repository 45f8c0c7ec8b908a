"""Intervals for differences over repeated splits of the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np


@final
@dataclass(frozen=True)
class Interval:
    """A mean and its 95% interval."""

    mean: float
    low: float
    high: float

    @property
    def says(self) -> str:
        """Which side of zero it lies on: "above", "below", or "level" where it covers zero."""
        return "above" if self.low > 0 else "below" if self.high < 0 else "level"

    def __str__(self) -> str:
        """With signs, three decimals."""
        return f"{self.mean:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


def mean_interval(values: Sequence[float], test_share: float) -> Interval:
    """Of a mean over splits, with the correction of Nadeau and Bengio (2003).

    Training parts overlap, so that runs are not independent: the variance of the mean is
    ``(1 / n + test_share) s^2``, ``test_share`` being test rows over training rows, and not
    ``s^2 / n``. No interval can be told of one value; it is then the value itself.

    Examples
    --------
    >>> str(mean_interval([0.01, 0.02, 0.03], 0.15 / 0.7))
    '+0.020 [-0.012, +0.052]'
    """
    found = np.asarray(values, dtype=float)
    spread = float(found.std(ddof=1)) if len(found) > 1 else 0.0
    return _interval(float(found.mean()), spread, len(found), test_share)


def difference_from_print(
    values: Sequence[float], mean: float, spread: float, test_share: float
) -> Interval:
    """Of our mean minus a printed one: the spreads of both count, as the runs are not the same."""
    found = np.asarray(values, dtype=float)
    n = len(found)
    both = float(np.sqrt(found.var(ddof=1) + spread**2 * n / (n - 1))) if n > 1 else spread
    return _interval(float(found.mean()) - mean, both, n, test_share)


def _interval(mean: float, spread: float, n: int, test_share: float) -> Interval:
    from scipy.stats import t

    half = float(t.ppf(0.975, max(n - 1, 1))) * spread * (1 / n + test_share) ** 0.5
    return Interval(mean, mean - half, mean + half)
