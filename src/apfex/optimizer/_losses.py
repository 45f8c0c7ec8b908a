"""Checks of what ``backward`` is given, before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor


def read_losses(losses: Tensor | Sequence[Tensor]) -> Tensor:
    """The losses as one tensor [m], each finite and part of a graph."""
    if isinstance(losses, Tensor):
        if losses.ndim != 1 or losses.numel() == 0:
            raise ValueError(
                "losses must be a list of scalars or a tensor of shape [m], got shape "
                f"{list(losses.shape)}."
            )
        values = losses
        independent = [] if losses.requires_grad else [0]
    else:
        values, independent = _stack(losses)
    if independent:
        raise ValueError(
            f"losses[{independent[0]}] must depend on the model's parameters, but it has no "
            "gradient; was it detached, or computed under no_grad?"
        )
    if not bool(values.isfinite().all()):
        worst = int((~values.isfinite()).nonzero()[0])
        raise ValueError(f"losses[{worst}] must be finite, got {values[worst].item()}.")
    return values


def _stack(losses: Sequence[Tensor]) -> tuple[Tensor, list[int]]:
    if not losses:
        raise ValueError("losses must hold at least one loss, got none.")
    for position, loss in enumerate(losses):
        if not isinstance(loss, Tensor):
            raise TypeError(
                f"losses[{position}] must be a scalar tensor, got {type(loss).__name__}."
            )
        if loss.numel() != 1:
            raise ValueError(
                f"losses[{position}] must be a scalar, got shape {list(loss.shape)}; "
                "reduce it with mean() or sum()."
            )
    independent = [position for position, loss in enumerate(losses) if not loss.requires_grad]
    return torch.stack([loss.reshape(()) for loss in losses]), independent


def check_reach(values: Tensor, parameters: Iterable[Tensor], outputs: Tensor | None) -> None:
    """Every loss must reach the parameters, and with ``outputs`` only through those.

    Parameters
    ----------
    values : Tensor of shape [m]
    parameters : iterable of Tensor
    outputs : Tensor, optional
        The model's outputs, where gradients are compared in prediction space: a path that goes
        past them would be lost there.
    """
    owned = {id(parameter) for parameter in parameters}
    stop = None if outputs is None else _node(outputs)
    for position, root in enumerate(_roots(values)):
        reached, past = _walk(root, owned, stop)
        if past:
            raise ValueError(
                f"losses[{position}] must depend on the parameters through outputs only, but "
                "there is another path (a penalty on weights, or another output?); leave out "
                "outputs, or pass the tensor that all losses are computed from."
            )
        if not reached:
            source = "the parameters of the optimizer" if outputs is None else "outputs"
            raise ValueError(f"losses[{position}] must depend on {source}, but it does not.")


def _roots(values: Tensor) -> list[Any]:
    """The graph of each loss, where the losses were stacked; else the whole."""
    node = values.grad_fn
    if node is not None and node.name().startswith("StackBackward"):
        return [function for function, _ in node.next_functions]
    return [node]


def _node(outputs: Tensor) -> Any:
    if not outputs.requires_grad:
        raise ValueError("outputs must depend on the model's parameters, but has no gradient.")
    if outputs.grad_fn is None:
        return torch.autograd.graph.get_gradient_edge(outputs).node
    return outputs.grad_fn


def _walk(root: Any, owned: set[int], stop: Any) -> tuple[bool, bool]:
    """Whether parameters (or ``stop``) are reached, and whether parameters are past ``stop``."""
    reached = past = False
    seen, stack = set(), [root]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if stop is not None and node == stop:
            reached = True
            continue
        variable = getattr(node, "variable", None)
        if variable is not None and id(variable) in owned:
            if stop is None:
                return True, False
            past = True
        stack.extend(function for function, _ in node.next_functions)
    return reached, past
