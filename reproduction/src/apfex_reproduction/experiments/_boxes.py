"""Boxes with a heading, names and a remark, and arrows between them; lengths in inches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["heading", "name", "remark"]
_LOOKS: dict[Kind, dict[str, Any]] = {
    "heading": {"fontsize": 9.5, "fontweight": "bold"},
    "name": {"fontsize": 8, "family": "monospace", "color": "#1f4e79"},
    "remark": {"fontsize": 8, "style": "italic", "color": "#333333"},
}
_INK = "#222222"
_LINE = 0.19
"""From one line of text to the next."""
_GAP = 0.06
"""Between an arrow and what is written beside it."""


@final
@dataclass(frozen=True)
class Box:
    """A place in the drawing, by its middle and size, and what is written in it."""

    middle: tuple[float, float]
    size: tuple[float, float]
    heading: str
    names: tuple[str, ...] = ()
    remark: str = ""
    face: str = "white"

    @property
    def x(self) -> float:
        """Its middle."""
        return self.middle[0]

    @property
    def y(self) -> float:
        """Its middle."""
        return self.middle[1]

    @property
    def width(self) -> float:
        """From left to right."""
        return self.size[0]

    @property
    def left(self) -> float:
        """Where it begins."""
        return self.x - self.size[0] / 2

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.x + self.size[0] / 2

    @property
    def top(self) -> float:
        """Its upper edge."""
        return self.y + self.size[1] / 2

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y - self.size[1] / 2


@final
@dataclass(frozen=True)
class Arrow:
    """A way through points, and what travels on it, written above or to the right of ``at``."""

    points: tuple[tuple[float, float], ...]
    label: str
    at: tuple[float, float]
    side: Literal["above", "right"] = "above"


def across(start: Box, end: Box, label: str, part: float = 0.5) -> Arrow:
    """A level arrow from one box to its neighbour, labelled after a part of its way."""
    left_to_right = start.x < end.x
    tail = (start.right if left_to_right else start.left, start.y)
    tip = (end.left if left_to_right else end.right, start.y)
    return Arrow((tail, tip), label, (tail[0] + part * (tip[0] - tail[0]), start.y))


def upright(start: Box, end: Box, label: str, x: float) -> Arrow:
    """An upright arrow from one box to the one above or below it."""
    upwards = start.y < end.y
    tail = start.top if upwards else start.bottom
    tip = end.bottom if upwards else end.top
    return Arrow(((x, tail), (x, tip)), label, (x, (tail + tip) / 2), "right")


def draw_box(ax: Axes, box: Box, *, from_top: bool = False) -> None:
    """Draw a box with its lines in the middle of it, or from its top downwards."""
    from matplotlib.patches import FancyBboxPatch

    ax.add_patch(
        FancyBboxPatch(
            (box.left, box.bottom),
            *box.size,
            boxstyle="round,pad=0,rounding_size=0.08",
            facecolor=box.face,
            edgecolor=_INK,
            linewidth=0.8,
            gid=f"box: {box.heading}",
        )
    )
    lines: list[tuple[str, Kind]] = [(box.heading, "heading")]
    for name in box.names:
        lines.append((name, "name"))
    if box.remark:
        lines.append((box.remark, "remark"))
    first = box.top - 0.2 if from_top else box.y + _LINE * (len(lines) - 1) / 2
    for place, (text, kind) in enumerate(lines):
        write(ax, box.x, first - _LINE * place, text, kind)


def write(ax: Axes, x: float, y: float, text: str, kind: Kind) -> None:
    """Write one line around a point."""
    ax.text(x, y, text, ha="center", va="center", **_LOOKS[kind])


def draw_arrow(ax: Axes, arrow: Arrow) -> None:
    """Draw an arrow and its label beside it."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    ax.add_patch(
        FancyArrowPatch(
            path=Path(np.array(arrow.points)),
            arrowstyle="-|>",
            mutation_scale=9,
            linewidth=1.0,
            color=_INK,
            joinstyle="miter",
            gid=f"arrow: {arrow.label}",
        )
    )
    x, y = arrow.at
    above = arrow.side == "above"
    ax.text(
        x if above else x + _GAP,
        y + _GAP if above else y,
        arrow.label,
        ha="center" if above else "left",
        va="bottom" if above else "center",
        fontsize=8,
        linespacing=1.1,
        gid="label",
    )
