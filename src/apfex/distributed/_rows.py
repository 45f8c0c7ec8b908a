"""Sums and means over the rows of all workers, through which gradients flow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from apfex.arguments import require_kind
from apfex.distributed._workers import Workers, workers


def all_sum(values: Tensor) -> Tensor:
    """Sum over workers of what each has computed from its own rows.

    Parameters
    ----------
    values : Tensor
        Of one shape on all workers.

    Returns
    -------
    Tensor
        The same on all workers, and ``values`` itself in one process.

    Notes
    -----
    Let ``S_r`` be the sums of worker r, ``S = sum_r S_r``, and ``L = f(S)`` any function that all
    workers compute alike. The gradient of L by the parameters is
    ``sum_r f'(S) dS_r`` (a worker knows ``dS_r`` of its own rows alone). Gradients are *averaged*
    over workers, by ``APFEx`` as by ``DistributedDataParallel`` and FSDP, so that a worker's own
    must be ``N f'(S) dS_r`` for N workers: the gradient of this sum is N times the one that comes
    in. What does not go through here is thereby a mean over workers: a penalty on weights, alike
    on all of them, counts once; the mean of a loss over a worker's own rows counts as much as that
    of any other worker.

    The number that comes in must be the same on all workers: do not multiply a loss by
    something that only one of them knows.

    Examples
    --------
    >>> all_sum(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    require_kind("values", values, Tensor, "a tensor, of one shape on all workers")
    team = workers()
    if team is not None:
        _check_sizes(team, values.numel())
    return sum_over(team, values)


def global_mean(values: Tensor, sample_weight: Tensor | None = None) -> Tensor:
    """Mean over the rows of all workers, however many each of them has.

    Parameters
    ----------
    values : Tensor of shape [n]
        A number of each row, such as its loss; n may differ between workers, and be 0.
    sample_weight : Tensor of shape [n], optional

    Returns
    -------
    scalar Tensor
        With which any loss that is a mean over rows can be given to ``APFEx``.

    Examples
    --------
    >>> global_mean(torch.tensor([1.0, 3.0]), torch.tensor([3.0, 1.0]))
    tensor(1.5000)
    """
    team, problem, sums = workers(), None, None
    try:
        sums = _weighted_sums(values, sample_weight)
    except Exception as error:
        if team is None:
            raise
        problem = error
    if team is not None:
        _check_sizes(team, 2, problem)
    assert sums is not None
    sums = sum_over(team, sums)
    if not float(sums[1].detach()) > 0:
        raise ValueError("values must have a row of positive weight on some worker, got none.")
    return (sums[0] / sums[1]).to(values.dtype)


def _weighted_sums(values: Tensor, sample_weight: Tensor | None) -> Tensor:
    """Sums [2] of a worker's own rows: of the values times their weights, and of these."""
    require_kind("values", values, Tensor, "a tensor of shape [n]")
    if sample_weight is not None:
        require_kind("sample_weight", sample_weight, Tensor, "a tensor of shape [n]")
    if values.ndim != 1 or not values.is_floating_point():
        raise ValueError(
            f"values must be floats of shape [n], one for each row, got {values.dtype} of shape "
            f"{list(values.shape)}."
        )
    weight = torch.ones_like(values) if sample_weight is None else sample_weight.to(values)
    if weight.shape != values.shape:
        raise ValueError(
            f"sample_weight must have shape {list(values.shape)}, got {list(weight.shape)}."
        )
    if not bool(((weight >= 0) & weight.isfinite()).all()):
        raise ValueError(
            f"sample_weight must be finite and at least 0, got values from {float(weight.min()):g} "
            f"to {float(weight.max()):g}."
        )
    exact = torch.promote_types(values.dtype, torch.float32)
    return torch.stack([(values * weight).sum(dtype=exact), weight.sum(dtype=exact)])


def _check_sizes(team: Workers, size: int, problem: Exception | None = None) -> None:
    told = team.call_roll("adding up", {"size": size}, problem)[:, 0].tolist()
    if len(set(told)) > 1:
        raise ValueError(f"values must have one shape on all workers, got sizes {told} by rank.")


def sum_over(team: Workers | None, values: Tensor) -> Tensor:
    """The same for workers that are known; None: this process alone."""
    if team is None:
        return values
    if not (values.requires_grad and torch.is_grad_enabled()):
        return team.sum(values)
    return _AllSum.apply(values, team)  # pyright: ignore[reportReturnType]


def others_fail(nodes: Iterable[Any]) -> bool:
    """Whether sums over workers, among the nodes of a graph, are infinite or NaN by others alone.

    Looked at only once something is: it makes the CPU wait for the device.
    """
    sums = [node for node in nodes if hasattr(node, "whole")]
    own_are_finite = all(bool(node.own.isfinite().all()) for node in sums)
    return own_are_finite and not all(bool(node.whole.isfinite().all()) for node in sums)


class _AllSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, team: Workers) -> Tensor:
        ctx.size, ctx.own = team.size, values.detach()
        ctx.whole = team.sum(values)
        return ctx.whole.clone()  # the result itself would hold this node, which holds it

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        return grad_outputs[0] * ctx.size, None
