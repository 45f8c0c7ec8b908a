"""Rates as quotients of confusion counts: defined once, for training and for audits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeVar, final

import numpy as np
import torch
from torch import Tensor

RateName = Literal["dp", "tpr", "fpr", "tnr", "fnr", "ppv", "npv", "accuracy"]
Array = TypeVar("Array", np.ndarray, Tensor)


@final
@dataclass(frozen=True)
class Rate:
    """A quotient of two sums of confusion counts.

    Each entry says how often a count is taken: selected negatives (false positives), selected
    positives (true positives), all negatives, all positives.
    """

    numerator: tuple[int, int, int, int]
    denominator: tuple[int, int, int, int]

    @property
    def needs_labels(self) -> bool:
        """Whether negatives and positives are treated differently."""
        return any(part[::2] != part[1::2] for part in (self.numerator, self.denominator))


RATES: dict[RateName, Rate] = {
    "dp": Rate((1, 1, 0, 0), (0, 0, 1, 1)),
    "tpr": Rate((0, 1, 0, 0), (0, 0, 0, 1)),
    "fpr": Rate((1, 0, 0, 0), (0, 0, 1, 0)),
    "tnr": Rate((-1, 0, 1, 0), (0, 0, 1, 0)),
    "fnr": Rate((0, -1, 0, 1), (0, 0, 0, 1)),
    "ppv": Rate((0, 1, 0, 0), (1, 1, 0, 0)),
    "npv": Rate((-1, 0, 1, 0), (-1, -1, 1, 1)),
    "accuracy": Rate((-1, 1, 1, 0), (0, 0, 1, 1)),
}
"""Selection rate (demographic parity), true positive rate (equal opportunity), ..."""

OTHER_LABEL: dict[RateName, RateName] = {
    "dp": "dp",
    "tpr": "tnr",
    "fpr": "fnr",
    "tnr": "tpr",
    "fnr": "fpr",
    "ppv": "npv",
    "npv": "ppv",
    "accuracy": "accuracy",
}
"""The rate of label 1 that has the gap of each rate of label 0."""


def rate_sums(name: RateName, counts: Array, *, multiclass: bool = False) -> tuple[Array, Array]:
    """Numerator and denominator of a rate.

    Parameters
    ----------
    name : {"dp", "tpr", "fpr", "tnr", "fnr", "ppv", "npv", "accuracy"}
    counts : array or Tensor of shape [..., k, 4], or [..., c, k, 4] with ``multiclass``
        Confusion counts, of :func:`count_rows` or :func:`soft_counts`.
    multiclass : bool
        Whether each of c classes is counted against the rest. "accuracy" is then the share of rows
        whose own class is decided: one share, whatever the class, so that c becomes 1.

    Returns
    -------
    numerator, denominator : arrays or Tensors of shape [..., k], or [..., c, k]

    Examples
    --------
    >>> above, below = rate_sums("tpr", np.array([[0, 1, 0, 2], [1, 3, 2, 4]]))
    >>> above, below
    (array([1, 3]), array([2, 4]))
    """
    table: Any = counts
    if multiclass and name == "accuracy":
        return table[..., 1].sum(-2)[..., None, :], table[..., :1, :, 2:].sum(-1)
    vector = table.new_tensor if isinstance(counts, Tensor) else np.array
    return table @ vector(RATES[name].numerator), table @ vector(RATES[name].denominator)


def rates_of(name: RateName, counts: Array, *, multiclass: bool = False) -> Array:
    """Numerator over denominator; NaN, never 0, where the denominator is 0.

    Parameters and shapes are those of :func:`rate_sums`.

    Examples
    --------
    >>> rates_of("tpr", torch.tensor([[0.0, 1.0, 0.0, 2.0], [1.0, 0.0, 1.0, 0.0]]))
    tensor([0.5000,    nan])
    """
    return quotient(*rate_sums(name, counts, multiclass=multiclass))


def quotient(above: Array, below: Array) -> Array:
    """Above over below; NaN where below is 0.

    Examples
    --------
    >>> quotient(np.array([1, 0]), np.array([2, 0]))
    array([0.5, nan])
    """
    if isinstance(below, Tensor):
        # A safe divisor keeps gradients finite where there is no rate.
        safe = torch.where(below > 0, below, 1.0)
        return torch.where(below > 0, above / safe, torch.nan)
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), np.nan)
