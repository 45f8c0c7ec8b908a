"""Fairness over all pairs of any number of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final, get_args

from torch import Tensor

from apfex.arguments import require_numbers
from apfex.objectives._base import BatchObjective, check_task_weight, need_groups
from apfex.objectives._batch import Batch
from apfex.objectives._fused import Gap, Recipe, Step
from apfex.objectives._gaps import over_classes, soft_gaps
from apfex.objectives._pairs import Aggregate
from apfex.objectives._task import CrossEntropy
from apfex.rates import RATES, GroupIndex, RateName
from apfex.relaxations import ccr_step, identity_step, tanh_step

Relaxation = Literal["tanh", "ccr", "identity"]
_STEPS = {"tanh": tanh_step, "ccr": ccr_step, "identity": identity_step}


@final
@dataclass(frozen=True)
class FairnessLoss(BatchObjective):
    """Difference of a soft rate over all pairs of groups, plus a share of the task loss.

    Parameters
    ----------
    rate : {"dp", "tpr", "fpr", "tnr", "fnr", "ppv", "npv", "accuracy"}
    relaxation : {"tanh", "ccr", "identity"} or callable
        The soft step from probabilities to decisions.
    task_weight : float
        Share of the cross-entropy that is added.
    aggregate : {"smooth_mean", "mean", "max", "smooth_max", "rms"}
        Mean of :func:`~apfex.relaxations.smooth_abs` of the differences, the same with ``|.|``,
        the largest difference, a smooth largest (:func:`~apfex.relaxations.smooth_max` of the
        rates plus that of their negatives), or the root mean square distance from the mean rate.
        All take O(k log k) for k groups.
    min_count : float
        A group whose denominator in the batch is smaller is left out of all pairs.

    Notes
    -----
    The paper's L_fairDP and L_fairTPR with the mean over unordered pairs. For several classes each
    is taken against the rest, and the differences are averaged over classes (the largest for
    "max" and "smooth_max"). A group that is absent from the batch is left out, instead of a small
    number being added to its denominator; with fewer than two groups left the difference is 0.
    A class in which fewer than two groups can be told apart is left out of the mean.

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([4.0, -4.0, 4.0, 4.0])
    >>> loss = FairnessLoss("dp", task_weight=0.0, aggregate="max")
    >>> loss(scores, torch.tensor([1, 0, 1, 0]), torch.tensor([0, 0, 1, 1]))
    tensor(0.4920)
    """

    rate: RateName = "dp"
    relaxation: Relaxation | Callable[[Tensor], Tensor] = "tanh"
    task_weight: float = 0.1
    aggregate: Aggregate = "smooth_mean"
    min_count: float = 1e-3

    def __post_init__(self) -> None:
        """Refuse settings that name nothing."""
        for name, value, allowed in (
            ("rate", self.rate, tuple(RATES)),
            ("aggregate", self.aggregate, get_args(Aggregate)),
            ("relaxation", self.relaxation, tuple(_STEPS)),
        ):
            if value not in allowed and not (name == "relaxation" and callable(value)):
                raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}.")
        check_task_weight(self.task_weight)
        require_numbers(min_count=self.min_count)
        if not self.min_count > 0:
            raise ValueError(f"min_count must be positive, got {self.min_count}.")

    def define(self, batch: Batch, index: GroupIndex | None) -> Tensor:
        """Return the loss by its definition."""
        (gap,) = fairness_gaps([self], batch, need_groups(index, self))
        return gap + self.task_weight * batch.cross_entropy if self.task_weight else gap

    @cached_property
    def recipe(self) -> Recipe | None:
        """How the loss of binary scores is put together; None for a step of the user's own."""
        if callable(self.relaxation):
            return None
        gap = Gap(self.rate, (Step(self.relaxation), self.aggregate, self.min_count))
        return Recipe(gap, (self.task_weight, 0.0, 0.0))

    def check_groups(self, index: GroupIndex | None) -> None:
        """Refuse to do without."""
        need_groups(index, self)

    @property
    def step(self) -> Callable[[Tensor], Tensor]:
        """The relaxed step."""
        return _STEPS[self.relaxation] if isinstance(self.relaxation, str) else self.relaxation

    def typical_scale(self, n_classes: int) -> float:
        """Largest difference plus the share of an uninformed model's task loss.

        The difference is at most 1, and 1/2 from the mean; in the selection rates of c > 2
        classes, averaged, only two can differ by as much.
        """
        largest = 0.5 if self.aggregate == "rms" else 1.0
        if n_classes > 2 and self.rate == "dp" and self.aggregate not in ("max", "smooth_max"):
            largest *= 2.0 / n_classes
        return largest + self.task_weight * CrossEntropy().typical_scale(n_classes)


def fairness_gaps(losses: Sequence[FairnessLoss], batch: Batch, index: GroupIndex) -> Tensor:
    """Gaps [r] of losses that differ in rate and task weight only."""
    first = losses[0]
    gaps = soft_gaps(
        [loss.rate for loss in losses],
        batch.decisions(first.step),
        batch.one_vs_rest,
        index,
        batch.sample_weight,
        first.aggregate,
        first.min_count,
        batch.team,
        batch.mean_weight,
    )
    return over_classes(gaps, first.aggregate)
