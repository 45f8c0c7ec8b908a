"""The seam of an objective, and the checked batch that objectives share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, final, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor

from apfex.groups import Groups
from apfex.objectives._fused import Recipe, can_fuse, fused_loss, has_codes
from apfex.rates import GroupIndex


@runtime_checkable
class Objective(Protocol):
    """A scalar to minimise, of scores, labels, groups and weights."""

    def __call__(
        self,
        scores: Tensor,
        y: Tensor,
        groups: Groups | Tensor | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of one batch, a scalar that depends on ``scores``."""
        ...

    def evaluate(self, batch: Batch, index: GroupIndex | None) -> Tensor:
        """Return the loss of a checked batch, whose parts other objectives may have used."""
        ...

    def typical_scale(self, n_classes: int) -> float:
        """Value of an uninformed model, or the largest gap: the ``range`` scale."""
        ...


class BatchObjective(ABC):
    """What our objectives share: a call checks the batch, reads the groups, and evaluates both."""

    def __call__(
        self,
        scores: Tensor,
        y: Tensor,
        groups: Groups | Tensor | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of one batch."""
        batch = check_batch(scores, y, sample_weight)
        return self.evaluate(batch, group_reader(self)(groups, scores.shape[0]))

    def evaluate(self, batch: Batch, index: GroupIndex | None) -> Tensor:
        """Return the loss of a checked batch."""
        self.check_groups(index)
        recipe = self.recipe
        if recipe is None or recipe.gap is None or not (has_codes(index) and can_fuse(batch)):
            return self.define(batch, index)
        return fused_loss(batch, recipe, index)

    @abstractmethod
    def define(self, batch: Batch, index: GroupIndex | None) -> Tensor:
        """Return the loss by its definition, for any scores, groups and device."""

    @cached_property
    def recipe(self) -> Recipe | None:
        """How the loss of binary scores is put together; None where it has to be defined."""
        return None

    def check_groups(self, index: GroupIndex | None) -> None:  # noqa: B027
        """Refuse groups that the loss cannot be computed for."""


@final
@dataclass(frozen=True, eq=False)
class Batch:
    """A checked batch. What several objectives need of it is computed once.

    Attributes
    ----------
    scores : Tensor of shape [n] or [n, c]
    y : Tensor of shape [n]
    sample_weight : Tensor of shape [n] or None
    """

    scores: Tensor
    y: Tensor
    sample_weight: Tensor | None = None

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
        if self.sample_weight is not None:
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
        """Mean of row values [n], weighted where there are weights."""
        if self.sample_weight is None:
            return values.mean()
        return (values * self.sample_weight).sum() / self.sample_weight.sum()


def check_batch(scores: Tensor, y: Tensor, sample_weight: Tensor | None = None) -> Batch:
    """Check a batch at the edge; a column of scores [n, 1] counts as [n]."""
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
    if n == 0:
        raise ValueError("scores must have at least one row, got an empty batch.")
    if y.shape != (n,):
        raise ValueError(f"y must have shape [{n}], one label per score, got {list(y.shape)}.")
    _check_labels(y, 2 if scores.ndim == 1 else scores.shape[1])
    if sample_weight is not None:
        _check_weights(sample_weight, n)
        sample_weight = sample_weight.to(scores.dtype)
    return Batch(scores, y, sample_weight)


def read_groups(groups: Groups | Tensor | None, n: int) -> GroupIndex | None:
    """Read the groups of n rows, where there are any."""
    return None if groups is None else GroupIndex.of(groups, n)


GroupReader = Callable[[Groups | Tensor | None, int], GroupIndex | None]


def group_reader(objective: object) -> GroupReader:
    """How an objective reads groups: its own way, or the common one."""
    return getattr(objective, "read_groups", read_groups)


def need_groups(index: GroupIndex | None, asker: object) -> GroupIndex:
    """Return the groups, or raise an error that names the objective which needs them."""
    if index is None:
        raise TypeError(f"groups must be given for {type(asker).__name__}, got None.")
    return index


def check_task_weight(task_weight: float) -> None:
    """Refuse a negative share of the task loss."""
    if not task_weight >= 0:
        raise ValueError(f"task_weight must be at least 0, got {task_weight}.")


def _check_labels(y: Tensor, n_classes: int) -> None:
    low, high = (float(end) for end in torch.aminmax(y))
    if not (low >= 0 and high <= n_classes - 1):
        raise ValueError(
            f"y must hold labels from 0 to {n_classes - 1}, got values from {low:g} to {high:g}."
        )

    if y.is_floating_point() and not bool((y == y.round()).all()):
        raise ValueError("y must hold whole numbers as labels, got some between them.")


def _check_weights(sample_weight: Tensor, n: int) -> None:
    if sample_weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape [{n}], got {list(sample_weight.shape)}.")
    low, high = (float(end) for end in torch.aminmax(sample_weight))
    if not (low >= 0 and 0 < high < float("inf")):
        raise ValueError(
            "sample_weight must be finite, non-negative and not all zero, got values from "
            f"{low:g} to {high:g}."
        )
