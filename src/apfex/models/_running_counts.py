"""Confusion counts that run over batches."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, final

import torch
from torch import Tensor

from apfex.distributed import Workers
from apfex.models._checkpoint import check_like, check_tensor
from apfex.rates import GroupIndex, soft_counts


@final
class RunningCounts:
    """Soft confusion counts of all training rows, estimated from the batches of about one epoch.

    A small group has a handful of rows in a batch. A gap computed from those is mostly noise, which
    pushes a model towards constant decisions; the running mean over batches is not.

    Parameters
    ----------
    memory : float
        Number of batches to average over.

    Examples
    --------
    >>> running = RunningCounts(memory=2.0)
    >>> index = GroupIndex.of(torch.tensor([0, 1]))
    >>> running.update(torch.tensor([1.0, 0.0]), torch.tensor([1, 1]), index, None)[:, 1]
    tensor([1., 0.])
    """

    def __init__(self, memory: float) -> None:
        self._share = 1.0 / max(memory, 1.0)
        self._mean: Tensor | None = None
        self._known = torch.zeros((), dtype=torch.float64)

    def update(
        self,
        decisions: Tensor,
        labels: Tensor,
        index: GroupIndex,
        sample_weight: Tensor | None,
        team: Workers | None = None,
    ) -> Tensor:
        """Add a batch and return the mean counts per batch, shape [..., k, 4].

        ``sample_weight`` has shape [n], or any that fits the decisions; ``team`` are the workers
        that have the other rows of the batch.
        """
        with torch.no_grad():
            counts = soft_counts(decisions, labels, index, sample_weight)
            counts = counts if team is None else team.sum(counts)
            if self._mean is None:
                self._mean = torch.zeros_like(counts)
                self._known = self._known.to(counts.device)
            # In place, so that a recorded step finds both again.
            self._mean.lerp_(counts, self._share)
            self._known.lerp_(torch.ones_like(self._known), self._share)
            return self._mean / self._known.to(counts.dtype)

    def state_dict(self) -> dict[str, Any]:
        """All that it remembers, for a checkpoint."""
        return {"mean": self._mean, "known": self._known}

    def load_state_dict(
        self, state: Mapping[str, Any], device: torch.device, shape: Sequence[int]
    ) -> None:
        """Go on where :meth:`state_dict` was taken, of counts of this shape."""
        mean = state["mean"]
        check_like(state["known"], self._known, "known")
        if mean is not None:
            check_tensor(mean, mean.dtype, shape, "mean")
            check_like(mean, torch.zeros_like(mean), "mean")
            if not mean.is_floating_point() or bool((mean < 0).any()):
                raise ValueError("mean must be counts, got numbers below 0")
        self._mean = None if mean is None else mean.to(device)
        self._known = state["known"] if mean is None else state["known"].to(device)

    def of_members(self, members: Tensor) -> RunningCounts:
        """Return the running mean of some of the members, the first axis of the decisions."""
        taken = copy.copy(self)
        taken._mean = None if self._mean is None else self._mean[members]
        taken._known = self._known.clone()
        return taken
