"""Early stopping of members, each at its own best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import torch
from torch import Tensor

from apfex.models._checkpoint import check_like
from apfex.models._stacked_mlp import Population


@final
class EarlyStopping:
    """Which members go on learning, and the parameters of each at its best evaluation.

    Parameters
    ----------
    population : Population
        Members that stop get their best parameters back.
    patience : int
        A member stops after so many evaluations in a row without a new best.
    """

    def __init__(self, population: Population, patience: int) -> None:
        self._population, self._patience = population, patience
        device, b = population.parameters()[0].device, population.n_members
        self._best = torch.full((b,), torch.inf, dtype=torch.float64, device=device)
        self._waited = torch.zeros(b, dtype=torch.int64, device=device)
        self._going = torch.ones(b, dtype=torch.bool, device=device)
        self._values: list[Tensor] = []

    def update(self, losses: Tensor) -> Tensor:
        """Take in a loss per member [b], and return which members go on [b].

        The losses of members that stopped before do not count. NaN is no improvement.
        """
        losses = torch.as_tensor(losses).detach().to(self._best)
        if losses.shape != self._best.shape:
            raise ValueError(
                f"on_epoch must return one loss per member ({len(self._best)}), got shape "
                f"{list(losses.shape)}."
            )
        now = self._population.values()
        self._values = self._values or [value.clone() for value in now]
        better = losses < self._best
        self._best = torch.where(better, losses, self._best)
        self._waited = torch.where(better, 0, self._waited + 1)
        _copy(now, self._values, better)
        stopped = self._going & (self._waited >= self._patience)
        _copy(self._values, now, stopped)
        self._going = self._going & ~stopped
        return self._going

    def state_dict(self) -> dict[str, Any]:
        """All that it remembers, for a checkpoint."""
        return {
            "best": self._best,
            "waited": self._waited,
            "going": self._going,
            "values": list(self._values),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken."""
        own = self.state_dict() | {"values": self._population.values() if state["values"] else []}
        check_like(state, own, "stopping")
        if bool((state["best"].isnan() | (state["best"] == -torch.inf)).any()):
            raise ValueError("stopping.best must be losses, got numbers that are none")
        device = self._best.device
        self._best, self._waited, self._going = (
            state[name].to(device) for name in ("best", "waited", "going")
        )
        self._values = [value.to(device) for value in state["values"]]

    @property
    def going(self) -> Tensor:
        """Which members go on learning [b]."""
        return self._going

    def restore(self) -> None:
        """Give the members that still learn the parameters of their best evaluation."""
        if self._values:
            _copy(self._values, self._population.values(), self._going)


def _copy(source: list[Tensor], target: list[Tensor], members: Tensor) -> None:
    for new, old in zip(source, target, strict=True):
        old[members] = new[members]
