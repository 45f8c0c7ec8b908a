"""Whose decisions differ between two points, by the favorable label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.stats import binom

from apfex.groups import Groups
from apfex.report._groupings import Level


@final
@dataclass(frozen=True, eq=False)
class Change:
    """Rows of the k groups of a level that gain, and that lose, the favorable label."""

    gained: np.ndarray
    lost: np.ndarray
    count: np.ndarray

    @property
    def net_share(self) -> np.ndarray:
        """Gained less lost, of all rows of the group."""
        return (self.gained - self.lost) / self.count

    def direction(self, confidence: float) -> np.ndarray:
        """1 gains, -1 loses, 0 where a coin might have decided who of the changed ones gains.

        Notes
        -----
        The exact sign test of the rows that changed (McNemar's), two-sided, group by group.
        """
        fewer, changed = np.minimum(self.gained, self.lost), self.gained + self.lost
        p_value = np.minimum(1, 2 * binom.cdf(fewer, changed, 0.5))
        return np.where(p_value <= 1 - confidence, np.sign(self.gained - self.lost), 0)

    def tally(self, confidence: float) -> dict[str, int]:
        """Rows that gain and lose, and groups that gain, lose or show no clear change."""
        direction = self.direction(confidence)
        return {
            "gained": int(self.gained.sum()),
            "lost": int(self.lost.sum()),
            "groups_gain": int((direction > 0).sum()),
            "groups_lose": int((direction < 0).sum()),
            "groups_same": int((direction == 0).sum()),
        }

    def take(self, kept: np.ndarray, confidence: float) -> dict[str, Any]:
        """Some of the groups, as plain columns."""
        return {
            "gained": self.gained[kept],
            "lost": self.lost[kept],
            "net_share": self.net_share[kept],
            "direction": self.direction(confidence)[kept],
        }


def changes_between(
    before: np.ndarray, after: np.ndarray, crossing: Groups, levels: list[Level]
) -> dict[str, Change]:
    """Changes on each level, from whether rows are favored before and after, bool [n]."""
    k = len(crossing)
    gained = np.bincount(crossing.codes[after & ~before], minlength=k)
    lost = np.bincount(crossing.codes[before & ~after], minlength=k)
    found = {}
    for level in levels:
        codes, size = crossing.parent_codes(level.attributes), len(level.names)
        sums = [np.bincount(codes, part, size) for part in (gained, lost, crossing.counts)]
        found[level.by] = Change(*(part.astype(np.int64) for part in sums))
    return found
