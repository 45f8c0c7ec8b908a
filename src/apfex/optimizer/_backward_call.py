"""What one call of ``backward`` is given, once it is checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.constraints import Constraint
from apfex.history import History
from apfex.optimizer._accumulation import GradientSums
from apfex.optimizer._backward_pass import BackwardPass
from apfex.optimizer._pending_step import PendingStep


@final
@dataclass(frozen=True, eq=False)
class BackwardCall:
    """Losses and what they are differentiated by; nothing has changed yet.

    Attributes
    ----------
    values : Tensor of shape [m]
        The losses, with their graph.
    outputs : Tensor or None
        Where gradients are compared in prediction space.
    active : sequence of Constraint
    parameters : sequence of Tensors
        Those that the losses or the active constraints depend on.
    loss_scale : float or None
        What a scaler multiplies the losses by.
    history : History
        Of the steps before.
    earlier : PendingStep or None
        What earlier micro-batches of the same step have led to.
    """

    values: Tensor
    outputs: Tensor | None
    active: Sequence[Constraint]
    parameters: Sequence[Tensor]
    loss_scale: float | None
    history: History
    earlier: PendingStep | None

    @property
    def losses(self) -> Tensor:
        """The losses of this batch [m], float64 and detached."""
        return self.values.detach().double().cpu()

    def gradients(self, scales: Tensor, batched: bool | None) -> BackwardPass:
        """Gradients of this batch alone, over the scales of the losses [m]."""
        return self._differentiate(((self.loss_scale or 1.0) / scales).to(self.values), batched)

    def add_up(self, batched: bool | None) -> GradientSums:
        """Losses and gradients of this micro-batch and of the earlier ones of the same step."""
        own = GradientSums.of(self._differentiate(self.loss_scale or 1.0, batched), self.losses)
        earlier = None if self.earlier is None else self.earlier.sums
        return own if earlier is None else own.plus(earlier)

    def _differentiate(self, factor: Tensor | float, batched: bool | None) -> BackwardPass:
        softs = [constraint.soft.reshape(()) for constraint in self.active]
        constrained = torch.stack(softs) if softs else None
        losses = self.values * factor
        return BackwardPass(losses, self.parameters, self.outputs, constrained, batched)
