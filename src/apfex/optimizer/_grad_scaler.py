"""Half precision: ``torch.autocast`` and ``torch.amp.GradScaler``."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.optimizer._checks import elementwise_nodes


def full_precision(device: torch.device) -> AbstractContextManager[object]:
    """Leave ``torch.autocast``: Gramians and weighted sums are not for half precision."""
    kind = device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        return torch.autocast(kind, enabled=False)
    return nullcontext()


def read_loss_scale(scaler: torch.amp.GradScaler | None, values: Tensor) -> float | None:
    """What the losses are multiplied by before they are differentiated; None without a scaler."""
    if scaler is None:
        return None
    if not isinstance(scaler, torch.amp.GradScaler):
        raise TypeError(f"scaler must be a torch.amp.GradScaler, got {type(scaler).__name__}.")
    if not scaler.is_enabled():
        return None
    probe = torch.zeros((), device=values.device, requires_grad=True)
    own = scaler.scale(probe).grad_fn  # sets the scaler up when it is first used
    scale = float(scaler.get_scale())
    if not 0 < scale < float("inf"):
        raise ValueError(f"scaler must have a positive and finite scale, got {scale}.")
    if any(_multiplies_alike(node, own) for node in elementwise_nodes(values)):
        raise ValueError(
            f"losses must be given as they are, but they were multiplied by {scale}, the scale of "
            "scaler: leave out scaler.scale(...), as backward(losses, scaler=scaler) does the "
            "scaling."
        )
    return scale


@final
@dataclass(frozen=True)
class Told:
    """What a scaler tells an optimizer whose step it takes; no scale: unscaled already."""

    scale: float | None
    overflow: bool


def told_by_scaler(optimizer: torch.optim.Optimizer) -> Told | None:
    """What ``scaler.step`` has set on the optimizer; None where no scaler takes the step."""
    told = optimizer.__dict__
    if "found_inf" not in told:
        return None
    scale = told.get("grad_scale")
    return Told(None if scale is None else float(scale), bool(told["found_inf"]))


def forget_scaler(optimizer: torch.optim.Optimizer) -> None:
    """Remove what a scaler has set, which it does itself only after a step that succeeds."""
    for name in ("grad_scale", "found_inf"):
        optimizer.__dict__.pop(name, None)


def check_scaler(told: Told | None, expected: float | None) -> None:
    """A scaler must be known to both ``backward`` and ``step``, or to neither."""
    if told is None and expected is not None:
        raise RuntimeError(
            "The step must be taken by scaler.step(optimizer), as backward was given a scaler and "
            f"the gradients are multiplied by {expected}; got optimizer.step()."
        )
    if told is not None and expected is None:
        raise RuntimeError(
            "backward must know of the scaler where scaler.step(optimizer) takes the step, but it "
            "was called without: use optimizer.backward(losses, scaler=scaler), and give the "
            "losses as they are, without scaler.scale(...)."
        )
    if told is not None and told.scale not in (None, expected):
        raise RuntimeError(
            f"scaler must be the one that backward was given, of scale {expected}, got one of "
            f"scale {told.scale}."
        )


def unscale(gradients: Iterable[Tensor], scale: float) -> None:
    """Divide gradients by the scale, in place."""
    gradients = list(gradients)
    if any(gradient.dtype == torch.float16 for gradient in gradients):
        raise ValueError(
            "Parameters must be in full precision where a scaler is used, got float16; let "
            "torch.autocast choose the precision of each layer instead of model.half()."
        )
    for gradient in gradients:
        gradient.mul_(1.0 / scale)


def _multiplies_alike(node: object, own: object) -> bool:
    """Whether a node of the graph is a product with the very number that the scaler keeps."""
    if type(node) is not type(own):
        return False
    factor, scale = (getattr(one, "_saved_other", None) for one in (node, own))
    if not (isinstance(factor, Tensor) and isinstance(scale, Tensor)):
        return False
    return factor.data_ptr() == scale.data_ptr() and factor.device == scale.device
