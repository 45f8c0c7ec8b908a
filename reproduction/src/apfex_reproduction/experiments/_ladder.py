"""Points of our front, chosen on validation rows only: by a rule, or under a bound on a gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apfex_reproduction.experiments._rows import gap_in

Point = Mapping[str, Mapping[str, Any]]
"""Figures of one model on "validation" and on "test" rows."""

BOUNDS = (0.0, 0.005, *(at / 100 for at in range(1, 21)), 0.25, 0.3, 0.4, 1.0)
"""Bounds tried for a gap, fixed beforehand."""
ACCURACY_SPENT = 0.02
"""What "fairest" may lose on validation rows."""


def choose_by_rule(points: Sequence[Point], rule: str, by: str) -> int:
    """Place of the point nearest to no error and no gaps; or the fairest of the most accurate.

    "Fairest" loses at most 0.02 of the front's own best accuracy. Constant points are taken only
    where there is nothing else.
    """
    deciding = _deciding(points)
    if rule == "nearest":
        best = min(deciding, key=lambda point: sum(v * v for v in _costs(point, by)))
    else:
        least = min(_costs(point, by)[0] for point in deciding)
        near = [
            point for point in deciding if _costs(point, by)[0] <= least + ACCURACY_SPENT + 1e-9
        ]
        best = min(near, key=lambda point: (max(_costs(point, by)[1:]), _costs(point, by)[0]))
    return next(place for place, point in enumerate(points) if point is best)


def choose_within(points: Sequence[Point], name: str, by: str, bound: float) -> Point:
    """The most accurate point whose gap is within the bound; the fairest where none is."""
    points = _deciding(points)

    def gap(point: Point) -> float:
        return gap_of(point, name, by)

    def error(point: Point) -> float:
        return _costs(point, by)[0]

    within = [point for point in points if gap(point) <= bound]
    if within:
        return min(within, key=lambda point: (error(point), gap(point)))
    return min(points, key=lambda point: (gap(point), error(point)))


def gap_of(point: Point, name: str, by: str) -> float:
    """A gap on validation rows; the worst there is where it cannot be estimated."""
    gap = gap_in(point["validation"], name, by)
    return 1.0 if gap is None else gap


def _costs(point: Point, by: str) -> tuple[float, float, float]:
    error = 1 - point["validation"]["accuracy"]
    return error, gap_of(point, "dp", by), gap_of(point, "tpr", by)


def _deciding(points: Sequence[Point]) -> Sequence[Point]:
    return [point for point in points if not point["validation"]["constant"]] or points
