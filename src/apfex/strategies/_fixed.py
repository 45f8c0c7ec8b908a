"""Weights of the user's own, the same at every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.strategies._base import Decision, StepView


@final
@dataclass(frozen=True)
class FixedWeights:
    """The same weights at every step: linear scalarisation with weights of your own.

    Parameters
    ----------
    weights : sequence of float
        One for each objective, in the order of the losses (the error first, then the gaps); not
        negative, not all zero. Only ratios matter: they are given a sum of one, so that equal ones
        are :class:`EqualWeights`.

    Notes
    -----
    In the search of a front every member has an aim of its own, and strategies weigh what that
    leaves: with ``FixedWeights((1, 2))`` the gap counts twice as much for each member as by its
    aim. In :class:`apfex.APFEx` the weights are those of the losses over their scales.

    Examples
    --------
    >>> import torch
    >>> FixedWeights((3, 1)).decide(StepView.of(torch.eye(2), torch.ones(2))).weights
    tensor([0.7500, 0.2500])
    """

    weights: Sequence[float] | Tensor

    def __post_init__(self) -> None:
        """Refuse weights that no direction can be made of."""
        try:
            given = torch.as_tensor(self.weights, dtype=torch.float64)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"weights must be numbers, one for each objective, got {self.weights!r}."
            ) from error
        usable = given.ndim == 1 and bool((given.isfinite() & (given >= 0)).all())
        if not usable or not bool(given.any()):
            raise ValueError(
                "weights must be finite numbers from 0 on, one for each objective and not all "
                f"zero, got {self.weights!r}."
            )

    def decide(self, view: StepView) -> Decision:
        """Weigh the objectives of one step."""
        given, m = torch.as_tensor(self.weights).to(view.losses), view.losses.shape[-1]
        if len(given) != m:
            raise ValueError(
                f"weights must have one entry for each of the {m} losses, got {len(given)}; give "
                f"{m} numbers in the order of the losses."
            )
        return Decision((given / given.sum()).expand_as(view.losses))
