"""Caveats: gaps of the chosen point that are a reason to look twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from apfex.plain import printable


@final
@dataclass(frozen=True)
class Caveat:
    """A gap of the chosen point, on the test rows, that is a reason to look twice.

    Attributes
    ----------
    point : int
    criterion, by : str
        Of the gap, on the crossing of all sensitive columns.
    gap, tolerance : float
    is_above : bool
        Whether it is clearly above the tolerance, by its verdict.
    has_grown : bool
        Whether it is clearly larger than at the point that it is compared with: the lower end of
        the interval is above the gap there.
    start : int
        The point that it is compared with.
    start_gap : float or None
        The gap there; None where it is not estimable, or the point is the same.
    """

    point: int
    criterion: str
    by: str
    gap: float
    tolerance: float
    is_above: bool
    has_grown: bool
    start: int
    start_gap: float | None

    def __str__(self) -> str:
        """In words."""
        reasons = [f"clearly above the tolerance {self.tolerance:g}"] if self.is_above else []
        if self.start_gap is not None and self.gap > self.start_gap:
            word = "clearly larger" if self.has_grown else "larger"
            reasons.append(f"{word} than at point {self.start} ({self.start_gap:.3f})")
        return (
            f"Point {self.point} has a {self.criterion} gap of {self.gap:.3f} by "
            f"{printable(self.by, 60)} on the test rows, {' and '.join(reasons)}."
        )


def find_caveats(described: Mapping[str, Any]) -> tuple[Caveat, ...]:
    """Gaps that are clearly above the tolerance, or clearly larger than at the starting point."""
    chosen, start = (described["points"][described[key]] for key in ("chosen", "baseline"))
    crossing, tolerance = described["levels"][-1]["by"], described["settings"]["tolerance"]
    before = {gap["criterion"]: gap["gap"] for gap in start["gaps"] if gap["by"] == crossing}
    found = []
    for gap in chosen["gaps"]:
        if gap["by"] != crossing or gap["gap"] is None:
            continue
        old = None if chosen is start else before[gap["criterion"]]
        caveat = Caveat(
            point=chosen["point"],
            criterion=gap["criterion"],
            by=crossing,
            gap=gap["gap"],
            tolerance=tolerance,
            is_above=gap["verdict"] == "violation",
            has_grown=old is not None and gap["lower"] > old,
            start=start["point"],
            start_gap=old,
        )
        found += [caveat] if caveat.is_above or caveat.has_grown else []
    return tuple(found)
