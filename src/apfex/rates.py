# ruff: noqa: ARG005
"""Rates of groups: numerators over denominators, defined once for training and for audit.

A rate is a share of a group. Its numerator and denominator are sums over rows, so batches and
workers simply add up, and the rates of parent groups follow from those of their cells. With soft
decisions in [0, 1] a rate is differentiable; with hard ones it is the usual metric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor

from apfex.groups import Groups

__all__ = ["RATES", "GroupIndex", "Rate", "RateName", "RateSums", "gap", "rate_sums"]

RateName = Literal["dp", "tpr", "fpr", "tnr", "fnr", "ppv", "accuracy"]


@final
@dataclass(frozen=True)
class Rate:
    """A share of rows: who counts below the line, and who of those above it.

    ``counted`` and ``met`` map decisions s and labels y, both in [0, 1], to row weights; the
    numerator sums ``counted * met``. ``counted`` is None where every row counts.
    """

    counted: Callable[[Tensor, Tensor], Tensor] | None
    met: Callable[[Tensor, Tensor], Tensor]
    needs_labels: bool = True


RATES: dict[RateName, Rate] = {
    "dp": Rate(None, lambda s, y: s, needs_labels=False),
    "tpr": Rate(lambda s, y: y, lambda s, y: s),
    "fpr": Rate(lambda s, y: 1 - y, lambda s, y: s),
    "tnr": Rate(lambda s, y: 1 - y, lambda s, y: 1 - s),
    "fnr": Rate(lambda s, y: y, lambda s, y: 1 - s),
    "ppv": Rate(lambda s, y: s, lambda s, y: y),
    "accuracy": Rate(None, lambda s, y: s * y + (1 - s) * (1 - y)),
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
            index = GroupIndex(None, groups, groups.shape[1])
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

    def counts(self, dtype: torch.dtype) -> Tensor:
        """Rows (or soft mass) in each group, shape [k]; computed once where nothing is learned."""
        if self.memberships is not None:
            return self.memberships.to(dtype).sum(0)
        assert self.codes is not None
        if "_counts" not in self.__dict__:
            ones = torch.ones(self.n_rows, dtype=torch.float64, device=self.codes.device)
            self.__dict__["_counts"] = self.sum(ones)
        return self.__dict__["_counts"].to(dtype)


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
        Soft or hard decisions in [0, 1]; with ``multiclass`` one row per class.
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
    labels = _labels(names, decisions, y, multiclass)
    weight = None if sample_weight is None else sample_weight.to(decisions.dtype)
    above, below = [], []
    for one in names:
        counted, met = _row_weights(one, decisions, labels, weight, multiclass)
        below.append(index.counts(decisions.dtype) if counted is None else index.sum(counted))
        above.append(met if counted is None else counted * met)
    if isinstance(name, str):
        numerator, denominator = index.sum(above[0]), below[0]
    else:
        numerator = index.sum(torch.stack(torch.broadcast_tensors(*above)))
        denominator = torch.stack([part.expand(numerator.shape[1:]) for part in below])
    return RateSums(numerator, denominator.expand_as(numerator))


def _labels(
    names: Sequence[RateName], decisions: Tensor, y: Tensor | None, multiclass: bool
) -> Tensor:
    """Labels as 0 and 1 in the shape of a decision."""
    if y is None:
        needed = [name for name in names if RATES[name].needs_labels]
        if needed:
            raise ValueError(f"y must be given for the rate {needed[0]!r}, got None.")
        return decisions
    if not multiclass:
        return y.to(decisions.dtype)
    classes = torch.arange(decisions.shape[-2], device=y.device).unsqueeze(-1)
    return (y == classes).to(decisions.dtype)


def _row_weights(
    name: RateName, decisions: Tensor, labels: Tensor, weight: Tensor | None, multiclass: bool
) -> tuple[Tensor | None, Tensor]:
    """Who counts below the line (None: every row, once), and how far each of them meets it."""
    rate = RATES[name]
    if multiclass and name == "accuracy":
        met = (decisions * labels).sum(-2, keepdim=True).expand_as(decisions)
    else:
        met = rate.met(decisions, labels)
    if rate.counted is None:
        return weight, met
    counted = rate.counted(decisions, labels)
    return counted if weight is None else counted * weight, met


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
