"""CAGrad: conflict-averse gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.arguments import require_numbers
from apfex.solvers import min_norm
from apfex.strategies._base import Decision, StepView

_ROUNDS = 60


@final
@dataclass(frozen=True)
class CAGrad:
    """The best worst-case improvement within a ball around the mean gradient (Liu et al., 2021).

    Parameters
    ----------
    radius : float
        Of the ball, as a share of the mean gradient's length; below 1.

    Notes
    -----
    The dual, ``min_w <g_w, g_0> + radius |g_0| |g_w|`` over the simplex, is solved exactly: with
    ``|g_w| = min_s (|g_w|^2 / s + s) / 2`` each s gives the min-norm problem of the gradients
    shifted by a multiple of g_0, and the best s is where ``s = |g_w(s)|``, found by bisection.

    Examples
    --------
    >>> CAGrad().decide(StepView.of(torch.eye(2), torch.ones(2))).weights
    tensor([0.7000, 0.7000])
    """

    radius: float = 0.4

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        require_numbers(radius=self.radius)
        if not 0 <= self.radius < 1:
            raise ValueError(f"radius must be at least 0 and below 1, got {self.radius}.")

    def decide(self, view: StepView) -> Decision:
        """Weigh the objectives of one step."""
        gramian = view.gramian.double()
        m = gramian.shape[-1]
        scale = gramian.diagonal(dim1=-2, dim2=-1).amax(-1)[..., None, None]
        gramian = torch.where(scale > 0, gramian / scale.clamp(min=1e-300), gramian)
        inner = gramian.mean(-1)  # <g_k, g_0>
        mean_square = inner.mean(-1, keepdim=True).clamp(min=0)
        reach = self.radius * mean_square.sqrt()
        dual = self._dual_weights(gramian, inner, mean_square, reach)
        length = _length(gramian, dual)
        share = torch.where(length > 0, reach / length.clamp(min=1e-300), 0.0)
        return Decision((1.0 / m + share * dual).to(view.gramian.dtype))

    def _dual_weights(
        self, gramian: Tensor, inner: Tensor, mean_square: Tensor, reach: Tensor
    ) -> Tensor:
        low = torch.zeros_like(reach)
        high = gramian.diagonal(dim1=-2, dim2=-1).amax(-1, keepdim=True).clamp(min=0).sqrt()
        dual = torch.full_like(inner, 1.0 / inner.shape[-1])
        for _ in range(_ROUNDS if self.radius > 0 else 0):
            middle = (low + high) / 2
            shift = torch.where(reach > 0, middle / reach.clamp(min=1e-300), 0.0)
            crossed = inner.unsqueeze(-1) + inner.unsqueeze(-2)
            shifted = gramian + shift.unsqueeze(-1) * crossed
            shifted = shifted + (shift.square() * mean_square).unsqueeze(-1)
            dual = min_norm(shifted)
            longer = _length(gramian, dual) > middle
            low, high = torch.where(longer, middle, low), torch.where(longer, high, middle)
        return dual


def _length(gramian: Tensor, weights: Tensor) -> Tensor:
    products = (gramian @ weights.unsqueeze(-1)).squeeze(-1)
    return (weights * products).sum(-1, keepdim=True).clamp(min=0).sqrt()
