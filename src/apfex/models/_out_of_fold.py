"""Rows as models see them that did not learn from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from apfex.models._joint_model import TINY, given_groups
from apfex.models._rows import labels_of


@final
@dataclass(frozen=True, eq=False)
class OutOfFoldPredictions:
    """Rows as models see them that did not learn from them, beside what the rows are.

    Attributes
    ----------
    probabilities : Tensor of shape [n, k, c]
        Out-of-fold probabilities of each group and label.
    targets : int64 Tensor of shape [n], or [n, s]
        ``group * c + label`` of each row, as in :class:`JointRows`.
    sample_weight : Tensor of shape [n] or None
    stands_for : int or None
        Rows that these are a weighted sample of; None where they are all there are.

    Examples
    --------
    >>> q = torch.tensor([[[0.4, 0.1], [0.2, 0.3]]])
    >>> OutOfFoldPredictions(q, torch.tensor([3])).memberships(trusted_rows=1.0)
    tensor([[0.4000, 0.1000, 0.2000, 0.6500]])
    """

    probabilities: Tensor
    targets: Tensor
    sample_weight: Tensor | None = None
    stands_for: int | None = None

    def shares(self) -> Tensor:
        """Return the weight of each row, summing to one."""
        weight = self.sample_weight
        if weight is None:
            return torch.full_like(self.probabilities[:, 0, 0], 1 / len(self.targets))
        return (weight / weight.sum()).to(self.probabilities)

    def label_shares(self) -> Tensor:
        """Return the share of each label [c] among the rows."""
        c = self.probabilities.shape[2]
        own = torch.nn.functional.one_hot(labels_of(self.targets, c), c).to(self.probabilities)
        return self.shares() @ own

    @property
    def n_groupings(self) -> int:
        """Groupings in each of which a row is in one group."""
        return 1 if self.targets.ndim == 1 else self.targets.shape[1]

    def take(self, rows: Tensor) -> OutOfFoldPredictions:
        """Return the predictions of some of the rows."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return OutOfFoldPredictions(
            self.probabilities[rows], self.targets[rows], weight, self.stands_for
        )

    def given_groups(self) -> OutOfFoldPredictions:
        """Return the predictions given the true group of each row."""
        c = self.probabilities.shape[2]
        return replace(self, probabilities=given_groups(self.probabilities, self.targets // c))

    def memberships(self, trusted_rows: float) -> Tensor:
        """Return how much each row counts for each group and label, shape [n, k * c].

        This is a mean of what the row is and of what the models predict. For a group and label with
        as many rows as ``trusted_rows`` both count the same; for a smaller one the models count
        more.
        """
        flat, shares = self.probabilities.flatten(1), self.shares()
        parts = self.n_groupings
        own = torch.zeros_like(flat).scatter_(1, self.targets.view(len(flat), -1), 1 / parts)
        trust = trusted_rows / (trusted_rows + parts * self._effective_rows(shares, own))
        return torch.lerp(own, flat, trust)

    def _effective_rows(self, shares: Tensor, own: Tensor) -> Tensor:
        """Rows of each group and label [k c], by Kish's formula.

        Of a sample each is counted on its own: some are kept whole, and of others few are taken.
        """
        if self.stands_for is None:
            effective = 1 / (shares**2).sum()
            return effective * (shares @ own)
        return (shares @ own) ** 2 / (shares**2 @ own).clamp_min(TINY)

    def row_share(self) -> float:
        """Return what one row counts: one over their effective number, or that of all rows."""
        if self.stands_for is not None:
            return 1 / self.stands_for
        return float((self.shares() ** 2).sum())
