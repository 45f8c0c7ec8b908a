"""Rows to learn from: with groups for the gaps, or with group and label as one target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, final

import torch
from torch import Tensor

from apfex.distributed import Workers
from apfex.rates import GroupIndex


@final
@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Inputs, labels and groups of the rows that the members of a population learn from.

    Attributes
    ----------
    x : Tensor of shape [n, d]
    y : int64 Tensor of shape [n]
    codes : int64 Tensor of shape [a, n]
        Group of each row, for each of a groupings.
    n_groups : tuple of numbers
        Of each of the groupings.
    sample_weight : Tensor of shape [n] or [b, n], or None
        With [b, n] every member has weights of its own; rows of weight 0 do not influence it.
    memberships : tuple of Tensors of shape [n, k]
        Further groupings, to whose groups rows belong in part.
    class_weight : Tensor of shape [c], or None
        How much a row of each label counts in the cross-entropy of members; gaps are those of the
        rows as they are.
    team : Workers or None
        Those that have the other rows of a batch of which these are a part.

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
    memberships: tuple[Tensor, ...] = ()
    class_weight: Tensor | None = None
    team: Workers | None = None

    def take(self, rows: Tensor, team: Workers | None = None) -> TrainingRows:
        """Return some of the rows: a batch, or this worker's part of one."""
        return TrainingRows(
            self.x[rows],
            self.y[rows],
            self.codes[:, rows],
            self.n_groups,
            None if self.sample_weight is None else self.sample_weight[..., rows],
            tuple(shares[rows] for shares in self.memberships),
            self.class_weight,
            team,
        )

    def total(self, sums: Tensor) -> Tensor:
        """Return sums over the rows of a batch, from those over the rows of each worker."""
        return sums if self.team is None else self.team.sum(sums)

    def of_members(self, members: Tensor) -> TrainingRows:
        """Return the same rows, with the sample weights of some of the members."""
        if self.sample_weight is None or self.sample_weight.ndim == 1:
            return self
        return replace(self, sample_weight=self.sample_weight[members])

    def weights(self) -> Tensor:
        """Return sample weights of shape [n] or [b, n]; ones where none are given."""
        if self.sample_weight is None:
            return torch.ones(len(self.y), dtype=self.x.dtype, device=self.x.device)
        return self.sample_weight

    def label_weights(self) -> Tensor:
        """Return how much each row [n] counts in the cross-entropy by its label, beside that."""
        if self.class_weight is None:
            return torch.ones(len(self.y), dtype=self.x.dtype, device=self.x.device)
        return self.class_weight[self.y]

    def weighted_by_label(self) -> TrainingRows:
        """Return the same rows with weights of the labels in those of the rows."""
        if self.class_weight is None:
            return self
        weight = self.weights() * self.label_weights()
        return replace(self, sample_weight=weight, class_weight=None)

    def facts(self) -> dict[str, Any]:
        """All that is learnt from, by names that a user knows; a checkpoint compares it."""
        return {
            "number of rows": len(self.y),
            "inputs": self.x,
            "labels": self.y,
            "groups": [self.codes, *self.memberships],
            "weights": [self.weights(), self.label_weights()],
        }

    def indexes(self) -> list[GroupIndex]:
        """Return one group index for each grouping."""
        soft = [GroupIndex(None, shares, shares.shape[1]) for shares in self.memberships]
        pairs = zip(self.codes, self.n_groups[: len(self.codes)], strict=True)
        return [GroupIndex(codes, None, k) for codes, k in pairs] + soft


@final
@dataclass(frozen=True, eq=False)
class JointRows:
    """Rows to learn the joint probabilities of group and label from.

    Attributes
    ----------
    x : Tensor of shape [n, d]
    targets : int64 Tensor of shape [n], or [n, s]
        Group and label in one number: ``group * c + label``. With [n, s] a row is in one group of
        each of s groupings, whose groups are numbered one after the other.
    shape : pair of int
        Number of groups k, of all groupings together, and of classes c.
    folds : int64 Tensor of shape [n]
        Fold of each row, from 0 on. For each fold a model is trained on the other folds.
    sample_weight : Tensor of shape [n], optional
    sizes : tuple of s numbers
        Groups of each grouping, where there are several; they add up to k.

    Examples
    --------
    >>> JointRows(torch.zeros(4, 3), torch.arange(4), (2, 2), torch.tensor([0, 1, 1, 0])).n_folds
    2
    """

    x: Tensor
    targets: Tensor
    shape: tuple[int, int]
    folds: Tensor
    sample_weight: Tensor | None = None
    sizes: tuple[int, ...] = ()

    @property
    def labels(self) -> Tensor:
        """Labels of shape [n]."""
        return labels_of(self.targets, self.shape[1])

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.folds.max()) + 1

    def facts(self) -> dict[str, Any]:
        """All that is learnt from, by names that a user knows; a checkpoint compares it."""
        return {
            "number of rows": len(self.x),
            "inputs": self.x,
            "labels or groups": [self.targets, self.folds],
            "weights": self.weight,
        }

    def by_grouping(self) -> list[JointRows]:
        """The same rows with the groups of one grouping at a time, numbered from 0 on.

        Examples
        --------
        >>> targets = torch.tensor([[0, 4], [3, 9]])  # one of two groups, and one of three
        >>> rows = JointRows(torch.zeros(2, 1), targets, (5, 2), torch.arange(2), sizes=(2, 3))
        >>> [(one.targets.tolist(), one.shape) for one in rows.by_grouping()]
        [([0, 3], (2, 2)), ([0, 5], (3, 2))]
        """
        c, starts = self.shape[1], accumulate(self.sizes, initial=0)
        return [
            replace(self, targets=targets - c * start, shape=(size, c), sizes=())
            for targets, size, start in zip(self.targets.T, self.sizes, starts, strict=False)
        ]

    @property
    def weight(self) -> Tensor:
        """Sample weights of shape [n]; ones where none are given."""
        return torch.ones_like(self.x[:, 0]) if self.sample_weight is None else self.sample_weight


def labels_of(targets: Tensor, n_classes: int) -> Tensor:
    """Labels [n] of targets [n], or [n, s] for several groupings, which have the same.

    Examples
    --------
    >>> labels_of(torch.tensor([[0, 4], [3, 5]]), 2)
    tensor([0, 1])
    """
    return (targets if targets.ndim == 1 else targets[:, 0]) % n_classes
