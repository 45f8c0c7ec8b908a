"""PSS: Pareto set sampling, with random numbers that are functions of seed and counter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
import torch
from torch import Tensor

from apfex.arguments import require_numbers
from apfex.strategies._base import Decision, StepView


@final
@dataclass(frozen=True)
class SetSampling:
    """Weights drawn evenly from the simplex, to leave a plateau (PSS).

    Parameters
    ----------
    blend : float
        Share of the new direction; the rest is the last one.
    hold : {"window", "step"}
        Draw once per window, or at every step. Drawn at every step the weights average out to
        equal ones, and nothing is explored.

    Notes
    -----
    Section "Pareto set sampling" of the paper: Dirichlet(1, ..., 1) weights, and
    ``d = blend d~ + (1 - blend) d_last``.

    Examples
    --------
    >>> decision = SetSampling().decide(StepView.of(torch.eye(3), torch.ones(3)))
    >>> decision.weights.sum()
    tensor(1.)
    """

    blend: float = 0.5
    hold: Literal["window", "step"] = "window"

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        require_numbers(blend=self.blend)
        if not 0 < self.blend <= 1:
            raise ValueError(f"blend must be above 0 and at most 1, got {self.blend}.")
        if self.hold not in ("window", "step"):
            raise ValueError(f"hold must be 'window' or 'step', got {self.hold!r}.")

    def decide(self, view: StepView) -> Decision:
        """Weigh the objectives of one step."""
        counter = view.step // view.history.window if self.hold == "window" else view.step
        weights = dirichlet(view.seeds, counter, view.losses.shape[-1]).to(view.losses)
        return Decision(weights, torch.full_like(view.losses[..., 0], self.blend))


def uniforms(seeds: Tensor, counter: int, size: int) -> Tensor:
    """Uniform numbers in (0, 1), shape [..., size], one stream for each seed.

    Notes
    -----
    Two rounds of the SplitMix64 finalizer over (seed, counter, position): no state to keep,
    checkpoint or share between workers.
    """
    with np.errstate(over="ignore"):
        stream = _mix(seeds.detach().cpu().numpy().astype(np.uint64)[..., None])
        stream = _mix(stream + np.uint64(counter) * np.uint64(0xD1342543DE82EF95))
        positions = np.arange(1, size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        bits = _mix(stream + positions) >> np.uint64(11)
    return torch.from_numpy((bits.astype(np.float64) + 0.5) * 2.0**-53).to(seeds.device)


def dirichlet(seeds: Tensor, counter: int, size: int) -> Tensor:
    """Points drawn evenly from the simplex, Dirichlet(1, ..., 1), shape [..., size]."""
    exponentials = -uniforms(seeds, counter, size).log()
    return exponentials / exponentials.sum(-1, keepdim=True)


def _mix(z: np.ndarray) -> np.ndarray:
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
