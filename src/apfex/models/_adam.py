"""AdamW for stacked parameters, with a rate that falls along a cosine."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor, nn

_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


@final
class StackedAdamW:
    """AdamW for parameters whose first axis is the member.

    The numbers of ``torch.optim.AdamW`` with ``CosineAnnealingLR``, whose import alone takes
    seconds. A parameter that got no gradient counts as one with a gradient of zero, so that a
    member learns the same whether or not another one uses that parameter.

    Parameters
    ----------
    parameters : sequence of Parameters of shape [b, ...]
    learning_rate, weight_decay : float
    n_steps : int
        After which the rate has fallen to zero.

    Examples
    --------
    >>> weight = nn.Parameter(torch.ones(2, 3))
    >>> optimizer = StackedAdamW([weight], learning_rate=0.1, weight_decay=0.0, n_steps=10)
    >>> weight.sum().backward()
    >>> optimizer.step()
    >>> weight[0]
    tensor([0.9000, 0.9000, 0.9000], grad_fn=<SelectBackward0>)
    """

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        learning_rate: float,
        weight_decay: float,
        n_steps: int,
    ) -> None:
        self._parameters = list(parameters)
        self._learning_rate, self._weight_decay = learning_rate, weight_decay
        self._n_steps, self._steps = n_steps, 0
        self._means = [torch.zeros_like(p, requires_grad=False) for p in parameters]
        self._squares = [torch.zeros_like(p, requires_grad=False) for p in parameters]

    @property
    def rate(self) -> float:
        """Learning rate of the next step."""
        return self._learning_rate * (1 + math.cos(math.pi * self._steps / self._n_steps)) / 2

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    def step(self) -> None:
        """Move the parameters by their gradients."""
        rate = self.rate
        self._steps += 1
        for dtype in dict.fromkeys(p.dtype for p in self._parameters):
            self._move([i for i, p in enumerate(self._parameters) if p.dtype == dtype], rate)

    def of_members(self, members: Tensor, parameters: Sequence[nn.Parameter]) -> StackedAdamW:
        """The optimizer of some of the members, whose parameters are given, in mid-course."""
        taken = copy.copy(self)
        taken._parameters = list(parameters)
        taken._means = [mean[members] for mean in self._means]
        taken._squares = [square[members] for square in self._squares]
        return taken

    def _move(self, places: Sequence[int], rate: float) -> None:
        """One fused kernel, which exists for parameters of one dtype and device."""
        parameters: list[Tensor] = [self._parameters[i] for i in places]
        count = torch.full((), self._steps, dtype=torch.float32, device=parameters[0].device)
        with torch.no_grad():
            torch._fused_adamw_(  # pyright: ignore[reportPrivateImportUsage]
                parameters,
                [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters],
                [self._means[i] for i in places],
                [self._squares[i] for i in places],
                [],
                [count] * len(places),
                lr=rate,
                beta1=_BETAS[0],
                beta2=_BETAS[1],
                weight_decay=self._weight_decay,
                eps=_EPSILON,
                amsgrad=False,
                maximize=False,
            )
