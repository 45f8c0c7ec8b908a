"""What members learn from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from apfex.rates import GroupIndex


@final
@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What members learn from.

    Attributes
    ----------
    x : Tensor of shape [n, d]
    y : int64 Tensor of shape [n]
    codes : int64 Tensor of shape [a, n]
        Groups of the rows, one row for each grouping.
    n_groups : tuple of a numbers
    sample_weight : Tensor of shape [n] or [b, n], or None
        With [b, n] every member has weights of its own; a member never sees a row of weight 0.

    Examples
    --------
    >>> codes = torch.tensor([[0, 1, 0]])
    >>> rows = TrainingRows(torch.zeros(3, 2), torch.tensor([0, 1, 1]), codes, (2,))
    >>> rows.take(torch.tensor([1, 2])).y
    tensor([1, 1])
    """

    x: Tensor
    y: Tensor
    codes: Tensor
    n_groups: tuple[int, ...]
    sample_weight: Tensor | None = None

    def take(self, rows: Tensor) -> TrainingRows:
        """Some of the rows."""
        weight = None if self.sample_weight is None else self.sample_weight[..., rows]
        return TrainingRows(self.x[rows], self.y[rows], self.codes[:, rows], self.n_groups, weight)

    def of_members(self, members: Tensor) -> TrainingRows:
        """The same rows, with the weights of some of the members."""
        if self.sample_weight is None or self.sample_weight.ndim == 1:
            return self
        return replace(self, sample_weight=self.sample_weight[members])

    def weights(self) -> Tensor:
        """Weights of shape [n] or [b, n]; ones where none are given."""
        if self.sample_weight is None:
            return torch.ones(len(self.y), dtype=self.x.dtype, device=self.x.device)
        return self.sample_weight

    def indexes(self) -> list[GroupIndex]:
        """One group index for each grouping."""
        pairs = zip(self.codes, self.n_groups, strict=True)
        return [GroupIndex(codes, None, k) for codes, k in pairs]
