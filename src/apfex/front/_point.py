"""One point of a front, with its figures on the validation rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

from torch import nn

from apfex.front._criteria import rates_that_count
from apfex.metrics import (
    CRITERIA,
    NEAR_CONSTANT,
    GapInterval,
    GroupRates,
    gain_share,
    interval_of_rates,
)
from apfex.rates import ConfusionCounts


@final
@dataclass(frozen=True, eq=False)
class Point:
    """One model of the front; all figures are of the validation rows, and flatter it.

    Attributes
    ----------
    error, balanced_error : float
    loss : float
        What points are ranked by: the error, the balanced error, the mean cost, or one minus the
        value of a scorer.
    gaps : mapping from criterion to GapInterval
        Gap, 95% interval and noise floor; of the worst rate and grouping of the criterion. A group
        takes part with 10 rows that count, as in audits, or with any where fewer than two have so
        many.
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
        Where it comes from: the network or rule, and the epoch (round of trees, step of rules) of
        its parameters. The model that was given as ``init`` has member -1 and epoch 0 among rules.
    n_rows : int
        Validation rows, on which it was measured.
    module : nn.Module
    counts : ConfusionCounts
        What it decides for the groups of the crossing; gaps at any confidence, and among groups
        of any least size, follow from them.
    groupings : tuple of attributes
        Those whose gaps count.
    gain : float
        How much smaller the loss is than that of the best constant decision.
    gain_share : float
        The same as a share of what the front's best point gains; NaN where that gains nothing.
    near_constant : bool
        Whether that share is below one half, or the point trivial.
    calibration : tuple of float or None
        A slope, and an offset for each class, that make probabilities of the model's scores; None
        where they are as good without.

    Examples
    --------
    >>> from apfex import APFExClassifier, make_biased
    >>> data = make_biased(n=400, random_state=0)
    >>> clf = APFExClassifier(model="linear", epochs=2, max_gap=1.0, random_state=0)
    >>> point = clf.fit(data.X, data.y, sensitive_features=data.sensitive).front_[0]
    >>> 0 <= point.error <= 1, list(point.gaps), point.gaps["dp"].upper <= 1
    (True, ['dp'], True)
    """

    error: float
    balanced_error: float
    loss: float
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
    calibration: tuple[float, ...] | None = field(default=None, repr=False)

    gain: float = float("nan")
    gain_share: float = float("nan")
    near_constant: bool = False

    def against(self, constant_error: float, best: float) -> Point:
        """The point beside the best constant decision, and the best point of its front."""
        share = gain_share(self.loss, constant_error, best)
        is_near = self.trivial or not share >= NEAR_CONSTANT
        gain = constant_error - self.loss
        return replace(self, gain=gain, gain_share=share, near_constant=is_near)

    def interval_at(
        self, name: str, confidence: float = 0.95, *, min_count: float | None = None
    ) -> GapInterval:
        """The gap of a criterion at any confidence, among groups of ``min_count`` rows.

        None: of 10 rows that count, as in audits, or of any where fewer than two have so many.
        """
        return gap_of(self.counts, name, self.groupings, confidence, min_count)

    def widest(self, name: str, *, min_count: float | None = None) -> GroupRates:
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
        row |= {"loss": self.loss, "gain": self.gain, "gain_share": self.gain_share}
        return row | {
            "near_constant": self.near_constant,
            "worst_group": self.worst_group,
            "worst_group_accuracy": self.worst_group_accuracy,
            "share_favored": self.share_favored,
            "trivial": self.trivial,
            "levelled_down": ", ".join(self.levelled_down),
            "member": self.member,
            "epoch": self.epoch,
            "n_rows": self.n_rows,
        }


def widest_rates(
    counts: ConfusionCounts,
    name: str,
    groupings: Sequence[Sequence[str]],
    min_count: float | None = None,
) -> GroupRates:
    """The rate and the grouping with the largest gap of a criterion.

    Parameters
    ----------
    counts : ConfusionCounts
        Of the crossing.
    name : str
        The criterion.
    groupings : sequence of attributes
        Those whose gaps count.
    min_count : float, optional
        Groups with fewer (effective) rows are left out; by default those with fewer than
        ``MIN_COUNT``, where two others remain.
    """
    return GroupRates.widest(
        [
            rates_that_count(counts.by(attributes), rate, min_count)
            for attributes in groupings
            for rate in CRITERIA[name]
        ]
    )


def gap_of(
    counts: ConfusionCounts,
    name: str,
    groupings: Sequence[Sequence[str]],
    confidence: float = 0.95,
    min_count: float | None = None,
) -> GapInterval:
    """The largest gap of a criterion, with its interval."""
    found = widest_rates(counts, name, groupings, min_count)
    return interval_of_rates([found], confidence=confidence)
