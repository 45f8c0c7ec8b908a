"""Rates of groups, defined once for training and for audit.

Everything starts from the four *masses* of a group: the negatives and positives that are selected,
and all its negatives and positives. Masses are sums over rows, so batches and workers simply add
up, and those of parent groups follow from those of their cells. A rate is a quotient of two sums
of masses. With soft decisions in [0, 1] it is differentiable; with hard ones it is the usual
metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor

from apfex.groups import Groups

__all__ = [
    "RATES",
    "GroupIndex",
    "Rate",
    "RateName",
    "RateSums",
    "gap",
    "group_masses",
    "rate_sums",
]

RateName = Literal["dp", "tpr", "fpr", "tnr", "fnr", "ppv", "accuracy"]


@final
@dataclass(frozen=True)
class Rate:
    """A quotient of two sums of masses.

    Each entry says how often a mass is counted: selected negatives, selected positives, all
    negatives, all positives.
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
    "accuracy": Rate((-1, 1, 1, 0), (0, 0, 1, 1)),
}
"""Selection rate (demographic parity), true positive rate (equal opportunity), ..."""


@final
@dataclass(frozen=True, eq=False)
class GroupIndex:
    """Which rows belong to which of k groups: codes [n], or memberships [n, k].

    Examples
    --------
    >>> index = GroupIndex.of(torch.tensor([0, 1, 1, -1]))
    >>> index.sum(torch.tensor([1.0, 2.0, 3.0, 9.0]))
    tensor([1., 5.])
    """

    codes: Tensor | None
    memberships: Tensor | None
    n_groups: int
    has_outsiders: bool = False

    @staticmethod
    def of(groups: Groups | Tensor, n: int | None = None) -> GroupIndex:
        """Read codes [n] (-1: in no group), memberships [n, k] or ``Groups``, and check them."""
        if isinstance(groups, Groups):
            codes = torch.from_numpy(groups.codes)
            index = GroupIndex(codes, None, len(groups), bool((groups.codes < 0).any()))
        elif not isinstance(groups, Tensor):
            raise TypeError(
                "groups must be Groups, a tensor of codes [n] or of memberships [n, k], got "
                f"{type(groups).__name__}."
            )
        elif groups.ndim == 2 and groups.is_floating_point():
            index = GroupIndex._of_memberships(groups)
        elif groups.ndim == 1 and not groups.is_floating_point():
            index = GroupIndex._of_codes(groups)
        else:
            raise ValueError(
                "groups must be integer codes of shape [n] or float memberships of shape [n, k], "
                f"got {groups.dtype} of shape {list(groups.shape)}."
            )
        if n is not None and index.n_rows != n:
            raise ValueError(f"groups must have one entry per row ({n}), got {index.n_rows}.")
        return index

    @staticmethod
    def _of_codes(codes: Tensor) -> GroupIndex:
        if codes.numel() == 0:
            return GroupIndex(codes.long(), None, 0)
        low, high = (int(end) for end in torch.aminmax(codes))
        if low < -1:
            raise ValueError(f"groups must hold codes from 0 up, or -1 for none, got {low}.")
        return GroupIndex(codes.long(), None, high + 1, low < 0)

    @staticmethod
    def _of_memberships(memberships: Tensor) -> GroupIndex:
        wrong = memberships.detach()[~((memberships >= 0) & memberships.isfinite())]
        if len(wrong):
            raise ValueError(
                f"groups must hold memberships that are finite and at least 0, got {wrong[0]:g}."
            )
        return GroupIndex(None, memberships, memberships.shape[1])

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        rows = self.codes if self.codes is not None else self.memberships
        assert rows is not None
        return rows.shape[0]

    def sum(self, values: Tensor) -> Tensor:
        """Add up row values [..., n] within each group, to [..., k]."""
        if self.memberships is not None:
            return values @ self.memberships.to(values.dtype)
        assert self.codes is not None
        codes = self.codes.to(values.device)
        if self.has_outsiders:
            codes = torch.where(codes < 0, self.n_groups, codes)
        sums = values.new_zeros((*values.shape[:-1], self.n_groups + self.has_outsiders))
        sums = sums.index_add(-1, codes, values)
        return sums[..., : self.n_groups] if self.has_outsiders else sums

    def cells(self, labels: Tensor) -> Tensor:
        """Number of each row's group and label 0 or 1 together, as ``2 * code + label``."""
        assert self.codes is not None
        codes = self.codes.to(labels.device)
        if self.has_outsiders:
            codes = torch.where(codes < 0, self.n_groups, codes)
        return 2 * codes + labels.long()


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
    name : {"dp", "tpr", "fpr", "tnr", "fnr", "ppv", "accuracy"}, or a sequence of them
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


def group_masses(
    decisions: Tensor, labels: Tensor, index: GroupIndex, sample_weight: Tensor | None = None
) -> Tensor:
    """Selected negatives and positives, and all negatives and positives, of each group.

    Parameters
    ----------
    decisions : Tensor of shape [..., n], or [..., c, n]
        Soft or hard decisions in [0, 1].
    labels : Tensor of shape [n], or [c, n]
        0 or 1; with [c, n] one row of labels for each row of decisions.
    index : GroupIndex
    sample_weight : Tensor of shape [n], optional

    Returns
    -------
    Tensor of shape [..., k, 4], or [..., c, k, 4]
        Of the dtype of the decisions, but at least float32: a sum of ones in bfloat16 ends at 256.

    Examples
    --------
    >>> index = GroupIndex.of(torch.tensor([0, 0, 1]))
    >>> group_masses(torch.tensor([1.0, 0.0, 1.0]), torch.tensor([1, 1, 0]), index)
    tensor([[0., 1., 0., 2.],
            [1., 0., 1., 0.]])
    """
    decisions = decisions.to(torch.promote_types(decisions.dtype, torch.float32))
    ones = torch.ones_like(labels, dtype=decisions.dtype)
    total = ones if sample_weight is None else ones * sample_weight.to(decisions.dtype)
    selected = decisions if sample_weight is None else decisions * total
    if index.memberships is not None:
        h = index.memberships.to(decisions.dtype)
        y = labels.to(decisions.dtype)
        parts = [selected * (1 - y), selected * y, total * (1 - y), total * y]
        return torch.stack([(part @ h).expand(*selected.shape[:-1], -1) for part in parts], -1)
    cells = index.cells(labels)
    size = 2 * (index.n_groups + index.has_outsiders)
    sums = [_add_up(part, cells, size)[..., : 2 * index.n_groups] for part in (selected, total)]
    pairs = [part.unflatten(-1, (index.n_groups, 2)) for part in sums]
    return torch.cat([pairs[0], pairs[1].expand_as(pairs[0])], -1)


def _add_up(values: Tensor, cells: Tensor, size: int) -> Tensor:
    """Sums of values [..., n] by cell [n], or of [..., c, n] by [c, n], to [..., size]."""
    if cells.ndim == 1:
        return values.new_zeros((*values.shape[:-1], size)).index_add(-1, cells, values)
    classes = len(cells)
    apart = (cells + size * torch.arange(classes, device=cells.device).unsqueeze(1)).flatten()
    flat = values.expand(*values.shape[:-2], *cells.shape).flatten(-2)
    sums = values.new_zeros((*flat.shape[:-1], classes * size)).index_add(-1, apart, flat)
    return sums.unflatten(-1, (classes, size))


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
