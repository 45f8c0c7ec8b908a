"""What each loss and its gradient is divided by, so that objectives can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, final

import torch
from torch import Tensor

from apfex.history import History

Scales = Literal["first_window", "none"] | Sequence[float] | Tensor


@final
class LossScales:
    """The scales of m losses: given ones, or the largest value of each in the first window.

    Parameters
    ----------
    scales : "first_window", "none" or sequence of m numbers
    floor : float
        Smallest scale of "first_window".

    Attributes
    ----------
    given : float64 Tensor of shape [m] or [1], or None
        None: the largest losses are the scales.
    largest : float64 Tensor of shape [m] or None
        Largest losses so far; None before the first step.
    """

    def __init__(self, scales: Scales, floor: float) -> None:
        self.given = _read_scales(scales)
        self.largest: Tensor | None = None
        self.floor = floor

    @property
    def current(self) -> Tensor | None:
        """The scales of the steps so far; None before the first step, unless they were given."""
        return self.largest if self.given is None else self.given

    def check(self, m: int) -> None:
        """Refuse scales that were given for another number of losses."""
        if self.given is not None and self.given.numel() not in (1, m):
            raise ValueError(
                f"scales must have one entry for each of the {m} losses, got {self.given.numel()}."
            )

    def of(self, losses: Tensor, history: History) -> Tensor:
        """The scales [m] of the coming step, whose losses are known."""
        if self.given is not None:
            return self.given.expand_as(losses)
        if self.largest is None:
            return losses.abs().clamp(min=self.floor)
        if history.n_windows > 0:
            return self.largest
        return torch.maximum(self.largest, losses.abs())

    def settle(self, scales: Tensor, history: History) -> None:
        """A step with these scales was taken: earlier losses are to be comparable with its own."""
        if self.given is None:
            if self.largest is not None and scales is not self.largest:
                history.rescale(self.largest / scales)
            self.largest = scales


def _read_scales(scales: Scales) -> Tensor | None:
    if isinstance(scales, str):
        if scales not in ("first_window", "none"):
            raise ValueError(f"scales must be 'first_window', 'none' or numbers, got {scales!r}.")
        return None if scales == "first_window" else torch.ones(1, dtype=torch.float64)
    given = torch.as_tensor(scales, dtype=torch.float64).detach().cpu()
    if given.ndim != 1 or not bool(((given > 0) & given.isfinite()).all()):
        raise ValueError(f"scales must be positive and finite, one per loss, got {scales}.")
    return given
