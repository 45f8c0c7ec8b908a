"""The constant decision, one label for everybody, as the least that a model must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from apfex.rates import ConfusionCounts

NEAR_CONSTANT = 0.5
"""Share of the way from the constant decision to the best model that a model should close."""


@final
@dataclass(frozen=True)
class ConstantDecision:
    """The label that is right most often if everybody gets it.

    Attributes
    ----------
    place : int
        Of the label among the classes; of two labels 1 is the favorable one.
    error, balanced_error : float
        Of giving it to everybody.
    """

    place: int
    error: float
    balanced_error: float


def best_constant(counts: ConfusionCounts, place: int | None = None) -> ConstantDecision | None:
    """The best constant decision for the rows that were counted; None where labels are unknown.

    Parameters
    ----------
    counts : ConfusionCounts
    place : int, optional
        Of a label among the classes: that one, instead of the most frequent.

    Examples
    --------
    >>> from apfex.groups import make_groups
    >>> from apfex.rates import count_rows
    >>> groups = make_groups({"sex": ["F", "F", "M", "M"]})
    >>> y, decided = np.array([0, 0, 0, 1]), np.array([0, 1, 0, 1])
    >>> best_constant(count_rows(y, decided, groups))
    ConstantDecision(place=0, error=0.25, balanced_error=0.5)
    """
    if not counts.labelled or not counts.sums[..., 2:].sum():
        return None
    sums = counts.sums.sum(1)  # [c, 4]
    labels = sums[:, 3] if counts.classes else sums[0, 2:]
    shares = labels / labels.sum()
    place = int(shares.argmax()) if place is None else place
    return ConstantDecision(place, float(1 - shares[place]), 1 - 1 / int((shares > 0).sum()))


def error_of_counts(counts: ConfusionCounts) -> float:
    """Share of the rows that were counted, by weight, whose decision is wrong.

    Examples
    --------
    >>> from apfex.groups import make_groups
    >>> from apfex.rates import count_rows
    >>> groups = make_groups({"sex": ["F", "F", "M", "M"]})
    >>> y, decided = np.array([0, 0, 0, 1]), np.array([0, 1, 0, 1])
    >>> error_of_counts(count_rows(y, decided, groups))
    0.25
    """
    sums = counts.sums.sum(1)
    right = sums[:, 1].sum() if counts.classes else sums[0, 1] + sums[0, 2] - sums[0, 0]
    return float(1 - right / sums[0, 2:].sum())


def gain_share(error: float, constant: float, best: float) -> float:
    """Share of the way from the constant decision to the best model that a model closes.

    Parameters
    ----------
    error, constant, best : float
        Errors of the model, of the constant decision, and of the best model.

    Returns
    -------
    float
        1 for the best model, 0 for the constant decision; NaN where the best model is no better
        than the constant decision.

    Examples
    --------
    >>> gain_share(0.25, constant=0.5, best=0.125)
    0.6666666666666666
    """
    return (constant - error) / (constant - best) if best < constant else float(np.nan)
