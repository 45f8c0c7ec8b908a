"""The two-group losses of Padh et al. (2021), plain and as their code has them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, final, get_args

from torch import Tensor

from apfex.arguments import require_numbers
from apfex.objectives._base import BatchObjective, check_task_weight, need_groups
from apfex.objectives._batch import Batch
from apfex.objectives._fused import Gap, Recipe, Step
from apfex.objectives._gaps import over_classes, soft_gaps
from apfex.objectives._task import SquaredError
from apfex.rates import GroupIndex, RateName

Form = Literal["plain", "masked"]


@dataclass(frozen=True)
class _TwoGroupLoss(BatchObjective):
    """What both losses share; see :class:`DPLoss`."""

    task_weight: float = 0.1
    beta: float = 0.0
    form: Form = "plain"
    steepness: float | None = None
    rate: ClassVar[RateName]
    published_steepness: ClassVar[float]

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        check_task_weight(self.task_weight)
        require_numbers(beta=self.beta)
        if not self.beta >= 0:
            raise ValueError(f"beta must be at least 0, got {self.beta}.")
        if self.form not in get_args(Form):
            raise ValueError(f"form must be one of {list(get_args(Form))}, got {self.form!r}.")
        if self.steepness is not None:
            require_numbers(steepness=self.steepness)
        if self.steepness is not None and not self.steepness > 0:
            raise ValueError(f"steepness must be positive, got {self.steepness}.")

    def define(self, batch: Batch, index: GroupIndex | None) -> Tensor:
        """Return the loss by its definition."""
        index = need_groups(index, self)
        if batch.is_multiclass:
            raise ValueError(
                f"scores must have shape [n] for {type(self).__name__}, got "
                f"{list(batch.scores.shape)}; use FairnessLoss for several classes."
            )
        decisions = self._step.decide(batch.probabilities)
        gaps = soft_gaps(
            [self.rate],
            decisions,
            batch.y,
            index,
            batch.sample_weight,
            "mean",
            1e-3,
            batch.team,
            batch.mean_weight,
        )
        gap = over_classes(gaps, "mean")[0]
        p = batch.probabilities
        return gap + self.task_weight * batch.squared_error + self.beta * batch.mean(p * p)

    @cached_property
    def recipe(self) -> Recipe:
        """How the loss of binary scores is put together."""
        gap = Gap(self.rate, (self._step, "mean", 1e-3))
        return Recipe(gap, (0.0, self.task_weight, self.beta))

    def check_groups(self, index: GroupIndex | None) -> None:
        """Refuse more groups than two."""
        n_groups = need_groups(index, self).n_groups
        if n_groups > 2:
            raise ValueError(
                f"groups must be two for {type(self).__name__}, got {n_groups}; "
                "use FairnessLoss for more."
            )

    def typical_scale(self, n_classes: int) -> float:
        """Largest difference (1) plus the other terms of an uninformed model."""
        task = self.task_weight * SquaredError().typical_scale(n_classes)
        return 1.0 + task + self.beta / n_classes**2

    @property
    def _step(self) -> Step:
        default = 5.0 if self.form == "plain" else self.published_steepness
        return Step("tanh", self.steepness or default, masked=self.form == "masked")


@final
@dataclass(frozen=True)
class DPLoss(_TwoGroupLoss):
    """``|R_0 - R_1| + task_weight * MSE + beta * mean(p^2)`` for the selection rate.

    Parameters
    ----------
    task_weight : float
        Share of the mean squared error of the probabilities.
    beta : float
        Weight of the mean squared probability.
    form : {"plain", "masked"}
        "plain": R_g is the group's mean of the soft step. "masked", as in the published code:
        only rows whose soft step exceeds 1/2 are added up, so that a model which selects nobody
        is an exact minimum without gradient.
    steepness : float, optional
        Of the tanh step; 5 by default, and 3 for the masked form, as published.

    Notes
    -----
    For a two-valued attribute. A group that is absent from the batch makes the difference 0;
    the published code takes its rate as 0 instead.

    Examples
    --------
    >>> import torch
    >>> loss = DPLoss(task_weight=0.0)
    >>> loss(torch.tensor([4.0, -4.0]), torch.tensor([1, 0]), torch.tensor([0, 1]))
    tensor(0.9840)
    """

    rate: ClassVar[RateName] = "dp"
    published_steepness: ClassVar[float] = 3.0


@final
@dataclass(frozen=True)
class TPRLoss(_TwoGroupLoss):
    """``|R_0 - R_1| + task_weight * MSE + beta * mean(p^2)`` for the true positive rate.

    The parameters are those of :class:`DPLoss`; the steepness is 5 in both forms.

    Examples
    --------
    >>> import torch
    >>> loss = TPRLoss(task_weight=0.0)
    >>> loss(torch.tensor([4.0, -4.0]), torch.tensor([1, 1]), torch.tensor([0, 1]))
    tensor(0.9840)
    """

    rate: ClassVar[RateName] = "tpr"
    published_steepness: ClassVar[float] = 5.0
