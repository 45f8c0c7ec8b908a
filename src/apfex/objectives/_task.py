"""Task losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from torch import Tensor

from apfex.groups import Groups
from apfex.objectives._base import Batch, check_batch
from apfex.rates import GroupIndex


@final
@dataclass(frozen=True)
class CrossEntropy:
    """Mean cross-entropy: logistic for scores [n], softmax for scores [n, c].

    Examples
    --------
    >>> import torch
    >>> CrossEntropy()(torch.zeros(4), torch.tensor([0, 1, 1, 0]))
    tensor(0.6931)
    """

    def __call__(
        self,
        scores: Tensor,
        y: Tensor,
        groups: Groups | Tensor | None = None,  # noqa: ARG002 - the seam's signature
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of one batch."""
        return self.evaluate(check_batch(scores, y, sample_weight))

    def evaluate(self, batch: Batch, index: GroupIndex | None = None) -> Tensor:  # noqa: ARG002
        """Return the loss of a checked batch."""
        return batch.cross_entropy

    def per_example(self, scores: Tensor, y: Tensor) -> Tensor:
        """Loss of each row, shape [n]."""
        return check_batch(scores, y).row_losses()

    def typical_scale(self, n_classes: int) -> float:
        """Loss of a model that knows nothing: ``log(c)``."""
        return math.log(n_classes)


@final
@dataclass(frozen=True)
class SquaredError:
    """Mean squared error of the probability against the 0/1 label (the Brier score).

    Examples
    --------
    >>> import torch
    >>> SquaredError()(torch.zeros(2), torch.tensor([0, 1]))
    tensor(0.2500)
    """

    def __call__(
        self,
        scores: Tensor,
        y: Tensor,
        groups: Groups | Tensor | None = None,  # noqa: ARG002 - the seam's signature
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of one batch."""
        return self.evaluate(check_batch(scores, y, sample_weight))

    def evaluate(self, batch: Batch, index: GroupIndex | None = None) -> Tensor:  # noqa: ARG002
        """Return the loss of a checked batch."""
        return batch.squared_error

    def per_example(self, scores: Tensor, y: Tensor) -> Tensor:
        """Loss of each row, shape [n]."""
        return check_batch(scores, y).row_errors()

    def typical_scale(self, n_classes: int) -> float:
        """Loss of a model that gives every class the same probability, summed over classes."""
        return 0.25 if n_classes == 2 else 1 - 1 / n_classes
