"""Numerators and denominators that add up, and the gap of their rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.groups import Groups
from apfex.rates._index import GroupIndex
from apfex.rates._masses import RATES, RateName, group_masses


@final
@dataclass(frozen=True, eq=False)
class RateSums:
    """Numerators and denominators of one rate, shape [..., k]; they add up with ``+``.

    Examples
    --------
    >>> whole = RateSums(torch.tensor([1.0, 3.0]), torch.tensor([4.0, 4.0]))
    >>> (whole + whole).rates()
    tensor([0.2500, 0.7500])
    >>> RateSums(torch.tensor([1.0, 0.0]), torch.tensor([4.0, 0.0])).rates()
    tensor([0.2500,    nan])
    """

    numerator: Tensor
    denominator: Tensor

    def __add__(self, other: RateSums) -> RateSums:
        """Merge the sums of two batches, or of two workers."""
        return RateSums(self.numerator + other.numerator, self.denominator + other.denominator)

    def estimable(self, minimum: float = 1.0) -> Tensor:
        """Which groups have a denominator of at least ``minimum`` (and above 0)."""
        return (self.denominator >= minimum) & (self.denominator > 0)

    def rates(self, minimum: float = 1.0) -> Tensor:
        """Numerator over denominator; NaN, never 0, for a group that is not estimable."""
        known = self.estimable(minimum)
        safe = torch.where(known, self.denominator, 1.0)
        return torch.where(known, self.numerator / safe, torch.nan)

    def regroup(self, codes: Tensor, n_groups: int) -> RateSums:
        """Sums of parent groups, from the group ``codes`` [k] that each cell belongs to."""
        index = GroupIndex(codes, None, n_groups)
        return RateSums(index.sum(self.numerator), index.sum(self.denominator))


def rate_sums(
    name: RateName | Sequence[RateName],
    decisions: Tensor,
    y: Tensor | None,
    groups: GroupIndex | Groups | Tensor,
    sample_weight: Tensor | None = None,
    *,
    multiclass: bool = False,
) -> RateSums:
    """Sum up a rate within each group.

    Parameters
    ----------
    name : {"dp", "tpr", "fpr", "tnr", "fnr", "ppv", "npv", "accuracy"}, or a sequence of them
        Several rates are summed in one go, along a new leading axis.
    decisions : Tensor of shape [..., n], or [..., c, n] with ``multiclass``
        Soft or hard decisions in [0, 1]; with ``multiclass`` one row per class. Booleans and
        integers, as in ``scores > 0``, are counted in float64.
    y : Tensor of shape [n]
        Labels 0 or 1; with ``multiclass`` 0 to c - 1. May be None for "dp".
    groups : codes [n], memberships [n, k], Groups or GroupIndex
    sample_weight : Tensor of shape [n], optional
    multiclass : bool
        Each class against the rest. "accuracy" then is the share of rows whose own class is
        decided, the same for every class.

    Returns
    -------
    RateSums of shape [..., k], or [..., c, k]

    Examples
    --------
    >>> decisions = torch.tensor([1.0, 0.0, 1.0, 1.0])
    >>> y = torch.tensor([1, 1, 0, 1])
    >>> rate_sums("tpr", decisions, y, torch.tensor([0, 0, 1, 1])).rates()
    tensor([0.5000, 1.0000])
    """
    index = groups if isinstance(groups, GroupIndex) else GroupIndex.of(groups)
    names = (name,) if isinstance(name, str) else tuple(name)
    _check(names, decisions, y, index, sample_weight, multiclass)
    decisions = decisions if decisions.is_floating_point() else decisions.double()
    labels = _labels(names, decisions, y, multiclass)
    masses = group_masses(decisions, labels, index, sample_weight)
    parts = []
    for one in names:
        counted = masses
        if multiclass and one == "accuracy":
            right = (decisions * labels).sum(-2, keepdim=True).expand_as(decisions)
            counted = group_masses(right, torch.ones_like(labels), index, sample_weight)
        coefficients = (RATES[one].numerator, RATES[one].denominator)
        parts.append(counted @ counted.new_tensor(coefficients).T)
    sums = parts[0] if isinstance(name, str) else torch.stack(parts)
    return RateSums(sums[..., 0], sums[..., 1])


def gap(rates: Tensor) -> Tensor:
    """Largest minus smallest rate over the last axis, groups that are NaN left out.

    Returns
    -------
    Tensor of shape [...]
        NaN where fewer than two groups are estimable.

    Examples
    --------
    >>> gap(torch.tensor([0.25, 0.75, torch.nan]))
    tensor(0.5000)
    """
    known = rates.isfinite()
    high = torch.where(known, rates, -torch.inf).amax(-1)
    low = torch.where(known, rates, torch.inf).amin(-1)
    return torch.where(known.sum(-1) >= 2, high - low, torch.nan)


def _check(
    names: Sequence[str],
    decisions: Tensor,
    y: Tensor | None,
    index: GroupIndex,
    sample_weight: Tensor | None,
    multiclass: bool,
) -> None:
    unknown = [name for name in names if name not in RATES]
    if unknown or not names:
        raise ValueError(f"name must be one or more of {list(RATES)}, got {unknown or names}.")
    if decisions.ndim < 1 + multiclass:
        wanted = "[..., c, n]" if multiclass else "[..., n]"
        raise ValueError(f"decisions must have shape {wanted}, got {list(decisions.shape)}.")
    n, c = decisions.shape[-1], decisions.shape[-2] if multiclass else 2
    shapes = {"groups": torch.Size([index.n_rows])}
    shapes |= {} if y is None else {"y": y.shape}
    shapes |= {} if sample_weight is None else {"sample_weight": sample_weight.shape}
    for argument, shape in shapes.items():
        if shape != (n,):
            raise ValueError(
                f"{argument} must have one entry per row of decisions ({n}), got shape "
                f"{list(shape)}."
            )
    outside = decisions.detach()[~((decisions >= 0) & (decisions <= 1))]
    if len(outside):
        raise ValueError(
            f"decisions must be between 0 and 1, got {outside[0].item():g}; turn logits into "
            "decisions first."
        )
    light = [] if sample_weight is None else sample_weight[~(sample_weight >= 0)]
    if len(light):
        raise ValueError(f"sample_weight must be at least 0, got {light[0].item()}.")
    wrong = [] if y is None else y[(y < 0) | (y >= c) | (y.long() != y)]
    if len(wrong):
        raise ValueError(f"y must hold labels from 0 to {c - 1}, got {wrong[0].item()}.")


def _labels(
    names: Sequence[RateName], decisions: Tensor, y: Tensor | None, multiclass: bool
) -> Tensor:
    """Labels as 0 and 1: [n], or [c, n] for each class against the rest."""
    if y is None:
        needed = [name for name in names if RATES[name].needs_labels]
        if needed:
            raise ValueError(f"y must be given for the rate {needed[0]!r}, got None.")
        return torch.zeros(decisions.shape[-1:], dtype=torch.int64, device=decisions.device)
    if not multiclass:
        return y
    classes = torch.arange(decisions.shape[-2], device=y.device).unsqueeze(-1)
    return (y == classes).long()
