"""The constant decision on the rows of a page, and what a model gains over it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from apfex.auditing import Audit
from apfex.metrics import NEAR_CONSTANT, best_constant, gain_share


@final
@dataclass(frozen=True)
class Constant:
    """Giving one label, in words, to everybody, and what it is worth.

    Where the share that is selected is fixed, it is choosing so many at random instead. ``ranked``
    is its loss of the ``kind`` that ranks models, as its error; ``loss`` that on the validation
    rows.
    """

    label: str
    text: str
    share_favored: float
    error: float
    balanced_error: float
    kind: str
    ranked: float
    loss: float

    @staticmethod
    def of(
        audit: Audit,
        labels: Sequence[str],
        favorable: str,
        by: str = "error",
        validation: float = math.nan,
        selection_rate: float | None = None,
        best: str | None = None,
    ) -> Constant | None:
        """The best constant decision for audited rows; None where their labels are unknown.

        Parameters
        ----------
        labels, favorable
            In words; of an audit of two labels only the favorable one is known.
        by : str
            What ranks models: "error", "balanced_error", or another loss that only the validation
            rows know.
        validation : float
            That loss of the best constant decision there.
        selection_rate : float, optional
            Share of rows that get the favorable label, where it is fixed.
        best : str, optional
            The label that is best for everybody by that loss; else the most frequent one.
        """
        place = None
        if best is not None and by not in ("error", "balanced_error"):
            place = labels.index(best) if audit.counts.classes else int(best == favorable)
        found = best_constant(audit.counts, place)
        if found is None:
            return None
        if audit.counts.classes:
            label = labels[found.place]
        else:
            others = [name for name in labels if name != favorable]
            label = favorable if found.place else (others[0] if others else f"not {favorable}")
        text, favored, error = f"“{label}” for everybody", float(label == favorable), found.error
        if selection_rate is not None:
            rest = (1 - error) if label == favorable else error  # share of the favorable label
            text, favored = f"{100 * selection_rate:g}% chosen at random", selection_rate
            error = selection_rate * (1 - rest) + (1 - selection_rate) * rest
        losses = {"error": error, "balanced_error": found.balanced_error}
        kind = by.replace("_", " ") if by in losses else f"{by} on the validation rows"
        ranked = losses.get(by, validation)
        return Constant(label, text, favored, error, found.balanced_error, kind, ranked, validation)

    def describe(self, gaps: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """As plain values, with the gaps that it has: ``criterion``, ``by`` and ``gap``."""
        return {
            "label": self.label,
            "text": self.text,
            "loss": None if math.isnan(self.loss) else self.loss,
            "error": self.error,
            "balanced_error": self.balanced_error,
            "share_favored": self.share_favored,
            "gaps": list(gaps),
        }


@final
@dataclass(frozen=True)
class Gain:
    """What a model gains over the constant decision, by the error that ranks models."""

    constant: Constant
    error: float
    best: float
    flagged: bool | None = None
    """Whether the validation rows flag it, where the rows at hand are too few to say."""

    @property
    def size(self) -> float:
        """By how much its error is smaller than that of the constant decision."""
        return self.constant.ranked - self.error

    @property
    def share(self) -> float:
        """Share of the way from the constant decision to the best model; NaN where it has none."""
        return gain_share(self.error, self.constant.ranked, self.best)

    @property
    def near_constant(self) -> bool:
        """Whether it closes less than half of that way."""
        if self.flagged is not None:
            return self.flagged
        return math.isnan(self.share) or self.share < NEAR_CONSTANT


def shares_of(codes: np.ndarray, weight: np.ndarray | None, n_labels: int) -> np.ndarray:
    """Share of rows, by weight, with each of the labels [c]."""
    counted = np.bincount(codes, weight, n_labels)
    return counted / counted.sum()
