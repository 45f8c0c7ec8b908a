"""Which rows belong to which group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.groups import Groups
from apfex.rates._add_up import add_up


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
        sums = add_up(values, codes, self.n_groups + self.has_outsiders)
        return sums[..., : self.n_groups] if self.has_outsiders else sums

    def cells(self, labels: Tensor) -> Tensor:
        """Number of each row's group and label 0 or 1 together, as ``2 * code + label``."""
        assert self.codes is not None
        codes = self.codes.to(labels.device)
        if self.has_outsiders:
            codes = torch.where(codes < 0, self.n_groups, codes)
        return 2 * codes + labels.long()
