"""AW: adaptive weighting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.arguments import require_numbers
from apfex.history import History
from apfex.strategies._base import Decision, StepView, equal_weights


@final
@dataclass(frozen=True)
class AdaptiveWeighting:
    """More weight for the objectives that improve least (AW).

    Parameters
    ----------
    rate : float
        tau: 0 gives equal weights, larger values follow the slowest objective.
    clip : float
        Improvements are clipped to ``[-clip, clip]``: one loss that triples would otherwise take
        all the weight.

    Notes
    -----
    ``w = softmax(-rate * rho)``, with rho the relative improvement of the window-mean losses over
    the last two windows; equal weights before there are two. Every weight is at least
    ``exp(-rate (rho_k - rho_min)) / m``, also when losses rise. Without the clip it is dynamic
    weight averaging (Liu et al., 2019) at temperature ``1 / rate``.

    Examples
    --------
    >>> AdaptiveWeighting().decide(StepView.of(torch.eye(2), torch.ones(2))).weights
    tensor([0.5000, 0.5000])
    """

    rate: float = 10.0
    clip: float = 1.0

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        require_numbers(rate=self.rate, clip=self.clip)
        if not self.rate >= 0:
            raise ValueError(f"rate must be at least 0, got {self.rate}.")
        if not self.clip > 0:
            raise ValueError(f"clip must be positive, got {self.clip}.")

    def decide(self, view: StepView) -> Decision:
        """Weigh the objectives of one step."""
        if view.history.n_windows < 2:
            return Decision(equal_weights(view))
        rho = relative_improvement(view.history).clamp(-self.clip, self.clip)
        return Decision(torch.softmax(-self.rate * rho, -1).to(view.losses.dtype))


def relative_improvement(history: History, epsilon: float = 1e-8) -> Tensor:
    """rho: by which share of itself each loss fell between the last two windows, [..., m]."""
    before, now = history.last_losses(2)
    return (before - now) / (before.abs() + epsilon)
