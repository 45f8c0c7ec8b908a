"""Aims: where on the front each member of a population is to end up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.rates import RateName


@final
@dataclass(frozen=True, eq=False)
class Aims:
    """How strongly each member is pressed towards parity in each rate.

    Attributes
    ----------
    rates : tuple of r names
    weights : Tensor of shape [b, a * r]
        Weight of each gap beside the cross-entropy, for each of a groupings the r rates; a row of
        zeros is a plain model.

    Examples
    --------
    >>> Aims(("dp",), torch.tensor([[0.0], [1.0]])).n_members
    2
    """

    rates: tuple[RateName, ...]
    weights: Tensor

    def __post_init__(self) -> None:
        """Refuse weights of another shape, or negative ones."""
        r, shape = len(self.rates), list(self.weights.shape)
        if len(shape) != 2 or (shape[1] % r or not shape[1] if r else shape[1]):
            raise ValueError(f"weights must have shape [b, a * {r}], got {shape}.")
        if not bool(((self.weights >= 0) & self.weights.isfinite()).all()):
            raise ValueError("weights must be finite and non-negative.")

    @property
    def n_members(self) -> int:
        """Number of members b."""
        return len(self.weights)


def weight_ladder(
    rates: Sequence[RateName], n_members: int = 16, largest: float = 3.0, steps: int = 6
) -> Aims:
    """A plain member, a ladder of weights for each rate, and a few for all rates together.

    Parameters
    ----------
    rates : sequence of names
    n_members : int
        At least two.
    largest : float
        Top rung; each next one is half of it.
    steps : int
        Rungs over which the weight falls to ``largest / 2**(steps - 1)``; longer ladders are
        finer, not deeper.

    Examples
    --------
    >>> weight_ladder(("dp",), n_members=4).weights.squeeze(1).tolist()
    [0.0, 0.09375, 0.5303300619125366, 3.0]
    """
    if n_members < 2:
        raise ValueError(f"n_members must be at least 2, got {n_members}.")
    r = len(rates)
    kinds = [*torch.eye(r), torch.ones(r)] if r > 1 else [torch.ones(1)]
    pressed = n_members - 1
    joint = 0 if r == 1 else max(1, pressed // 8)
    shares = [(pressed - joint) // r + (i < (pressed - joint) % r) for i in range(r)]
    rows = [torch.zeros(r)]
    for kind, count in zip(kinds, [*shares, joint][: len(kinds)], strict=True):
        exponents = torch.linspace(-(steps - 1), 0, count) if count > 1 else torch.zeros(count)
        rows += [largest * 2.0**exponent * kind for exponent in exponents]
    return Aims(tuple(rates), torch.stack(rows))
