"""What a small gap may hide: decisions that are trivial, and groups that are levelled down."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from apfex.rates import GroupIndex, quotient

_NEAR = 0.02
_ONE_SIDED = 1.645
_LEAST_CHANGE = 0.005


def class_recalls(
    decided: Tensor, y: Tensor, n_classes: int, sample_weight: Tensor | None = None
) -> Tensor:
    """Share of each class's rows whose decision is right; their mean is the balanced accuracy.

    Parameters
    ----------
    decided : Tensor of shape [..., n]
        Decisions, as places among the classes.
    y : Tensor of shape [n]
    n_classes : int
    sample_weight : Tensor of shape [n], optional

    Returns
    -------
    Tensor of shape [..., n_classes], float64
        NaN for a class without weight.

    Examples
    --------
    >>> class_recalls(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), 3)
    tensor([1.0000, 0.5000,    nan], dtype=torch.float64)
    """
    index, weight = GroupIndex(y, None, n_classes), _weights(y, sample_weight)
    right = (decided == y).double()
    sizes = index.sum(weight)
    hits = index.sum(right * weight)
    return quotient(hits, sizes.expand_as(hits))


def is_trivial(
    decided: Tensor, y: Tensor, n_classes: int, sample_weight: Tensor | None = None
) -> Tensor:
    """Whether decisions are those of a constant, or no better than that.

    Parameters
    ----------
    decided : Tensor of shape [..., n]
        Decisions of one model, or of each of several, as places among the classes.
    y : Tensor of shape [n]
    n_classes : int
    sample_weight : Tensor of shape [n], optional

    Returns
    -------
    bool Tensor of shape [...]
        True where all rows get one label; and where the balanced accuracy, with 1.645 standard
        errors added to it, is at most .02 above that of a constant, 1 / c for c classes that occur.
        The gaps of such a model are small for want of decisions.

    Examples
    --------
    >>> y = torch.tensor([0, 1] * 50)
    >>> is_trivial(torch.stack([y, y * 0]), y, 2)
    tensor([False,  True])
    """
    index, weight = GroupIndex(y, None, n_classes), _weights(y, sample_weight)
    sizes = index.sum(weight)
    known = sizes > 0
    recalls = class_recalls(decided, y, n_classes, sample_weight)[..., known]
    effective = sizes[known] ** 2 / index.sum(weight**2)[known]  # Kish
    return _is_poor(recalls, effective) | (decided == decided[..., :1]).all(-1)


def is_trivial_table(rows: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """The same as :func:`is_trivial` from counts of rows that are not at hand.

    Parameters
    ----------
    rows, sums, squares : arrays of shape [..., c, c]
        Rows, weights and squared weights by label and decision; thrice the same without weights.

    Returns
    -------
    bool array of shape [...]

    Examples
    --------
    >>> table = np.array([[50.0, 0.0], [50.0, 0.0]])
    >>> bool(is_trivial_table(table, table, table))
    True
    """
    sizes = torch.from_numpy(sums.sum(-1))
    known = (sizes > 0).reshape(-1, sizes.shape[-1])[0]  # labels are those of the same rows
    hits = torch.from_numpy(np.diagonal(sums, axis1=-2, axis2=-1).copy())
    effective = (sizes**2 / torch.from_numpy(squares.sum(-1)))[..., known]
    is_poor = _is_poor((hits / sizes)[..., known], effective)
    is_constant = ((rows.sum(-2) > 0).sum(-1)) <= 1
    return is_poor.numpy() | is_constant


def _is_poor(recalls: Tensor, effective: Tensor) -> Tensor:
    """Whether recalls of the classes that occur are hardly better than those of a constant."""
    c = recalls.shape[-1]
    spread = (recalls * (1 - recalls) / effective).sum(-1).sqrt() / c
    return recalls.mean(-1) + _ONE_SIDED * spread <= 1 / c + _NEAR


def levelled_down(change: np.ndarray) -> np.ndarray:
    """Which groups lose favorable decisions while no group gains any.

    Parameters
    ----------
    change : array of shape [k]
        How much larger the share of each group that gets the favorable label has become. Changes
        of up to .005 count as none. Where it should take more to speak of a change, give 0 for
        what is less.

    Returns
    -------
    bool array of shape [k]
        All False where some group gains.

    Examples
    --------
    >>> levelled_down(np.array([-0.1, 0.004, 0.0])).tolist()
    [True, False, False]
    >>> levelled_down(np.array([-0.1, 0.2, 0.0])).any()
    np.False_
    """
    gains, loses = change > _LEAST_CHANGE, change < -_LEAST_CHANGE
    return loses & ~gains.any()


def _weights(y: Tensor, sample_weight: Tensor | None) -> Tensor:
    if sample_weight is None:
        return torch.ones(len(y), dtype=torch.float64, device=y.device)
    return sample_weight.double()
