"""A front as a table of HTML, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apfex.markup import html_section, html_table, in_html

if TYPE_CHECKING:
    from apfex.front._front import Front
    from apfex.front._point import Point
    from apfex.metrics import GapInterval

_MOST = 32


def front_as_html(front: Front, used: int | None = None) -> str:
    """Points by rising error, with gaps, intervals and what speaks against them.

    Parameters
    ----------
    front : Front
    used : int, optional
        The point that ``predict`` uses, which is marked.
    """
    name = front.by.replace("_", " ")
    columns = ["point", name, *(f"{c} gap" for c in front[0].gaps), "gain", "remarks"]
    rows = [_row(place, point, place == used) for place, point in enumerate(front[:_MOST])]
    whose = (
        "" if front.favorable_label is None else f"; favorable: {in_html(front.favorable_label)}"
    )
    caption = (
        f"Front of {len(front)} points, measured on the validation rows{whose}; {in_html(name)} "
        f"of {front.reference}: {front.constant_error:.3f}"
    )
    left_out = f"{len(front) - _MOST} more in .to_frame()" if len(front) > _MOST else ""
    return html_section("apfex-front", html_table(caption, columns, rows), left_out)


def _row(place: int, point: Point, used: bool) -> list[str]:
    gain = "-" if point.gain_share != point.gain_share else f"{point.gain_share:.0%}"
    remarks = ["in use"] * used + ["trivial"] * point.trivial
    remarks += ["nearly constant"] * (point.near_constant and not point.trivial)
    remarks += ["no group gains"] * bool(point.levelled_down)
    gaps = [_interval(gap) for gap in point.gaps.values()]
    return [str(place), f"{point.loss:.3f}", *gaps, gain, ", ".join(remarks)]


def _interval(found: GapInterval) -> str:
    if found.gap != found.gap:
        return "not estimable"
    return f"{found.gap:.3f} ({found.lower:.3f} to {found.upper:.3f})"
