"""The front: points that a user can look at, choose and use; it decides as a whole."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final, overload

import numpy as np
import torch
from torch import Tensor, nn

from apfex.arguments import meant, require_kind, require_numbers
from apfex.front._display import FrontDisplay
from apfex.front._encoded_rows import EncodedRows, InputRows
from apfex.front._html import front_as_html
from apfex.front._point import Point
from apfex.models import BoostedModel, InitModel, JointModel, calibrate
from apfex.rules import RuleModel

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from plotly import graph_objects

_CHUNK = 2**12
"""Rows that a model sees at once; their inputs stay in the cache."""


class UnmetBoundWarning(UserWarning):
    """No point of the front that is not trivial is within ``max_gap``; the nearest is used."""


class NearConstantWarning(UserWarning):
    """The point in use is little better than one decision for everybody."""


@final
class Front(Sequence[Point]):
    """Points by rising error; a sequence that prints as a table.

    Parameters
    ----------
    points : sequence of Point
    by : str
        The loss that ranks them: "error", "balanced_error", "cost", or "1 - " and a scorer.
    favorable_label : label, optional
        The label whose rates the gaps are of, where there are two.
    dtype : torch.dtype
        What the models count in.
    constant_error : float
        That loss of the best decision that looks at nobody: one label for all rows, or, with a
        fixed selection rate, so many rows at random.
    constant_label : label, optional
        That label; None where it is choosing at random.

    Examples
    --------
    >>> from apfex import APFExClassifier, make_biased
    >>> data = make_biased(n=400, random_state=0)
    >>> clf = APFExClassifier(model="linear", epochs=2, max_gap=1.0, random_state=0)
    >>> front = clf.fit(data.X, data.y, sensitive_features=data.sensitive).front_
    >>> len(front) == len(front.to_frame())
    True
    """

    by: str
    favorable_label: Any
    dtype: torch.dtype
    constant_error: float
    constant_label: Any

    def __init__(
        self,
        points: Sequence[Point],
        by: str = "error",
        favorable_label: Any = None,
        dtype: torch.dtype = torch.float64,
        constant_error: float = float("nan"),
        constant_label: Any = None,
    ) -> None:
        self.by, self.favorable_label, self.dtype = by, favorable_label, dtype
        self.constant_error, self.constant_label = constant_error, constant_label
        self._points = sorted(points, key=lambda point: point.loss)
        if np.isfinite(constant_error):
            usable = (point.loss for point in points if not point.trivial)
            best = min(usable, default=constant_error)
            self._points = [point.against(constant_error, best) for point in self._points]

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
        names = ("loss", "gain_share", "near_constant", "trivial")
        shown = [c for c in frame.columns if c in names or c.endswith("_gap")]
        header = [self.by if name == "loss" else name for name in shown]
        table = frame[shown].round(3).set_axis(header, axis=1).to_string()
        whose = "" if self.favorable_label is None else f"; favorable: {self.favorable_label!r}"
        return (
            f"Front of {len(self)} points, measured on the validation rows{whose}; {self.by} of "
            f"{self.reference}: {self.constant_error:.3f}\n{table}"
        )

    def _repr_html_(self) -> str:
        return front_as_html(self)

    @property
    def reference(self) -> str:
        """What a model must be better than."""
        if self.constant_label is None:
            return "choosing at random"
        return "one decision for everybody"

    def to_frame(self) -> pd.DataFrame:
        """One row per point, by rising error; measured on the validation rows."""
        import pandas as pd

        frame = pd.DataFrame([point.to_dict() for point in self])
        frame.attrs["measured_on"] = "validation rows, which choose the point for a bound"
        frame.attrs["favorable_label"] = self.favorable_label
        frame.attrs["ranked_by"], frame.attrs["constant_error"] = self.by, self.constant_error
        return frame

    def scores(self, point: int, x: InputRows, groups: Tensor | None = None) -> np.ndarray:
        """Scores of one point for encoded rows: [n] for two classes, else [n, c].

        Parameters
        ----------
        point : int
            Its place.
        x : Tensor of shape [n, d], or EncodedRows
        groups : int64 Tensor of shape [n], optional
            Codes of the groups that thresholds differ by; -1 where unknown.
        """
        parts = score_in_chunks([self[point].module], x, groups, self.dtype)
        return np.concatenate([scores for (scores,) in parts])

    def probabilities(self, point: int, x: InputRows, groups: Tensor | None = None) -> np.ndarray:
        """Calibrated probabilities of the label [n, c]; of rules the same at every point.

        Parameters
        ----------
        point, x, groups
            As for :meth:`scores`.
        """
        used = self[point]
        found = probabilities_in_chunks(used.module, x, groups, self.dtype)
        return (found if used.calibration is None else calibrate(found, used.calibration)).numpy()

    def outputs(
        self, point: int, x: InputRows, groups: Tensor | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """What :meth:`scores` and :meth:`probabilities` give, by one run of the models.

        Parameters
        ----------
        point, x, groups
            As for :meth:`scores`.
        """
        used = self[point]
        scores, found = outputs_in_chunks(used.module, x, groups, self.dtype)
        calibrated = found if used.calibration is None else calibrate(found, used.calibration)
        return scores, calibrated.numpy()

    def decide(
        self, x: InputRows, groups: Tensor | None = None, *, points: Sequence[int] | None = None
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
        return np.concatenate(
            [np.stack([*map(decide_by_scores, scores)]) for scores in parts], axis=1
        )

    def choose(
        self,
        bounds: Mapping[str, float],
        confidence: float | None = None,
        max_error_increase: float | None = None,
    ) -> int | None:
        """Most accurate point within the bounds that is not trivial, or None.

        Parameters
        ----------
        bounds : mapping from criterion to float
        confidence : float, optional
            Of the upper ends of the intervals, which must then be within the bounds.
        max_error_increase : float, optional
            How much larger its loss may be than that of the best point.
        """
        self._check_bounds(bounds)
        for place in self._accurate(max_error_increase):
            if self[place].exceeds(bounds, confidence) <= 0:
                return place
        return None

    def nearest(
        self,
        bounds: Mapping[str, float],
        confidence: float | None = None,
        max_error_increase: float | None = None,
    ) -> int:
        """The point that exceeds the bounds least, of those that are better than a constant."""
        self._check_bounds(bounds)
        usable = self._accurate(max_error_increase)
        places = [place for place in usable if not self[place].near_constant] or usable
        places = places or list(range(len(self)))
        return min(places, key=lambda p: (self[p].exceeds(bounds, confidence), p))

    def _check_bounds(self, bounds: Mapping[str, float]) -> None:
        require_kind("bounds", bounds, Mapping, "a mapping from criteria to numbers")
        known = list(self[0].gaps)
        for name, bound in bounds.items():
            if name not in known:
                raise ValueError(
                    f"bounds must name criteria of {known}, got {name!r}.{meant(name, known)}"
                )
            require_numbers(**{f"bounds[{name!r}]": bound})

    def _accurate(self, max_error_increase: float | None) -> list[int]:
        """Places of the points that are not trivial, and not too much worse than the best."""
        places = [place for place, point in enumerate(self) if not point.trivial]
        if max_error_increase is None or not places:
            return places
        most = self[places[0]].loss + max_error_increase + 1e-9
        return [place for place in places if self[place].loss <= most]

    def first_choice(
        self, bounds: Mapping[str, float], max_error_increase: float | None = None
    ) -> int:
        """The point that the bounds choose; the nearest, with a warning, where they admit none."""
        place = self.choose(bounds, None, max_error_increase)
        if place is None and not bounds:
            return self.nearest(bounds, None, max_error_increase)
        if place is None:
            place = self.nearest(bounds, None, max_error_increase)
            self._warn_unmet(place, bounds, max_error_increase)
        elif bounds and self[place].near_constant:
            self._warn_near_constant(place, bounds)
        return place

    def _warn_unmet(
        self, place: int, bounds: Mapping[str, float], max_error_increase: float | None
    ) -> None:
        limits = f"max_gap {dict(bounds)}"
        if max_error_increase is not None:
            limits += f" and max_error_increase {max_error_increase:g}"
        text = (
            f"No model meets {limits} on the validation rows; predict uses the one that comes "
            f"closest: point {place} with {self[place].describe()}. Raise the limit, or look at "
            f"front_.{self._said_of_noise(place, bounds)}"
        )
        if self[place].trivial:
            text = (
                f"No model was found that is better than {self.reference}; predict uses "
                f"point {place}, which gives {self[place].share_favored:.1%} of the rows the "
                f"favorable label. {self._ways_out()}"
            )
        warnings.warn(text, UnmetBoundWarning, stacklevel=4)

    def _said_of_noise(self, place: int, bounds: Mapping[str, float]) -> str:
        """Gaps above their bounds that groups of these sizes show by chance alone, if any."""
        gaps = {name: gap for name, gap in self[place].gaps.items() if name in bounds}
        floors = {n: round(g.noise_floor, 3) for n, g in gaps.items() if g.noise_floor > bounds[n]}
        if not floors:
            return ""
        return (
            f" Groups are so small there that chance alone makes gaps of about {floors}: more "
            "validation rows, or fewer groups, tell more."
        )

    def _ways_out(self) -> str:
        """What may help where all models are constant, that was not done already."""
        of_rules = any(isinstance(point.module, RuleModel | InitModel) for point in self)
        rules_only = "a cost_matrix or a selection_rate"
        if self.by == "error":
            said = "Where one label is rare, use another scoring: 'balanced_accuracy', class_weight"
            return f"{said}, {rules_only}{'' if of_rules else ' (with search=postprocess)'}."
        if not of_rules:
            return f"Use search='postprocess', which also takes {rules_only}, or other inputs."
        if self.constant_label is None:
            return "Use other inputs, or more rows."
        return "Use a selection_rate, other inputs, or more rows."

    def _warn_near_constant(self, place: int, bounds: Mapping[str, float]) -> None:
        point = self[place]
        warnings.warn(
            f"Only models that are nearly constant meet max_gap {dict(bounds)} on the validation "
            f"rows; predict uses point {place}, whose {self.by} of {point.loss:.4f} closes "
            f"{np.nan_to_num(point.gain_share):.0%} of the way from {self.reference} "
            f"({self.constant_error:.4f}) to the best model. Set max_error_increase, or look at "
            "front_.",
            NearConstantWarning,
            stacklevel=4,
        )

    def find(
        self,
        bounds: Mapping[str, float],
        confidence: float | None = None,
        max_error_increase: float | None = None,
    ) -> int:
        """The point that the bounds choose; an error that names the nearest if there is none."""
        place = self.choose(bounds, confidence, max_error_increase)
        if place is None:
            near = self.nearest(bounds, confidence, max_error_increase)
            raise ValueError(
                f"max_gap must admit a non-trivial point of the front, got {dict(bounds)}"
                f"{'' if max_error_increase is None else f' and {max_error_increase=}'}; the "
                f"nearest is point {near} with {self[near].describe(confidence)}: use "
                f"at({near}), or raise the limit."
            )
        if self[place].near_constant:
            self._warn_near_constant(place, bounds)
        return place

    def plot(self, criterion: str | None = None, ax: Axes | None = None) -> Axes:
        """Error against the gap of a criterion, with intervals and the noise floor.

        It is what :class:`FrontDisplay` draws; needs matplotlib.
        """
        return FrontDisplay.from_front(self, criterion).plot(ax).ax_

    def to_plotly(self, criterion: str | None = None) -> graph_objects.Figure:
        """The same as a figure of plotly, whose marks tell their point."""
        return FrontDisplay.from_front(self, criterion).to_plotly()


def score_in_chunks(
    models: Sequence[nn.Module], x: InputRows, groups: Tensor | None, dtype: torch.dtype
) -> Iterator[list[np.ndarray]]:
    """Scores of every model, [n] or [n, c], a chunk of rows at a time."""
    for rows, *codes in _chunks(x, groups, dtype):
        with torch.no_grad():
            scores = score_together(models, rows, *codes)
            yield [(one.squeeze(1) if one.ndim == 2 else one).numpy() for one in scores]


def probabilities_in_chunks(
    model: nn.Module, x: InputRows, groups: Tensor | None, dtype: torch.dtype
) -> Tensor:
    """Probabilities of the label [n, c] by a model, float64; those of scores are not calibrated."""
    if isinstance(model, RuleModel | InitModel):
        with torch.no_grad():
            found = [
                model.label_probabilities(rows, *codes)
                for rows, *codes in _chunks(x, groups, dtype)
            ]
        return torch.cat(found).double()
    parts = score_in_chunks([model], x, groups, dtype)
    return _probabilities(np.concatenate([scores for (scores,) in parts]))


def outputs_in_chunks(
    model: nn.Module, x: InputRows, groups: Tensor | None, dtype: torch.dtype
) -> tuple[np.ndarray, Tensor]:
    """Scores [n] or [n, c] and probabilities of the label [n, c]; the models below run once."""
    if not isinstance(model, RuleModel):
        scores = np.concatenate([one for (one,) in score_in_chunks([model], x, groups, dtype)])
        if isinstance(model, InitModel):
            return scores, probabilities_in_chunks(model, x, groups, dtype)
        return scores, _probabilities(scores)
    scored, found = [], []
    with torch.no_grad():
        for rows, *codes in _chunks(x, groups, dtype):
            joint = model.joint(rows)
            shared: Any = _Evaluated(model.joint.given(joint, *codes) if codes else joint)
            known = RuleModel(shared, model.rule)
            scored.append(known(rows))
            found.append(known.label_probabilities(rows))
    scores = torch.cat(scored)
    return (scores.squeeze(1) if scores.shape[1] == 1 else scores).numpy(), torch.cat(
        found
    ).double()


def _chunks(
    x: InputRows, groups: Tensor | None, dtype: torch.dtype
) -> Iterator[tuple[Tensor, ...]]:
    """Rows as models take them, and their groups where these are known, so many at a time."""
    parts = (x.to(dtype) if isinstance(x, EncodedRows) else x).split(_CHUNK)
    rows = (part.to(dtype) for part in parts)
    return zip(rows) if groups is None else zip(rows, groups.split(_CHUNK), strict=True)


def _probabilities(scores: np.ndarray) -> Tensor:
    """Probabilities [n, c] by scores."""
    found = torch.from_numpy(scores).double()
    if found.ndim == 1:
        found = torch.stack([torch.zeros_like(found), found], 1)
    return torch.softmax(found, 1)


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

    def probabilities(joint: JointModel) -> Tensor:
        if groups is None:
            return evaluate(joint)
        key = -id(joint)  # those where the groups are known
        if key not in known:
            known[key] = joint.given(evaluate(joint), groups)
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


def decide_by_scores(scores: np.ndarray) -> np.ndarray:
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
