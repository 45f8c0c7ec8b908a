"""The constraint step: Algorithm 1, lines 8 to 10.

A constraint is ``value <= bound`` with a gradient, for instance "the dp gap is at most 0.03". At
each step the active ones join: the direction becomes the nearest one that raises no active
constraint and moves down those that are violated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.arguments import require_numbers
from apfex.solvers import nonnegative_qp

__all__ = ["Constraint"]


@final
@dataclass(frozen=True, eq=False)
class Constraint:
    """``value <= bound``, for one step.

    Parameters
    ----------
    soft : scalar Tensor
        What is differentiated, as the soft gap of the batch.
    bound : float
    value : float, optional
        What is compared with the bound, as the running hard gap; ``soft`` itself by default.
    margin : float
        Active from ``bound - margin`` on.
    gain : float
        A violated constraint must fall at least at the rate ``gain * (value - bound)``.

    Examples
    --------
    >>> constraint = Constraint(torch.tensor(0.07), bound=0.05)
    >>> constraint.is_active, round(constraint.excess, 4)
    (True, 0.02)
    """

    soft: Tensor
    bound: float
    value: float | None = None
    margin: float = 0.0
    gain: float = 1.0

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        if not isinstance(self.soft, Tensor):
            raise TypeError(f"soft must be a scalar tensor, got {type(self.soft).__name__}.")
        if self.soft.numel() != 1:
            raise ValueError(f"soft must be a scalar, got shape {list(self.soft.shape)}.")
        require_numbers(bound=self.bound, margin=self.margin, gain=self.gain)
        if self.value is not None:
            require_numbers(value=self.value)
        if not self.margin >= 0:
            raise ValueError(f"margin must be at least 0, got {self.margin}.")
        if not self.gain > 0:
            raise ValueError(f"gain must be positive, got {self.gain}.")
        numbers = {"bound": self.bound, "margin": self.margin, "gain": self.gain}
        numbers |= {"soft": float(self.soft.detach()), "value": self.value or 0.0}
        for name, number in numbers.items():
            if number is None or not abs(number) < float("inf"):
                raise ValueError(f"{name} must be finite, got {number}.")

    @property
    def excess(self) -> float:
        """How far the value is above the bound."""
        value = float(self.soft.detach()) if self.value is None else float(self.value)
        return value - self.bound

    @property
    def is_active(self) -> bool:
        """Whether the value is above the bound, or within the margin below it."""
        return self.excess > -self.margin

    @property
    def required_descent(self) -> float:
        """Least inner product of the direction with the constraint's gradient."""
        return self.gain * max(self.excess, 0.0)


@final
@dataclass(frozen=True, eq=False)
class ConstraintStep:
    """What to add to the direction, and what could not be had.

    Attributes
    ----------
    multipliers : Tensor of shape [..., j]
        Weights of the constraints' gradients in the new direction, non-negative.
    slack : Tensor of shape [...]
        By how much the worst constraint is missed: 0 where all can be met.
    """

    multipliers: Tensor
    slack: Tensor


def constraint_step(gramian: Tensor, required: Tensor) -> ConstraintStep:
    """Nearest direction that meets every active constraint.

    Parameters
    ----------
    gramian : Tensor of shape [..., 1 + j, 1 + j]
        Inner products of the direction g (first) and the constraints' gradients a_1, ..., a_j.
    required : Tensor of shape [..., j]
        Least inner products: ``<a_i, g'> >= required_i``.

    Returns
    -------
    ConstraintStep
        The new direction is ``g' = g + sum_i multipliers_i a_i``.

    Notes
    -----
    The quadratic programme ``min |g' - g|^2 / 2`` has the dual
    ``min l'Al / 2 - (required - <a, g>)'l`` over ``l >= 0``, with A the Gramian of the constraints.
    A ridge of 1e-9 of each diagonal entry is quadratic slack: where constraints contradict each
    other the programme still has an answer, and ``slack`` says what was given up.

    Examples
    --------
    >>> gramian = torch.tensor([[1.0, -0.5], [-0.5, 1.0]])
    >>> constraint_step(gramian, torch.tensor([0.1])).multipliers
    tensor([0.6000])
    """
    exact, least = gramian.double(), required.double()
    among, towards = exact[..., 1:, 1:], exact[..., 1:, 0]
    squares = among.diagonal(dim1=-2, dim2=-1)
    lengths = torch.where(squares > 0, squares.clamp(min=0).sqrt(), 1.0)
    cosines = among / lengths.unsqueeze(-1) / lengths.unsqueeze(-2)
    ridge = 1e-9 * torch.eye(least.shape[-1], dtype=torch.float64, device=exact.device)
    missing = torch.where(squares > 0, (least - towards) / lengths, 0.0)
    multipliers = nonnegative_qp(cosines + ridge, missing) / lengths
    reached = towards + (among @ multipliers.unsqueeze(-1)).squeeze(-1)
    short = (least - reached).clamp(min=0).amax(-1)
    # Rounding and the ridge miss by about 1e-9 of what was asked for: that is not slack.
    asked = (least.abs() + towards.abs()).amax(-1)
    slack = torch.where(short > 1e-6 * asked, short, 0.0)
    return ConstraintStep(multipliers.to(gramian.dtype), slack.to(gramian.dtype))
