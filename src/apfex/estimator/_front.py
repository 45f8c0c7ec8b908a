"""The front: points that a user can look at, choose and use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final, overload

from torch import nn

from apfex.metrics import GapInterval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@final
@dataclass(frozen=True, eq=False)
class Point:
    """One model of the front; all figures are of the rows that chose it, and flattering for it.

    Attributes
    ----------
    error, balanced_error : float
    gaps : mapping from criterion to GapInterval
        Gap, 95% interval and noise floor; of the worst rate and grouping of the criterion.
    worst_group : str
        The group with the lowest accuracy.
    worst_group_accuracy : float
    share_positive : float
        Share of rows that get the favorable label.
    trivial : bool
        One class gets (nearly) all rows, or the model is no better than such a one.
    levelled_down : tuple of str
        Groups that lost favorable decisions against the most accurate point while no group
        gained any; empty where somebody gained.
    member, epoch : int
        Where it comes from.
    """

    error: float
    balanced_error: float
    gaps: Mapping[str, GapInterval]
    worst_group: str
    worst_group_accuracy: float
    share_positive: float
    trivial: bool
    levelled_down: tuple[str, ...]
    member: int
    epoch: int
    module: nn.Module = field(repr=False)

    def exceeds(self, bounds: Mapping[str, float], by_upper_end: bool = False) -> float:
        """By how much the worst criterion exceeds its bound; at most 0 where all are met."""
        values = {
            name: interval.upper if by_upper_end else interval.gap
            for name, interval in self.gaps.items()
        }
        return max((values[name] - bound for name, bound in bounds.items()), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """One row of a table."""
        row: dict[str, Any] = {"error": self.error, "balanced_error": self.balanced_error}
        for name, interval in self.gaps.items():
            row[f"{name}_gap"] = interval.gap
            row[f"{name}_lower"], row[f"{name}_upper"] = interval.lower, interval.upper
            row[f"{name}_noise_floor"] = interval.noise_floor
        return row | {
            "worst_group": self.worst_group,
            "worst_group_accuracy": self.worst_group_accuracy,
            "share_positive": self.share_positive,
            "trivial": self.trivial,
            "levelled_down": ", ".join(self.levelled_down),
            "member": self.member,
            "epoch": self.epoch,
        }


@final
class Front(Sequence[Point]):
    """Points by rising error; a sequence that prints as a table."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._points = sorted(points, key=lambda point: point.error)

    @overload
    def __getitem__(self, index: int) -> Point: ...
    @overload
    def __getitem__(self, index: slice) -> list[Point]: ...
    def __getitem__(self, index: int | slice) -> Point | list[Point]:
        """Return a point by its place."""
        return self._points[index]

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self._points)

    def __iter__(self) -> Iterator[Point]:
        """Iterate by rising error."""
        return iter(self._points)

    def __repr__(self) -> str:
        """Show the figures that matter most."""
        frame = self.to_frame()
        shown = [c for c in frame.columns if c in ("error", "trivial") or c.endswith("_gap")]
        return f"Front of {len(self)} points, measured on the rows that chose them\n" + frame[
            shown
        ].to_string(float_format="{:.3f}".format)

    def to_frame(self) -> pd.DataFrame:
        """One row per point, by rising error; measured on the rows that chose the points."""
        import pandas as pd

        frame = pd.DataFrame([point.to_dict() for point in self])
        frame.attrs["measured_on"] = "validation rows, which chose the points"
        return frame

    def choose(self, bounds: Mapping[str, float], by_upper_end: bool = False) -> int | None:
        """Most accurate non-trivial point within the bounds, or None."""
        for place, point in enumerate(self):
            if not point.trivial and point.exceeds(bounds, by_upper_end) <= 0:
                return place
        return None

    def nearest(self, bounds: Mapping[str, float], by_upper_end: bool = False) -> int:
        """The non-trivial point that exceeds the bounds least (of all, if all are trivial)."""
        places = [p for p in range(len(self)) if not self[p].trivial] or list(range(len(self)))
        return min(places, key=lambda p: (self[p].exceeds(bounds, by_upper_end), self[p].error))

    def plot(self, criterion: str | None = None, ax: Axes | None = None) -> Axes:
        """Error against the gap of a criterion, with intervals and the noise floor."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError("plot needs matplotlib: pip install 'apfex[plot]'.") from error
        name = criterion or next(iter(self[0].gaps))
        if name not in self[0].gaps:
            raise ValueError(f"criterion must be one of {list(self[0].gaps)}, got {name!r}.")
        ax = plt.subplots()[1] if ax is None else ax
        intervals = [point.gaps[name] for point in self]
        gaps = [interval.gap for interval in intervals]
        below = [max(interval.gap - interval.lower, 0) for interval in intervals]
        above = [max(interval.upper - interval.gap, 0) for interval in intervals]
        errors = [point.error for point in self]
        ax.errorbar(gaps, errors, xerr=[below, above], fmt="o", alpha=0.7, label="95% interval")
        floor = max(interval.noise_floor for interval in intervals)
        ax.axvline(floor, linestyle=":", color="grey", label="expected gap at parity")
        ax.set_xlabel(f"{name} gap")
        ax.set_ylabel("error")
        ax.set_title("Front, measured on the rows that chose it")
        ax.legend()
        return ax
