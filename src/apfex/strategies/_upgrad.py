"""UPGrad: unconflicting projection of gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch

from apfex.solvers import nonnegative_qp
from apfex.strategies._base import Decision, StepView


@final
@dataclass(frozen=True)
class UPGrad:
    """Mean of the gradients' projections on the dual cone (Quinton and Rey, 2024).

    Each gradient is moved by as little as is needed to conflict with none; the mean of those
    conflicts with none either.

    Examples
    --------
    >>> UPGrad().decide(StepView.of(torch.eye(2), torch.ones(2))).weights
    tensor([0.5000, 0.5000])
    """

    def decide(self, view: StepView) -> Decision:
        """Weigh the objectives of one step."""
        gramian = view.gramian.double()
        lengths = gramian.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt()
        safe = torch.where(lengths > 0, lengths, 1.0)
        cosines = gramian / safe.unsqueeze(-1) / safe.unsqueeze(-2)
        # Row i: the least v >= 0 on unit vectors such that g_i / |g_i| + sum v_j g_j / |g_j|
        # conflicts with nobody.
        added = nonnegative_qp(cosines.unsqueeze(-3), -cosines)
        share = lengths.unsqueeze(-1) * added / safe.unsqueeze(-2)
        eye = torch.eye(gramian.shape[-1], dtype=torch.float64, device=gramian.device)
        return Decision((eye + share).mean(-2).to(view.gramian.dtype))
