"""Equal weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from apfex.strategies._base import Decision, StepView, equal_weights


@final
@dataclass(frozen=True)
class EqualWeights:
    """The same weight for every objective: plain linear scalarisation.

    Examples
    --------
    >>> import torch
    >>> EqualWeights().decide(StepView.of(torch.eye(2), torch.ones(2))).weights
    tensor([0.5000, 0.5000])
    """

    def decide(self, view: StepView) -> Decision:
        """Weigh the objectives of one step."""
        return Decision(equal_weights(view))
