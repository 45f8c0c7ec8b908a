"""The paper's multi-class loss, with group memberships through the CCR step."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Literal, final

import torch
from torch import Tensor

from apfex.arguments import require_kind, require_numbers
from apfex.groups import Groups, soft_memberships
from apfex.objectives._base import BatchObjective, check_task_weight, need_groups
from apfex.objectives._batch import Batch
from apfex.objectives._gaps import over_classes, soft_gaps
from apfex.objectives._read_batch import read_groups
from apfex.objectives._task import CrossEntropy
from apfex.rates import GroupIndex


@final
@dataclass(frozen=True, eq=False)
class MulticlassCCRLoss(BatchObjective):
    """Mean difference of class probabilities over groups and classes, plus the task loss.

    Parameters
    ----------
    rate : {"dp", "tpr"}
    threshold, width : float or Tensor of shape [k]
        Of the CCR step that turns membership scores into memberships, common or per group.
    task_weight : float
        Share of the cross-entropy that is added.
    min_count : float
        A group with a smaller soft count of rows (for "tpr": in a class) is left out of the pairs.

    Notes
    -----
    With membership scores a, class probabilities p = softmax(scores), k groups and c classes:

    1. ``h[i, g] = CCR(a[i, g]; threshold_g, width_g)``: soft membership;
    2. dp: ``M[g, j] = sum_i h[i, g] p[i, j] / sum_i h[i, g]``;
       tpr: the same sums over the rows with ``y_i = j``;
    3. ``L = 2 / (c k (k - 1)) sum_j sum_{g < g'} |M[g, j] - M[g', j]| + task_weight * CE``.

    Gradients flow through p and through h. ``groups`` in the call are membership scores [n, k];
    codes and ``Groups`` are accepted too, and are their own memberships. Classes enter by their
    probabilities, without a step. The absolute value is the smooth one of
    :func:`~apfex.relaxations.smooth_abs`.

    Examples
    --------
    >>> scores = torch.tensor([[9.0, 0.0, 0.0], [0.0, 9.0, 0.0]])
    >>> loss = MulticlassCCRLoss(task_weight=0.0)
    >>> loss(scores, torch.tensor([0, 1]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(0.6661)
    """

    rate: Literal["dp", "tpr"] = "dp"
    threshold: float | Tensor = 0.5
    width: float | Tensor = 0.25
    task_weight: float = 0.1
    min_count: float = 1e-3

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        if self.rate not in ("dp", "tpr"):
            raise ValueError(f"rate must be 'dp' or 'tpr', got {self.rate!r}.")
        check_task_weight(self.task_weight)
        require_numbers(min_count=self.min_count)
        for name in ("threshold", "width"):
            require_kind(name, getattr(self, name), (Real, Tensor), "a number or a tensor")
        if not bool(torch.isfinite(torch.as_tensor(self.threshold)).all()):
            raise ValueError(f"threshold must be finite, got {self.threshold}.")
        for name in ("width", "min_count"):
            value = getattr(self, name)
            if not bool((torch.as_tensor(value) > 0).all()):
                raise ValueError(f"{name} must be positive, got {value}.")

    def read_groups(self, groups: Groups | Tensor | None, n: int) -> GroupIndex | None:
        """Read membership scores of any sign, codes or ``Groups``."""
        if isinstance(groups, Tensor) and groups.is_floating_point() and groups.ndim == 2:
            groups = soft_memberships(groups, self.threshold, self.width)
        return read_groups(groups, n)

    def define(self, batch: Batch, index: GroupIndex | None) -> Tensor:
        """Return the loss by its definition."""
        index = need_groups(index, self)
        if not batch.is_multiclass:
            raise ValueError(f"scores must have shape [n, c], got {list(batch.scores.shape)}.")
        gaps = soft_gaps(
            [self.rate],
            batch.probabilities,
            batch.one_vs_rest,
            index,
            batch.sample_weight,
            "smooth_mean",
            self.min_count,
            batch.team,
            batch.mean_weight,
        )
        gap = over_classes(gaps, "smooth_mean")[0]
        return gap + self.task_weight * batch.cross_entropy if self.task_weight else gap

    def typical_scale(self, n_classes: int) -> float:
        """Largest difference plus the share of an uninformed model's task loss.

        Two groups that are given different classes differ by 1 in the selection rates of two of
        the c classes, and possibly in the true positive rates of all of them.
        """
        largest = 2.0 / n_classes if self.rate == "dp" else 1.0
        return largest + self.task_weight * CrossEntropy().typical_scale(n_classes)
