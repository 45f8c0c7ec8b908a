"""Several workers: before each step they meet, and know the losses of the whole batch.

DistributedDataParallel reduces gradients in hooks that wait for ``.grad`` to be accumulated. Those
of several losses are taken with ``torch.autograd.grad``, which runs none of these hooks, so workers
exchange them here: means over workers of every loss's gradient *before* a Gramian is taken, as the
Gramian of a sum is not the sum of Gramians. In prediction space the gradient by the outputs of all
workers is the list of what each has, over N; so there Gramians do add up.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, final

import torch
from torch import Tensor

from apfex.constraints import Constraint
from apfex.distributed import Workers, others_fail
from apfex.optimizer._backward_pass import BackwardCall
from apfex.optimizer._checks import graph_nodes
from apfex.optimizer._shards import is_sharded

_CLOSE = 1e-6
"""Relative difference of numbers that should be the same on all workers."""
_WORDS = {
    "losses": "The number of losses",
    "outputs": "Whether backward is given outputs (1) or not (0)",
    "scale": "The scale of scaler (0: none)",
    "calls": "The number of micro-batches before a step",
    "active": "Which constraints are active (a bit for each)",
    "parameters": "The number of trainable parameters",
    "step": "The number of steps taken",
    "settings": "Strategy, seed, window and scales (a checksum)",
}


@final
@dataclass(frozen=True, eq=False)
class Standing:
    """What a worker brings to a step.

    Attributes
    ----------
    trainable : sequence of Tensors
    settings : tuple
        What must be the same on all workers, or they would decide differently.
    checks_parameters : bool
        Whether the copies of the model are compared, but for parameters that are sharded.
    """

    trainable: Sequence[Tensor]
    settings: tuple[Any, ...]
    checks_parameters: bool

    def facts(self, call: BackwardCall) -> dict[str, float]:
        """In numbers; the last one may differ between workers."""
        return {
            "losses": len(call.values),
            "outputs": call.outputs is not None,
            "scale": call.loss_scale or 0.0,
            "calls": 0 if call.earlier is None else call.earlier.calls,
            "active": sum(2.0**place for place in call.active_places),
            "parameters": len(self.trainable),
            "step": call.history.step,
            "settings": zlib.crc32(_described(self.settings).encode()),
            "n_outputs": 0 if call.outputs is None else len(call.outputs),
        }


def meet(
    team: Workers,
    call: BackwardCall | None,
    standing: Standing,
    problem: Exception | None,
    values: Tensor | None,
) -> BackwardCall:
    """Make sure that all workers take the same step; return the call with what all of them know.

    Parameters
    ----------
    team : Workers
    call : BackwardCall or None
        Of this worker; None where it has a problem.
    standing : Standing
    problem : Exception or None
        Raised here, and as an error that tells of it on all others.
    values : Tensor of shape [m] or None
        The losses, where they could be read: by their graph it is known whose rows are the problem.
    """
    facts = dict.fromkeys(_WORDS, 0.0) | {"n_outputs": 0.0}
    is_own = problem is None or values is None or not others_fail(graph_nodes([values]))
    found = team.call_roll(
        "calling backward", standing.facts(call) if call else facts, problem, is_own=is_own
    )
    assert call is not None
    _check_alike(found, list(facts))
    trainable, m = standing.trainable, len(call.values)
    used = {id(parameter) for parameter in call.parameters}
    own = [
        *call.losses.tolist(),
        *(constraint.excess for constraint in call.active),
        *_checksums(_whole(trainable) if standing.checks_parameters else []),
        *(float(id(parameter) in used) for parameter in trainable),
    ]
    heard = team.gather(torch.tensor(own, dtype=torch.float64))
    n_active = len(call.active)
    losses, excess, sums, reached = heard.split([m, n_active, 2, len(trainable)], 1)
    if not _are_close(sums):
        raise ValueError(
            "The parameters must be the same on all workers, but the copies of the model differ: "
            f"sums of their sizes are {sums[:, 1].tolist()} by rank. Wrap the model in "
            "DistributedDataParallel before training, or give all workers the same seed or "
            "state_dict."
        )
    return replace(
        call,
        team=team,
        active=_common(call.active, excess),
        parameters=[p for p, n in zip(trainable, reached.sum(0).tolist(), strict=True) if n],
        whole_losses=losses.mean(0),
        whole_outputs=int(found[:, -1].sum()),
    )


def _check_alike(found: Tensor, names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        told = found[:, place].tolist()
        if name in _WORDS and len(set(told)) > 1:
            raise ValueError(f"{_WORDS[name]} must be the same on all workers, got {told} by rank.")


def _common(active: Sequence[Constraint], excess: Tensor) -> list[Constraint]:
    """Constraints with the value that all workers have."""
    if not _are_close(excess):
        raise ValueError(
            "constraints must have the same value on all workers, got those that exceed their "
            f"bounds by {excess.tolist()} by rank. Use losses of apfex.objectives, or reduce the "
            "value over workers (all_sum of the counts)."
        )
    means = excess.mean(0).tolist()
    return [replace(c, value=c.bound + e) for c, e in zip(active, means, strict=True)]


def _are_close(rows: Tensor) -> bool:
    return bool(((rows - rows[0]).abs() <= _CLOSE * (1 + rows[0].abs())).all())


def _whole(parameters: Sequence[Tensor]) -> list[Tensor]:
    """Those that every worker has a copy of, and not a part."""
    return [parameter for parameter in parameters if not is_sharded(parameter)]


@torch.no_grad()
def _checksums(parameters: Sequence[Tensor]) -> list[float]:
    """Sum of all parameters, and of their absolute values."""
    if not parameters:
        return [0.0, 0.0]
    sums = [p.sum(dtype=torch.float64).cpu() for p in parameters]
    sizes = [p.abs().sum(dtype=torch.float64).cpu() for p in parameters]
    return [float(torch.stack(sums).sum()), float(torch.stack(sizes).sum())]


def _described(value: Any) -> str:
    """The same words for the same settings in every process."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: getattr(value, one.name) for one in fields(value)}
        return f"{type(value).__qualname__}({_described(parts)})"
    if isinstance(value, Tensor):
        return repr(value.tolist())
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_described(part)}" for name, part in value.items())
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_described, value))}]"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
