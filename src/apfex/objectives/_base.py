"""The seam of an objective, and what our objectives share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Protocol, runtime_checkable

from torch import Tensor

from apfex.arguments import require_numbers
from apfex.groups import Groups
from apfex.objectives._batch import Batch
from apfex.objectives._fused import Recipe, can_fuse, fused_loss, has_codes
from apfex.objectives._read_batch import GroupReader, read_batch, read_groups
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
        batch, (index,) = read_batch(scores, y, sample_weight, [group_reader(self)], [groups])
        return self.evaluate(batch, index)

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
    require_numbers(task_weight=task_weight)
    if not task_weight >= 0:
        raise ValueError(f"task_weight must be at least 0, got {task_weight}.")
