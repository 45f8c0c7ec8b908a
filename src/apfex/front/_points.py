"""The front: points that a user can look at, choose and use."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, final, overload

import numpy as np
import torch
from torch import Tensor, nn

from apfex.front._decide import decide, score_in_chunks
from apfex.front._intervals import gap_of, widest_rates
from apfex.metrics import GapInterval, GroupRates
from apfex.rates import ConfusionCounts

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class UnmetBoundWarning(UserWarning):
    """No point of the front that is not trivial is within ``max_gap``; the nearest is used."""


@final
@dataclass(frozen=True, eq=False)
class Point:
    """One model of the front; all figures are of the validation rows, and flatter it.

    Attributes
    ----------
    error, balanced_error : float
    gaps : mapping from criterion to GapInterval
        Gap, 95% interval and noise floor; of the worst rate and grouping of the criterion.
    worst_group : str
        The group with the lowest accuracy.
    worst_group_accuracy : float
    share_favored : float
        Share of rows that get the favorable label.
    trivial : bool
        One class gets (nearly) all rows, or the model is no better than such a one.
    levelled_down : tuple of str
        Groups that lost favorable decisions against the most accurate point while no group
        gained any; empty where somebody gained.
    member, epoch : int
        Where it comes from: the network or rule, and the epoch of its parameters.
    n_rows : int
        Validation rows, by which it was chosen.
    module : nn.Module
    counts : ConfusionCounts
        What it decides for the groups of the crossing; gaps at any confidence, and among groups
        of any least size, follow from them.
    groupings : tuple of attributes
        Those whose gaps count.

    Examples
    --------
    >>> from apfex import APFExClassifier, make_biased
    >>> data = make_biased(n=400, random_state=0)
    >>> clf = APFExClassifier(epochs=2, max_gap=1.0, random_state=0)
    >>> point = clf.fit(data.X, data.y, sensitive_features=data.sensitive).front_[0]
    >>> 0 <= point.error <= 1, list(point.gaps), point.gaps["dp"].upper <= 1
    (True, ['dp'], True)
    """

    error: float
    balanced_error: float
    gaps: Mapping[str, GapInterval]
    worst_group: str
    worst_group_accuracy: float
    share_favored: float
    trivial: bool
    levelled_down: tuple[str, ...]
    member: int
    epoch: int
    n_rows: int
    module: nn.Module = field(repr=False)
    """Takes encoded rows [n, d]; in evaluation mode, on the CPU; our own are in float64."""
    counts: ConfusionCounts = field(repr=False)
    groupings: tuple[tuple[str, ...], ...] = field(repr=False)

    def interval_at(
        self, name: str, confidence: float = 0.95, *, min_count: float = 1
    ) -> GapInterval:
        """The gap of a criterion at any confidence, among groups of ``min_count`` rows."""
        return gap_of(self.counts, name, self.groupings, confidence, min_count)

    def widest(self, name: str, *, min_count: float = 1) -> GroupRates:
        """The rate and the grouping that make the gap of a criterion."""
        return widest_rates(self.counts, name, self.groupings, min_count)

    def bounded(self, name: str, confidence: float | None = None) -> float:
        """Gap of a criterion, or the upper end of its interval at a confidence."""
        if confidence is None:
            return self.gaps[name].gap
        known = confidence == self.gaps[name].confidence
        return (self.gaps[name] if known else self.interval_at(name, confidence)).upper

    def exceeds(self, bounds: Mapping[str, float], confidence: float | None = None) -> float:
        """By how much the worst criterion exceeds its bound; at most 0 where all are met."""
        over = (self.bounded(name, confidence) - bound for name, bound in bounds.items())
        return max(over, default=0.0)

    def describe(self, confidence: float | None = None) -> str:
        """Gaps and error in words."""
        words = "gaps" if confidence is None else f"upper ends of gaps (confidence {confidence:g})"
        gaps = {name: round(self.bounded(name, confidence), 4) for name in self.gaps}
        return f"{words} {gaps} and error {self.error:.4f}"

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
            "share_favored": self.share_favored,
            "trivial": self.trivial,
            "levelled_down": ", ".join(self.levelled_down),
            "member": self.member,
            "epoch": self.epoch,
            "n_rows": self.n_rows,
        }


@final
class Front(Sequence[Point]):
    """Points by rising error; a sequence that prints as a table.

    Parameters
    ----------
    points : sequence of Point
    by : {"error", "balanced_error"}
        The error that ranks them.
    favorable_label : label, optional
        The label whose rates the gaps are of, where there are two.
    dtype : torch.dtype
        What the models count in.

    Examples
    --------
    >>> from apfex import APFExClassifier, make_biased
    >>> data = make_biased(n=400, random_state=0)
    >>> clf = APFExClassifier(epochs=2, max_gap=1.0, random_state=0)
    >>> front = clf.fit(data.X, data.y, sensitive_features=data.sensitive).front_
    >>> len(front) == len(front.to_frame())
    True
    """

    def __init__(
        self,
        points: Sequence[Point],
        by: Literal["error", "balanced_error"] = "error",
        favorable_label: Any = None,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.by, self.favorable_label, self.dtype = by, favorable_label, dtype
        self._points = sorted(points, key=lambda point: getattr(point, by))

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
        shown = [c for c in frame.columns if c in (self.by, "trivial") or c.endswith("_gap")]
        table = frame[shown].round(3).to_string()
        whose = "" if self.favorable_label is None else f"; favorable: {self.favorable_label!r}"
        return f"Front of {len(self)} points, measured on the validation rows{whose}\n{table}"

    def to_frame(self) -> pd.DataFrame:
        """One row per point, by rising error; measured on the validation rows."""
        import pandas as pd

        frame = pd.DataFrame([point.to_dict() for point in self])
        frame.attrs["measured_on"] = "validation rows, which chose the points"
        frame.attrs["favorable_label"] = self.favorable_label
        return frame

    def scores(self, point: int, x: Tensor, groups: Tensor | None = None) -> np.ndarray:
        """Scores of one point for encoded rows: [n] for two classes, else [n, c].

        Parameters
        ----------
        point : int
            Its place.
        x : Tensor of shape [n, d]
        groups : int64 Tensor of shape [n], optional
            Codes of the groups that thresholds differ by; -1 where unknown.
        """
        parts = score_in_chunks([self[point].module], x, groups, self.dtype)
        return np.concatenate([scores for (scores,) in parts])

    def decide(
        self, x: Tensor, groups: Tensor | None = None, *, points: Sequence[int] | None = None
    ) -> np.ndarray:
        """Decisions of all points for encoded rows; models that they share run once.

        Parameters
        ----------
        x, groups
            As for :meth:`scores`.
        points : sequence of int, optional
            Places of those that decide; all by default.

        Returns
        -------
        int array of shape [points, n]
            Codes of classes, those of each point's own scores.
        """
        places = range(len(self)) if points is None else points
        models = [self[place].module for place in places]
        parts = score_in_chunks(models, x, groups, self.dtype)
        return np.concatenate([np.stack([*map(decide, scores)]) for scores in parts], axis=1)

    def choose(self, bounds: Mapping[str, float], confidence: float | None = None) -> int | None:
        """Most accurate non-trivial point within the bounds, or None."""
        for place, point in enumerate(self):
            if not point.trivial and point.exceeds(bounds, confidence) <= 0:
                return place
        return None

    def nearest(self, bounds: Mapping[str, float], confidence: float | None = None) -> int:
        """The non-trivial point that exceeds the bounds least (of all, if all are trivial)."""
        places = [p for p in range(len(self)) if not self[p].trivial] or list(range(len(self)))
        return min(places, key=lambda p: (self[p].exceeds(bounds, confidence), p))

    def first_choice(self, bounds: Mapping[str, float]) -> int:
        """The point that the bounds choose; the nearest, with a warning, where they admit none."""
        place = self.choose(bounds)
        if place is not None:
            return place
        near = self.nearest(bounds)
        if bounds:
            kind = "which is trivial as all are, " if self[near].trivial else ""
            warnings.warn(
                f"No non-trivial point of the front is within max_gap {dict(bounds)}; predict uses "
                f"the nearest, point {near}, {kind}with {self[near].describe()}. Raise max_gap, or "
                "look at front_.",
                UnmetBoundWarning,
                stacklevel=3,
            )
        return near

    def find(self, bounds: Mapping[str, float], confidence: float | None = None) -> int:
        """The point that the bounds choose; an error that names the nearest if there is none."""
        place = self.choose(bounds, confidence)
        if place is None:
            near = self.nearest(bounds, confidence)
            raise ValueError(
                f"max_gap must admit a non-trivial point of the front, got {dict(bounds)}; the "
                f"nearest is point {near} with {self[near].describe(confidence)}: use "
                f"at({near}), or raise max_gap."
            )
        return place

    def plot(self, criterion: str | None = None, ax: Axes | None = None) -> Axes:
        """Error against the gap of a criterion, with intervals and the noise floor."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError("plot needs matplotlib: pip install 'apfex[plot]'.") from error
        names = list(self[0].gaps)
        name = criterion or next(iter(names), "none")
        if name not in names:
            raise ValueError(f"criterion must be one of {names}, got {name!r}.")
        ax = plt.subplots()[1] if ax is None else ax
        for trivial, colour in ((False, "C0"), (True, "C7")):
            points = [point for point in self if point.trivial == trivial]
            self._draw(ax, points, name, colour, "trivial" if trivial else "95% interval")
        floor = max(point.gaps[name].noise_floor for point in self)
        ax.axvline(floor, linestyle=":", color="grey", label="expected gap at parity")
        ax.set(xlabel=f"{name} gap", ylabel=self.by.replace("_", " "))
        ax.set_title("Front, measured on the validation rows")
        ax.legend()
        return ax

    def _draw(self, ax: Axes, points: Sequence[Point], name: str, colour: str, label: str) -> None:
        if not points:
            return
        intervals = [point.gaps[name] for point in points]
        below = [max(interval.gap - interval.lower, 0) for interval in intervals]
        above = [max(interval.upper - interval.gap, 0) for interval in intervals]
        ax.errorbar(
            [interval.gap for interval in intervals],
            [getattr(point, self.by) for point in points],
            xerr=[below, above],
            fmt="o",
            alpha=0.7,
            color=colour,
            label=label,
        )
