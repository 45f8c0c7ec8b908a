"""What every threshold and margin of a reject option would do, from sorted probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

LOW, HIGH = 0.05, 0.95
"""Least and largest threshold."""


def cuts(threshold: np.ndarray, margin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities above which a row of a lower-rate and of a higher-rate group is selected.

    Inside ``|p - t| <= m`` lower-rate groups are selected and higher-rate ones are not; outside,
    ``p > t`` decides. So the first are selected from ``t - m`` on, and the others above ``t + m``.
    """
    return np.nextafter(threshold - margin, -1.0), threshold + margin


def margins(threshold: np.ndarray, share: np.ndarray) -> np.ndarray:
    """A margin as a share [0, 1] of the widest that keeps the band within [0, 1]."""
    return share * np.minimum(threshold, 1 - threshold)


@final
@dataclass(frozen=True, eq=False)
class Band:
    """Probabilities, labels, groups and weights of the rows by which a band is chosen.

    Attributes
    ----------
    p, y, groups, weight : arrays of shape [n]
    lower : bool array of shape [k]
        Groups whose rate is below the overall rate.
    criterion : {"dp", "tpr"}
    """

    p: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    weight: np.ndarray
    lower: np.ndarray
    criterion: str

    def values(self, threshold: np.ndarray, margin: np.ndarray) -> np.ndarray:
        """Error, gap, and share of rows whose decision the attribute decides, [e, 3]."""
        low, high = cuts(threshold, margin)
        k = len(self.lower)
        chosen, sizes = np.zeros((len(low), k, 2)), np.zeros((k, 2))
        for group in range(k):
            for label in (0, 1):
                rows = (self.groups == group) & (self.y == label)
                cut = low if self.lower[group] else high
                chosen[:, group, label] = _mass_above(self.p[rows], self.weight[rows], cut)
                sizes[group, label] = self.weight[rows].sum()
        wrong = chosen[:, :, 0].sum(1) + (sizes[:, 1] - chosen[:, :, 1]).sum(1)
        inside = _mass_above(self.p, self.weight, low) - _mass_above(self.p, self.weight, high)
        total = self.weight.sum()
        return np.stack([wrong / total, self._gap(chosen, sizes), inside / total], 1)

    def _gap(self, chosen: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Largest minus smallest rate over the groups that have one."""
        if self.criterion == "tpr":
            chosen, sizes = chosen[:, :, 1], sizes[:, 1]
        else:
            chosen, sizes = chosen.sum(2), sizes.sum(1)
        known = sizes > 0
        rates = chosen[:, known] / sizes[known]
        return np.ptp(rates, axis=1)


def _mass_above(p: np.ndarray, weight: np.ndarray, cut: np.ndarray) -> np.ndarray:
    """Weight of the rows with p above each cut."""
    order = np.argsort(p, kind="stable")
    above = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
    return above[np.searchsorted(p[order], cut, side="right")]
