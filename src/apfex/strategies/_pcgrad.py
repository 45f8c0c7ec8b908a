"""PCGrad: projecting conflicting gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.strategies._base import Decision, StepView
from apfex.strategies._sampling import uniforms


@final
@dataclass(frozen=True)
class PCGrad:
    """Sum of gradients, each freed of what conflicts with the others (Yu et al., 2020).

    Gradient i is projected, in a random order of the others, on the normal plane of each gradient
    it conflicts with; all in terms of the Gramian.

    Examples
    --------
    >>> PCGrad().decide(StepView.of(torch.eye(2), torch.ones(2))).weights
    tensor([1., 1.])
    """

    def decide(self, view: StepView) -> Decision:
        """Weigh the objectives of one step."""
        gramian = view.gramian.double()
        m = gramian.shape[-1]
        squares = gramian.diagonal(dim1=-2, dim2=-1)
        rows = torch.eye(m, dtype=torch.float64, device=gramian.device).expand_as(gramian).clone()
        for others in _orders(view, m).unbind(-1):  # [..., m]: one other gradient for each row
            against = gramian.gather(-2, others.unsqueeze(-1).expand_as(gramian))
            inner = (rows * against).sum(-1)
            length = squares.gather(-1, others)
            share = torch.where(length > 0, inner.clamp(max=0) / length.clamp(min=1e-300), 0.0)
            rows = rows.scatter_add(-1, others.unsqueeze(-1), -share.unsqueeze(-1))
        return Decision(rows.sum(-2).to(view.gramian.dtype))


def _orders(view: StepView, m: int) -> Tensor:
    """For each gradient a random order of the others, shape [..., m, m - 1]."""
    keys = uniforms(view.seeds, view.step, m * m).unflatten(-1, (m, m)).to(view.losses.device)
    keys = keys.masked_fill(torch.eye(m, dtype=torch.bool, device=keys.device), torch.inf)
    return keys.argsort(-1)[..., : m - 1]
