"""Figures of the rows that chose a point, which flatter it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from apfex.front import Point


@final
@dataclass(frozen=True, eq=False)
class Compared:
    """A gap between groups with enough rows, and how many these are."""

    gap: float
    groups: int


def compared_gaps(point: Point, min_count: float) -> dict[str, Compared]:
    """Gaps of the rows that chose, counted as an audit counts them.

    The search counts every group that has a row. A criterion that cannot be estimated among groups
    of ``min_count`` rows is missing here.
    """
    found = {name: point.widest(name, min_count=min_count) for name in point.gaps}
    return {
        name: Compared(rates.gap, int(rates.counted.any(0).sum()))
        for name, rates in found.items()
        if rates.gap == rates.gap
    }


def describe_choosing(point: Point, compared: Mapping[str, Compared]) -> dict[str, Any]:
    """Figures of the rows that chose; ``compared`` is a gap without groups of too few rows."""
    names = ("gap", "lower", "upper", "noise_floor", "confidence")
    return {
        "rows": point.n_rows,
        "error": point.error,
        "balanced_error": point.balanced_error,
        "gaps": {
            name: {
                **{key: getattr(gap, key) for key in names},
                "compared": compared[name].gap if name in compared else None,
            }
            for name, gap in point.gaps.items()
        },
        "worst_group": point.worst_group,
        "worst_group_accuracy": point.worst_group_accuracy,
        "share_favored": point.share_favored,
        "levelled_down": list(point.levelled_down),
        "member": point.member,
        "epoch": point.epoch,
    }
