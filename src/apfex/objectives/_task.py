"""Task losses."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import final

from torch import Tensor

from apfex.distributed import workers_of
from apfex.groups import Groups
from apfex.objectives._base import BatchObjective
from apfex.objectives._batch import Batch, check_batch
from apfex.objectives._fused import Recipe
from apfex.rates import GroupIndex


class _TaskLoss(BatchObjective):
    """What both task losses share: groups do not matter, and each row has a loss."""

    def read_groups(self, groups: Groups | Tensor | None, n: int) -> None:
        """Groups of any kind are left aside."""

    def per_example(self, scores: Tensor, y: Tensor) -> Tensor:
        """Loss of each row, shape [n]."""
        return self._of_rows(check_batch(scores, y, is_part=workers_of(scores) is not None))

    @abstractmethod
    def _of_rows(self, batch: Batch) -> Tensor:
        """Loss of each row of a checked batch, shape [n]."""


@final
@dataclass(frozen=True)
class CrossEntropy(_TaskLoss):
    """Mean cross-entropy: logistic for scores [n], softmax for scores [n, c].

    Examples
    --------
    >>> import torch
    >>> CrossEntropy()(torch.zeros(4), torch.tensor([0, 1, 1, 0]))
    tensor(0.6931)
    """

    def define(self, batch: Batch, index: GroupIndex | None = None) -> Tensor:  # noqa: ARG002
        """Return the loss by its definition."""
        return batch.cross_entropy

    @cached_property
    def recipe(self) -> Recipe:
        """How the loss of binary scores is put together."""
        return Recipe(shares=(1.0, 0.0, 0.0))

    def _of_rows(self, batch: Batch) -> Tensor:
        """Loss of each row of a checked batch, shape [n]."""
        return batch.row_losses()

    def typical_scale(self, n_classes: int) -> float:
        """Loss of a model that knows nothing: ``log(c)``."""
        return math.log(n_classes)


@final
@dataclass(frozen=True)
class SquaredError(_TaskLoss):
    """Mean squared error of the probability against the 0/1 label (the Brier score).

    Examples
    --------
    >>> import torch
    >>> SquaredError()(torch.zeros(2), torch.tensor([0, 1]))
    tensor(0.2500)
    """

    def define(self, batch: Batch, index: GroupIndex | None = None) -> Tensor:  # noqa: ARG002
        """Return the loss by its definition."""
        return batch.squared_error

    @cached_property
    def recipe(self) -> Recipe:
        """How the loss of binary scores is put together."""
        return Recipe(shares=(0.0, 1.0, 0.0))

    def _of_rows(self, batch: Batch) -> Tensor:
        """Loss of each row of a checked batch, shape [n]."""
        return batch.row_errors()

    def typical_scale(self, n_classes: int) -> float:
        """Loss of a model that gives every class the same probability, summed over classes."""
        return 0.25 if n_classes == 2 else 1 - 1 / n_classes
