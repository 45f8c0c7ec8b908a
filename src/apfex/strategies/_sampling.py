"""PSS: Pareto set sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import torch

from apfex.strategies._base import Decision, StepView
from apfex.strategies._draws import dirichlet


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
        if not 0 < self.blend <= 1:
            raise ValueError(f"blend must be above 0 and at most 1, got {self.blend}.")
        if self.hold not in ("window", "step"):
            raise ValueError(f"hold must be 'window' or 'step', got {self.hold!r}.")

    def decide(self, view: StepView) -> Decision:
        """Weigh the objectives of one step."""
        counter = view.step // view.history.window if self.hold == "window" else view.step
        weights = dirichlet(view.seeds, counter, view.losses.shape[-1]).to(view.losses)
        return Decision(weights, torch.full_like(view.losses[..., 0], self.blend))
