"""Adam for tensors whose first axis is the member of a population."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, final

import torch
from torch import Tensor

from apfex.models._checkpoint import check_like


@final
class Adam:
    """Adam with decoupled weight decay (AdamW); the caller gives the learning rate of each step.

    The arithmetic is that of ``torch.optim.AdamW``, whose import alone takes seconds.

    Parameters
    ----------
    parameters : sequence of Tensors
        Changed in place.
    weight_decay : float
    betas : pair of float
        How much of the running means of gradients and of their squares each step keeps.
    epsilon : float
        Added to the root of the mean square; gradients far below it move nothing.
    fused : bool
        Whether torch's fused kernel does the arithmetic. It is faster for large parameters, and
        rounds differently.

    Examples
    --------
    >>> weight = torch.ones(3)
    >>> optimizer = Adam([weight])
    >>> optimizer.step([torch.tensor([2.0, 5.0, -1.0])], learning_rate=0.1)
    >>> weight
    tensor([0.9000, 0.9000, 1.1000])
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        weight_decay: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        *,
        fused: bool = True,
    ) -> None:
        self._parameters = list(parameters)
        self._weight_decay, self._betas, self._epsilon = weight_decay, betas, epsilon
        self._means = [torch.zeros_like(p, requires_grad=False) for p in parameters]
        self._squares = [torch.zeros_like(p, requires_grad=False) for p in parameters]
        self._fused, self._steps = fused, 0
        self._count = torch.zeros((), device=self._parameters[0].device)  # the fused kernel's own

    def step(self, gradients: Sequence[Tensor | None], learning_rate: float | Tensor) -> None:
        """Move the parameters against their gradients.

        None counts as a gradient of zero, so that a member learns the same whether or not another
        member uses that parameter. A learning rate that is a tensor, as the fused kernel takes it
        on a GPU, may be another one when a recorded step is played again.
        """
        pairs = zip(self._parameters, gradients, strict=True)
        given = [  # the fused kernel goes through memory as the parameter has it
            torch.zeros_like(p) if gradient is None else gradient.contiguous()
            for p, gradient in pairs
        ]
        with torch.no_grad():
            if not self._fused:
                self._step_plain(given, float(learning_rate))
                return
            # The fused kernel takes parameters of one dtype at a time.
            self._count.add_(1)
            for dtype in dict.fromkeys(p.dtype for p in self._parameters):
                places = [i for i, p in enumerate(self._parameters) if p.dtype == dtype]
                self._step_fused(places, given, learning_rate)

    def of_members(self, members: Tensor, parameters: Sequence[Tensor]) -> Adam:
        """Return the optimizer of some of the members, with their parameters, in mid-course."""
        taken = copy.copy(self)
        taken._parameters = list(parameters)
        taken._means = [mean[members] for mean in self._means]
        taken._squares = [square[members] for square in self._squares]
        taken._count = self._count.clone()
        return taken

    def state_dict(self) -> dict[str, Any]:
        """All that it remembers, for a checkpoint."""
        return {
            "means": list(self._means),
            "squares": list(self._squares),
            "steps": self._steps,
            "count": self._count,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken, with parameters of the same shapes."""
        check_like(state, self.state_dict(), "optimizer")
        if state["steps"] < 0 or state["count"] < 0 or any((s < 0).any() for s in state["squares"]):
            raise ValueError("an optimizer must have counts and squares from 0 on, got others")
        for own, given in ((self._means, state["means"]), (self._squares, state["squares"])):
            for tensor, value in zip(own, given, strict=True):
                tensor.copy_(value)
        self._steps = state["steps"]
        self._count.copy_(state["count"])

    def _step_plain(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        self._steps += 1
        first, second = self._betas
        states = zip(self._parameters, gradients, self._means, self._squares, strict=True)
        for parameter, gradient, mean, square in states:
            parameter.mul_(1 - learning_rate * self._weight_decay)
            unbiased = mean.lerp_(gradient, 1 - first) / (1 - first**self._steps)
            spread = square.lerp_(gradient**2, 1 - second) / (1 - second**self._steps)
            parameter.sub_(learning_rate * unbiased / (spread.sqrt() + self._epsilon))

    def _step_fused(
        self, places: Sequence[int], gradients: Sequence[Tensor], learning_rate: float | Tensor
    ) -> None:
        parameters = [self._parameters[i] for i in places]
        torch._fused_adamw_(  # pyright: ignore[reportPrivateImportUsage]
            parameters,
            [gradients[i] for i in places],
            [self._means[i] for i in places],
            [self._squares[i] for i in places],
            [],
            [self._count] * len(places),
            lr=learning_rate,
            beta1=self._betas[0],
            beta2=self._betas[1],
            weight_decay=self._weight_decay,
            eps=self._epsilon,
            amsgrad=False,
            maximize=False,
        )
