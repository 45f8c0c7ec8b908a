"""Two rules without settings: equal weights; and MGDA, the shortest combination of gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from apfex.solvers import min_norm
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


@final
@dataclass(frozen=True)
class MGDA:
    """Weights of the shortest vector in the hull of all gradients (Desideri, 2012).

    A single zero gradient stops it; :class:`ConeProjection` leaves such gradients out.

    Examples
    --------
    >>> import torch
    >>> MGDA().decide(StepView.of(torch.diag(torch.tensor([1.0, 3.0])), torch.ones(2))).weights
    tensor([0.7500, 0.2500])
    """

    def decide(self, view: StepView) -> Decision:
        """Weigh the objectives of one step."""
        return Decision(min_norm(view.gramian))
