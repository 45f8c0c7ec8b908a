"""What ``backward`` has put into ``.grad``, until ``step`` applies it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.history import History, StepRecord
from apfex.optimizer._accumulation import GradientSums
from apfex.optimizer._backward_pass import Direction
from apfex.optimizer._shards import is_sharded


@final
@dataclass(frozen=True, eq=False)
class Written:
    """A gradient as it was left in ``.grad``, and what had been there before."""

    gradient: Tensor
    version: int
    before: Tensor | None

    def is_untouched(self, now: Tensor | None) -> bool:
        """Whether ``.grad`` still is what was written."""
        return now is self.gradient and self.gradient._version == self.version


@final
@dataclass(frozen=True, eq=False)
class PendingStep:
    """A step that is decided but not taken: nothing of it is in the history yet.

    Attributes
    ----------
    record : StepRecord or None
        None: gradients have overflowed under a scaler, which will skip the step.
    remembered : dict from parameters to Tensors, or None
        The direction, where the strategy may blend the next one with it.
    history : History
        That the step is to be recorded in.
    scales : Tensor of shape [m]
    compares_outputs : bool
    loss_scale : float or None
        What a scaler has the gradients multiplied by.
    calls : int
        Calls of ``backward`` so far: 1, or more where gradients are accumulated.
    sums : GradientSums or None
        What the coming call adds to, where gradients are accumulated.
    written : dict from parameters to Written
    """

    record: StepRecord | None
    remembered: dict[Tensor, Tensor] | None
    history: History
    scales: Tensor
    compares_outputs: bool
    loss_scale: float | None
    calls: int
    sums: GradientSums | None
    written: dict[Tensor, Written]

    def check_next(self, m: int, compares_outputs: bool, loss_scale: float | None) -> None:
        """Refuse a further call of ``backward`` for this step, unless it can be added up."""
        if self.sums is None:
            raise RuntimeError(
                "backward must be followed by step before it is called again, but no step was "
                "taken since the last call. To accumulate the gradients of several micro-batches "
                "use APFEx(..., accumulate=True); to skip a batch call zero_grad()."
            )
        if not self.is_untouched:
            raise RuntimeError(
                "The gradients must be left alone until the last micro-batch of a step, but .grad "
                "was changed since the last call of backward; clip and unscale after the last "
                "micro-batch, and add other losses to the list."
            )
        if m != len(self.sums.losses):
            raise ValueError(
                f"losses must be as many as before ({len(self.sums.losses)}), got {m}."
            )
        if compares_outputs != self.compares_outputs:
            raise ValueError("outputs must be given for all micro-batches of a step, or for none.")
        if loss_scale != self.loss_scale:
            raise ValueError(
                f"scaler must keep its scale during a step, got {loss_scale} after "
                f"{self.loss_scale}; pass it with every micro-batch, and call scaler.update() "
                "after scaler.step(optimizer)."
            )

    @property
    def has_gradients(self) -> bool:
        """Whether any gradient is there still."""
        return any(parameter.grad is not None for parameter in self.written)

    @property
    def is_untouched(self) -> bool:
        """Whether all gradients are as they were left."""
        return all(own.is_untouched(p.grad) for p, own in self.written.items())

    @property
    def is_cleared(self) -> bool:
        """Whether somebody has cleared the gradients, in either way of ``zero_grad``."""
        if not self.has_gradients:
            return True
        if self.is_untouched:
            return False
        gradients = [parameter.grad for parameter in self.written]
        return not any(_has_entries(grad) for grad in gradients if grad is not None)


def write(
    parameters: Sequence[Tensor], direction: Direction, earlier: PendingStep | None
) -> dict[Tensor, Written]:
    """Add a direction to ``.grad``, in the place of that of earlier calls for the same step."""
    replaced = {} if earlier is None else earlier.written
    written: dict[Tensor, Written] = {}
    for parameter, gradient in zip(parameters, _apart(direction), strict=True):
        own = replaced.get(parameter)
        before = parameter.grad if own is None else own.before
        parameter.grad = gradient if before is None else before + gradient
        assert parameter.grad is not None
        written[parameter] = Written(parameter.grad, parameter.grad._version, before)
    return written


def _apart(direction: Direction) -> Iterator[Tensor]:
    """Each part in memory of its own, so that clipping and unscaling change it exactly once.

    The gradient of a sum is the same tensor for all summands, and one number, repeated without
    being stored, for all entries of a tensor.
    """
    places: set[int] = set()
    for part in direction:
        if part.is_sparse or is_sharded(part):
            yield part
            continue
        place = part.untyped_storage().data_ptr()
        repeats = 0 in part.stride()
        yield (
            part.clone(memory_format=torch.contiguous_format)
            if repeats or place in places
            else part
        )
        places.add(place)


def _has_entries(gradient: Tensor) -> bool:
    values = gradient.coalesce().values() if gradient.is_sparse else gradient
    return bool((values != 0).any())
