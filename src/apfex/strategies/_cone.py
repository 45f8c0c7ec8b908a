"""PCP: Pareto cone projection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor

from apfex.arguments import require_numbers
from apfex.solvers import min_norm
from apfex.strategies._base import Decision, StepView


@final
@dataclass(frozen=True)
class ConeProjection:
    """The shortest combination of the gradients that are not zero (PCP).

    Parameters
    ----------
    form : {"min_norm", "unit"}
        "unit" scales the direction to length one, as the paper prints it; meant for plain SGD.
    zero : float
        A gradient shorter than this share of the longest seen of its objective counts as zero.

    Notes
    -----
    Section "Pareto cone projection" of the paper. In parameter space the direction makes no
    obtuse angle with any gradient, so a small step along it harms no objective. No projection on
    a cone happens: it is MGDA on scaled gradients, without those that vanish, because one zero
    gradient would stop all the others.

    Examples
    --------
    >>> gramian = torch.diag(torch.tensor([1.0, 0.0, 3.0]))
    >>> ConeProjection().decide(StepView.of(gramian, torch.ones(3))).weights
    tensor([0.7500, 0.0000, 0.2500])
    """

    form: Literal["min_norm", "unit"] = "min_norm"
    zero: float = 1e-8

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        if self.form not in ("min_norm", "unit"):
            raise ValueError(f"form must be 'min_norm' or 'unit', got {self.form!r}.")
        require_numbers(zero=self.zero)
        if not 0 <= self.zero < 1:
            raise ValueError(f"zero must be at least 0 and below 1, got {self.zero}.")

    def decide(self, view: StepView) -> Decision:
        """Weigh the objectives of one step."""
        weights = active_min_norm(view, self.zero)
        if self.form == "unit":
            length = direction_length(view.gramian, weights).unsqueeze(-1)
            weights = torch.where(length > 0, weights / length, weights)
        return Decision(weights)


def active_min_norm(view: StepView, zero: float = 1e-8) -> Tensor:
    """Min-norm weights over the gradients that are not zero; the others get weight 0.

    A gradient left out is replaced by a copy of the first active one, which leaves the hull as it
    is, and the weight of the copy is handed back: no problem of another size is ever needed.

    Examples
    --------
    >>> active_min_norm(StepView.of(torch.diag(torch.tensor([1.0, 0.0])), torch.ones(2)))
    tensor([1., 0.])
    """
    gramian, norms = view.gramian, view.norms
    longest = torch.maximum(view.history.largest_norms.to(norms), norms)
    active = (norms > zero * longest) & (norms > 0)
    if active.device.type == "cpu" and bool(active.all()):
        return min_norm(gramian)
    m = norms.shape[-1]
    own = torch.arange(m, device=norms.device).expand_as(active)
    first = active.to(torch.int64).argmax(-1, keepdim=True)
    stand_in = torch.where(active, own, first)
    rows = gramian.gather(-2, stand_in.unsqueeze(-1).expand_as(gramian))
    filled = rows.gather(-1, stand_in.unsqueeze(-2).expand_as(gramian))
    weights = min_norm(filled)
    return torch.zeros_like(weights).scatter_add(-1, stand_in, weights)


def direction_length(gramian: Tensor, weights: Tensor) -> Tensor:
    """Length of the weighted sum of gradients, shape [...].

    Examples
    --------
    >>> direction_length(torch.eye(2), torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    products = (gramian.double() @ weights.double().unsqueeze(-1)).squeeze(-1)
    square = (weights.double() * products).sum(-1)
    return square.clamp(min=0).sqrt().to(gramian.dtype)
