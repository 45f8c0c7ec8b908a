"""Parameters of which every worker holds a part: ``torch.distributed.fsdp.fully_shard``.

FSDP gathers parameters layer by layer and hands out gradients in hooks of a backward pass that
accumulates ``.grad``, averaged over workers. So the one pass of a step is such a pass. Gradients of
single losses by the parameters are not to be had; they are compared at the outputs.

A model may be sharded in part: parameters of the other layers are whole on every worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from apfex.distributed import Workers


def is_sharded(tensor: Tensor) -> bool:
    """Whether a worker holds a part of a tensor."""
    if type(tensor) in (Tensor, torch.nn.Parameter) or not torch.distributed.is_available():
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


def are_sharded(parameters: Iterable[Tensor]) -> bool:
    """Whether parameters are those of ``fully_shard``; the older wrapper is refused."""
    found = False
    for parameter in parameters:
        check_not_flat(parameter)
        found = found or is_sharded(parameter)
    return found


def check_not_flat(parameter: Any) -> None:
    """Refuse parameters of FullyShardedDataParallel."""
    if getattr(parameter, "_is_flat_param", False):
        raise TypeError(
            "optimizer must have parameters of the model itself, of DistributedDataParallel or of "
            "torch.distributed.fsdp.fully_shard, got the flat ones of FullyShardedDataParallel; "
            "wrap the model with fully_shard(model) instead."
        )


def check_shards(
    *, outputs: Tensor | None, compares: bool, constrained: bool, accumulates: bool, scales: bool
) -> None:
    """Refuse what needs the gradient of each loss by the parameters."""
    for wrong, what, remedy in (
        (
            compares and outputs is None,
            "the strategy compares gradients",
            "give backward the model's outputs, backward(losses, outputs=scores), so that they are "
            "compared there, or take a strategy of one pass, as AdaptiveWeighting()",
        ),
        (constrained, "there are constraints", "give them as losses"),
        (accumulates, "accumulate is True", "take larger batches"),
        (scales, "there is a GradScaler", "use bfloat16, which needs none"),
    ):
        if wrong:
            raise ValueError(
                f"Parameters must be whole on every worker where {what}, got sharded ones "
                "(fully_shard), whose gradients are known for the sum of losses only; "
                f"{remedy}, or use DistributedDataParallel."
            )


def backward_into_shards(
    values: Tensor, cotangent: Tensor, parameters: Sequence[Tensor], team: Workers | None
) -> dict[Tensor, Tensor]:
    """Gradients of the parameters, averaged over workers; ``.grad`` is left as it was.

    FSDP averages those of the parameters that it shards, and hands out none where a loss depends
    on none of a parameter's entries: such parameters are left out. Others, of layers that are not
    given to FSDP, are whole on every worker and averaged here.
    """
    before = [parameter.grad for parameter in parameters]
    try:
        for parameter in parameters:
            parameter.grad = None
        torch.autograd.backward(values, cotangent)
        found = {p: p.grad for p in parameters if p.grad is not None}
    finally:
        for parameter, own in zip(parameters, before, strict=True):
            parameter.grad = own
    whole = [p for p in parameters if not is_sharded(p)]
    if team is not None:  # another worker's rows may have reached what these have not
        means = team.mean_([found.get(p, torch.zeros_like(p)) for p in whole])
        found |= zip(whole, means, strict=True)
    return {p: found[p] for p in parameters if p in found}
