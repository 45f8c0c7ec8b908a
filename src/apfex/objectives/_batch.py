"""The checked batch that objectives share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from apfex.distributed import Workers, sum_over


@final
@dataclass(frozen=True, eq=False)
class Batch:
    """A checked batch. What several objectives need of it is computed once.

    Attributes
    ----------
    scores : Tensor of shape [n] or [n, c]
    y : Tensor of shape [n]
    sample_weight : Tensor of shape [n] or None
    team : Workers or None
        Those that share the batch, if these rows are a part of one; n may then be 0.
    total : float or None
        Rows of the whole batch, or their weight, where it is shared.
    mean_weight : float or None
        Of a row of the whole batch, where it is shared and rows have weights.
    """

    scores: Tensor
    y: Tensor
    sample_weight: Tensor | None = None
    team: Workers | None = None
    total: float | None = None
    mean_weight: float | None = None

    @property
    def is_multiclass(self) -> bool:
        """Whether there is a score per class."""
        return self.scores.ndim == 2

    @cached_property
    def labels(self) -> Tensor:
        """Labels in the dtype of the scores, shape [n]."""
        return self.y.to(self.scores.dtype)

    @cached_property
    def one_vs_rest(self) -> Tensor:
        """Labels as 0 and 1: [n], or [c, n] for each class against the rest."""
        if not self.is_multiclass:
            return self.y
        classes = torch.arange(self.scores.shape[1], device=self.y.device)
        return (self.y == classes.unsqueeze(-1)).long()

    @cached_property
    def probabilities(self) -> Tensor:
        """Probability of the positive class [n], or of each class [c, n]."""
        if self.is_multiclass:
            return torch.softmax(self.scores, dim=1).T
        return torch.sigmoid(self.scores)

    @cached_property
    def cross_entropy(self) -> Tensor:
        """Weighted mean cross-entropy."""
        if self.sample_weight is not None or self.team is not None:
            return self.mean(self.row_losses())
        if self.is_multiclass:
            return F.cross_entropy(self.scores, self.y.long())
        return F.binary_cross_entropy_with_logits(self.scores, self.labels)

    @cached_property
    def squared_error(self) -> Tensor:
        """Weighted mean squared error of the probabilities, summed over classes if several."""
        return self.mean(self.row_errors())

    @cached_property
    def _decisions(self) -> dict[Callable[[Tensor], Tensor], Tensor]:
        return {}

    def decisions(self, step: Callable[[Tensor], Tensor]) -> Tensor:
        """Soft decisions: the step of the probabilities, [n] or [c, n]."""
        if step not in self._decisions:
            self._decisions[step] = step(self.probabilities)
        return self._decisions[step]

    def row_losses(self) -> Tensor:
        """Cross-entropy of each row, shape [n]."""
        if self.is_multiclass:
            return F.cross_entropy(self.scores, self.y.long(), reduction="none")
        return F.binary_cross_entropy_with_logits(self.scores, self.labels, reduction="none")

    def row_errors(self) -> Tensor:
        """Squared error of each row's probabilities, shape [n]."""
        p = self.probabilities
        if not self.is_multiclass:
            return (p - self.labels) ** 2
        return ((p - F.one_hot(self.y.long(), p.shape[0]).T) ** 2).sum(0)

    def mean(self, values: Tensor) -> Tensor:
        """Mean of row values [n] over the whole batch, weighted where there are weights."""
        if self.team is not None and self.total is not None:
            weighted = values if self.sample_weight is None else values * self.sample_weight
            exact = torch.promote_types(values.dtype, torch.float32)
            return (sum_over(self.team, weighted.sum(dtype=exact)) / self.total).to(values.dtype)
        if self.sample_weight is None:
            return values.mean()
        return (values * self.sample_weight).sum() / self.sample_weight.sum()


def check_batch(
    scores: Tensor, y: Tensor, sample_weight: Tensor | None = None, *, is_part: bool = False
) -> Batch:
    """Check a batch at the edge; a column of scores [n, 1] counts as [n].

    A part of a batch, of which other workers have the rest, may have no rows.
    """
    for name, tensor in (("scores", scores), ("y", y), ("sample_weight", sample_weight)):
        if not isinstance(tensor, Tensor) and not (name == "sample_weight" and tensor is None):
            raise TypeError(f"{name} must be a tensor, got {type(tensor).__name__}.")
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores.squeeze(1)
    if scores.ndim not in (1, 2) or not scores.is_floating_point():
        raise ValueError(
            "scores must be logits of shape [n], [n, 1] or [n, c], got "
            f"{scores.dtype} of shape {list(scores.shape)}."
        )
    n = scores.shape[0]
    if n == 0 and not is_part:
        raise ValueError("scores must have at least one row, got an empty batch.")
    if y.shape != (n,):
        raise ValueError(f"y must have shape [{n}], one label per score, got {list(y.shape)}.")
    _check_labels(y, 2 if scores.ndim == 1 else scores.shape[1])
    if sample_weight is not None:
        _check_weights(sample_weight, n, is_part)
        sample_weight = sample_weight.to(scores.dtype)
    return Batch(scores, y, sample_weight)


def _check_labels(y: Tensor, n_classes: int) -> None:
    if y.numel() == 0:
        return
    low, high = (float(end) for end in torch.aminmax(y))
    if not (low >= 0 and high <= n_classes - 1):
        raise ValueError(
            f"y must hold labels from 0 to {n_classes - 1}, got values from {low:g} to {high:g}."
        )

    if y.is_floating_point() and not bool((y == y.round()).all()):
        raise ValueError("y must hold whole numbers as labels, got some between them.")


def _check_weights(sample_weight: Tensor, n: int, is_part: bool) -> None:
    if sample_weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape [{n}], got {list(sample_weight.shape)}.")
    if n == 0:
        return
    low, high = (float(end) for end in torch.aminmax(sample_weight.detach()))
    if not (low >= 0 and (high > 0 or is_part) and high < float("inf")):
        raise ValueError(
            "sample_weight must be finite, non-negative and not all zero, got values from "
            f"{low:g} to {high:g}."
        )
