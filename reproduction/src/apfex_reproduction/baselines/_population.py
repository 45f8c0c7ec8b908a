"""Networks that are trained in one program: gradients of all their losses, and their steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from apfex_reproduction.baselines._losses import LossBatch, LossList
from apfex_reproduction.baselines._networks import Inputs, Networks
from apfex_reproduction.baselines._weigh import Plan

_BETAS, _EPSILON = (0.9, 0.999), 1e-8


@final
class Population:
    """b members of m losses each, who start alike and see the same batches and dropout.

    Parameters
    ----------
    networks : Networks
    plans : sequence of Plan
        With the same number of losses, and all or none with passes of their own.
    scales : Tensor of shape [b, m]
        What losses and gradients are divided by.
    learning_rate : float

    Attributes
    ----------
    losses, gradients, products : Tensors of shape [b, m], [b, m, p] and [b, m, m]
        Of the step under way, over their scales; inner products of the gradients.
    """

    def __init__(
        self, networks: Networks, plans: Sequence[Plan], scales: Tensor, learning_rate: float
    ) -> None:
        self.networks, self.plans, self.scales = networks, list(plans), scales
        own = plans[0].own_passes
        self.n_losses, self.n_passes = plans[0].n_losses, plans[0].n_losses if own else 1
        self._list = LossList([plan.terms for plan in plans], own)
        self._adam, self._rate = Adam(networks.values, learning_rate), learning_rate
        self._plain_steps = torch.tensor([[plan.steps == "sgd"] for plan in plans])
        self._last: Tensor | None = None
        self.losses: Tensor
        self.gradients: Tensor
        self.products: Tensor

    def differentiate(
        self, inputs: Inputs, batch: LossBatch, masks: Sequence[Tensor] | None
    ) -> None:
        """Losses and gradients of a batch."""
        own = None if masks is None else [mask[: self.n_passes] for mask in masks]
        passed = self.networks.forward(inputs, own)
        found = self._list.evaluate(passed.scores, batch)
        self.losses = found.values / self.scales
        slopes = found.slopes.div_(self.scales.unsqueeze(-1))
        self.gradients = self.networks.pull_back(passed, slopes)
        self.products = self.gradients @ self.gradients.mT

    def move(self, weights: Tensor, shares: Tensor) -> Tensor:
        """Step along weighted gradients; return the lengths [b] of the directions.

        Of a direction a share [b] is new, the rest is the last one (PSS); the first one has none
        before it.
        """
        direction = (weights.unsqueeze(1) @ self.gradients).squeeze(1)
        if self._last is not None and bool((shares < 1).any()):
            share = shares.unsqueeze(1)
            mixed = share * direction + (1 - share) * self._last
            direction = torch.where(share < 1, mixed, direction)
        self._last = direction
        if self._plain_steps.any():
            self._adam.step(torch.where(self._plain_steps, 0.0, direction))
            plain = torch.where(self._plain_steps, self._rate * direction, 0.0)
            self.networks.values.sub_(plain)
        else:
            self._adam.step(direction)
        return torch.linalg.vector_norm(direction, dim=1, dtype=torch.float64)


@final
class Adam:
    """Adam at a constant rate, for one tensor that is changed in place.

    The numbers of ``torch.optim.Adam``, whose first step imports for seconds.
    """

    def __init__(self, values: Tensor, learning_rate: float) -> None:
        self._values, self._rate, self._steps = values, learning_rate, 0
        self._mean, self._square = torch.zeros_like(values), torch.zeros_like(values)

    def step(self, gradient: Tensor) -> None:
        """Move the values against the gradient."""
        first, second = _BETAS
        self._steps += 1
        self._mean.lerp_(gradient, 1 - first)
        self._square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        root = self._square.sqrt().div_((1 - second**self._steps) ** 0.5).add_(_EPSILON)
        rate = self._rate / (1 - first**self._steps)
        self._values.addcdiv_(self._mean, root, value=-rate)
