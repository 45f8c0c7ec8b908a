"""The front: points that a user can look at, choose and use; it decides as a whole."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, final, overload

import numpy as np
import torch
from torch import Tensor, nn

from apfex.front._point import Point
from apfex.models import BoostedModel, RuleModel, given_groups

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_CHUNK = 2**14
"""Rows that a model sees at once."""


class UnmetBoundWarning(UserWarning):
    """No point of the front that is not trivial is within ``max_gap``; the nearest is used."""


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
        return np.concatenate([np.stack([*map(_decide, scores)]) for scores in parts], axis=1)

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


def score_in_chunks(
    models: Sequence[nn.Module], x: Tensor, groups: Tensor | None, dtype: torch.dtype
) -> Iterator[list[np.ndarray]]:
    """Scores of every model, [n] or [n, c], a chunk of rows at a time."""
    parts = [part.split(_CHUNK) for part in ((x,) if groups is None else (x, groups))]
    for rows, *codes in zip(*parts, strict=True):
        with torch.no_grad():
            scores = score_together(models, rows.to(dtype), *codes)
            yield [(one.squeeze(1) if one.ndim == 2 else one).numpy() for one in scores]


def score_together(
    models: Sequence[nn.Module], x: Tensor, groups: Tensor | None = None
) -> list[Tensor]:
    """Scores of every model for the same rows; what several of them share is evaluated once.

    Rules share the probabilities of their joint model, ensembles the scores of their base.

    Notes
    -----
    Every score is what ``model(x, groups)`` gives, to the last bit: rules are multiplied with the
    shared probabilities one after the other, and networks are run one after the other. One
    product for all rules, or one stack of networks, would sum in another order and could turn a
    decision on the boundary; it would save less than a millisecond in 10,000 rows, and a fifth of
    the time of networks.
    """
    given = () if groups is None else (groups,)
    if len(models) == 1:
        return [models[0](x, *given)]
    known: dict[int, Tensor] = {}

    def evaluate(part: nn.Module) -> Tensor:
        if id(part) not in known:
            known[id(part)] = part(x)
        return known[id(part)]

    def probabilities(joint: nn.Module) -> Tensor:
        if groups is None:
            return evaluate(joint)
        key = -id(joint)  # those where the groups are known
        if key not in known:
            known[key] = given_groups(evaluate(joint), groups)
        return known[key]

    scores = []
    for model in models:
        if isinstance(model, RuleModel):
            shared: Any = _Evaluated(probabilities(model.joint))
            scores.append(RuleModel(shared, model.rule)(x))
        elif isinstance(model, BoostedModel):
            scores.append(BoostedModel(_Evaluated(evaluate(model.base)), model.boosted)(x))
        else:
            scores.append(model(x, *given) if given else evaluate(model))
    return scores


def _decide(scores: np.ndarray) -> np.ndarray:
    """Codes of classes [n], by scores of the second of two classes [n] or of each class [n, c]."""
    return (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(1)


@final
class _Evaluated(nn.Module):
    """Stands for a model whose outputs for the rows are known already."""

    def __init__(self, outputs: Tensor) -> None:
        super().__init__()
        self._outputs = outputs

    def forward(self, _: Tensor) -> Tensor:
        """What was found before."""
        return self._outputs
