"""The point that ``explore`` chose: why, and what to know before it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apfex.cli._screen import shown


def describe_choice(described: Mapping[str, Any]) -> str:
    """Which point, and by which figures; these are not those of the table.

    Parameters
    ----------
    described : mapping
        From :func:`apfex.report.describe_front`.
    """
    place = described["chosen"]
    chosen = described["points"][place]["validation"]["gaps"]
    gaps = {name: gap["gap"] for name, gap in chosen.items()}
    bounds = described["settings"]["max_gap"]
    said = ", ".join(f"{name} {limit:g}" for name, limit in bounds.items())
    if all(gaps[name] <= limit for name, limit in bounds.items()):
        why = f"the most accurate of those within --max-gap ({said})"
        return f"point {place}: {why} on the rows that chose it"
    found = ", ".join(f"{name} {gaps[name]:.3f}" for name in bounds)
    return (
        f"point {place}: none is within --max-gap ({said}) on the rows that chose it; there this "
        f"one is nearest ({found})"
    )


def side_effects(described: Mapping[str, Any]) -> list[str]:
    """Gaps of the chosen point on the rows held back that are a reason to look twice.

    Those that are clearly above the tolerance, by their verdict, and those that are clearly
    larger than those of the point that it is compared with: the lower end of the interval is
    above the gap there.
    """
    chosen, start = (described["points"][described[key]] for key in ("chosen", "baseline"))
    crossing, tolerance = described["levels"][-1]["by"], described["settings"]["tolerance"]
    before = {gap["criterion"]: gap["gap"] for gap in start["gaps"] if gap["by"] == crossing}
    found = []
    for gap in chosen["gaps"]:
        if gap["by"] != crossing or gap["gap"] is None:
            continue
        old = before[gap["criterion"]]
        is_above = gap["verdict"] == "violation"
        has_grown = old is not None and chosen is not start and gap["lower"] > old
        if not (is_above or has_grown):
            continue
        reasons = [f"clearly above the tolerance {tolerance:g}"] if is_above else []
        if old is not None and chosen is not start and gap["gap"] > old:
            word = "clearly larger" if has_grown else "larger"
            reasons.append(f"{word} than at point {start['point']} ({old:.3f})")
        found.append(
            f"Point {chosen['point']} has a {gap['criterion']} gap of {gap['gap']:.3f} by "
            f"{shown(crossing, 60)} on the rows held back, {' and '.join(reasons)}."
        )
    return found
