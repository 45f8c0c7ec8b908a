"""Smooth Tchebycheff scalarisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.arguments import require_numbers
from apfex.strategies._base import Decision, StepView


@final
@dataclass(frozen=True, eq=False)
class SmoothTchebycheff:
    """Gradient weights of ``mu log sum_k exp(lambda_k (L_k - z_k) / mu)`` (Lin et al., 2024).

    Parameters
    ----------
    preference : sequence or Tensor of shape [m] or [..., m], optional
        lambda: the ray along which the front is met; equal by default.
    ideal : sequence or Tensor of the same shape, optional
        z; 0 by default.
    smoothing : float
        mu: the maximum itself as it falls to 0.

    Notes
    -----
    Unlike a weighted sum it reaches the parts of a front that are not convex.

    Examples
    --------
    >>> view = StepView.of(torch.eye(2), torch.tensor([1.0, 0.0]))
    >>> SmoothTchebycheff(smoothing=0.1).decide(view).weights
    tensor([0.4967, 0.0033])
    """

    preference: Sequence[float] | Tensor | None = None
    ideal: Sequence[float] | Tensor | None = None
    smoothing: float = 0.1

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        require_numbers(smoothing=self.smoothing)
        for name in ("preference", "ideal"):
            value = getattr(self, name)
            try:
                torch.as_tensor(0.0 if value is None else value, dtype=torch.float64)
            except (TypeError, ValueError, RuntimeError) as error:
                raise TypeError(
                    f"{name} must be numbers, one for each objective, got {value!r}."
                ) from error
        if not self.smoothing > 0:
            raise ValueError(f"smoothing must be positive, got {self.smoothing}.")
        if self.preference is not None and not bool((torch.as_tensor(self.preference) >= 0).all()):
            raise ValueError(f"preference must be non-negative, got {self.preference}.")

    def decide(self, view: StepView) -> Decision:
        """Weigh the objectives of one step."""
        losses = view.losses
        ray = _read("preference", self.preference, losses, 1 / losses.shape[-1])
        ideal = _read("ideal", self.ideal, losses, 0.0)
        sharpness = torch.softmax(ray * (losses - ideal) / self.smoothing, -1)
        return Decision(ray * sharpness)


def _read(
    name: str, given: Sequence[float] | Tensor | None, losses: Tensor, default: float
) -> Tensor:
    if given is None:
        return torch.full_like(losses, default)
    value, m = torch.as_tensor(given).to(losses), losses.shape[-1]
    if value.shape[-1:] != (m,):
        raise ValueError(
            f"{name} must have one entry for each of the {m} losses, got shape "
            f"{list(value.shape)}; give {m} numbers in the order of the losses, or None."
        )
    return value
