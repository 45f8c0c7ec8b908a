"""The front in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apfex.cli._screen import Screen, shown


def show_front(described: Mapping[str, Any], screen: Screen) -> None:
    """A row per point, on the rows held back; gaps are those of the crossing, with intervals.

    Parameters
    ----------
    described : mapping
        From :func:`apfex.report.describe_front`.
    """
    crossing = described["levels"][-1]["by"]
    criteria = [criterion["key"] for criterion in described["criteria"]]
    confidence = described["settings"]["confidence"]
    screen.say()
    screen.say(
        f"Front of {len(described['points'])} points by {shown(crossing, 60)}, on "
        f"{described['rows']:,} rows held back, {100 * confidence:g}% intervals"
    )
    rows = [_row(point, criteria, crossing, described) for point in described["points"]]
    columns = ["point", "error", *(f"{name} gap" for name in criteria), "note"]
    screen.table(columns, rows, left=("note", *columns[2:]))


def _row(
    point: Mapping[str, Any], criteria: list[str], crossing: str, described: Mapping[str, Any]
) -> list[str]:
    gaps = {gap["criterion"]: gap for gap in point["gaps"] if gap["by"] == crossing}
    return [
        str(point["point"]),
        f"{point['error']:.3f}",
        *(_gap(gaps[name]) for name in criteria),
        note_of(point, described),
    ]


def _gap(gap: Mapping[str, Any]) -> str:
    if gap["gap"] is None:
        return "not estimable"
    return f"{gap['gap']:.3f} ({gap['lower']:.2f} to {gap['upper']:.2f})"


def note_of(point: Mapping[str, Any], described: Mapping[str, Any]) -> str:
    """What to know before anything else."""
    notes = []
    if point["point"] == described["chosen"]:
        notes.append("chosen")
    if point["trivial"]:
        notes.append("trivial")
    if point["levelled_down"]:
        notes.append("levelled down")
    return ", ".join(notes)


def brief(described: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The figures of every point, without those of every group."""
    names = ("point", "error", "error_lower", "error_upper", "trivial", "levelled_down", "gaps")
    return [{name: point[name] for name in names} for point in described["points"]]
