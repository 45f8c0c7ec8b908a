"""Checks of settings and of what ``backward`` is given, before anything is computed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from apfex.arguments import as_names
from apfex.constraints import Constraint
from apfex.optimizer._shards import check_not_flat
from apfex.strategies import (
    AdaptiveWeighting,
    EqualWeights,
    FixedWeights,
    SetSampling,
    SmoothTchebycheff,
    Strategy,
)

_ONE_PASS = (AdaptiveWeighting, EqualWeights, FixedWeights, SetSampling, SmoothTchebycheff)
"""Strategies that never ask for a Gramian: one backward pass is all they need."""


def check_settings(
    optimizer: torch.optim.Optimizer,
    strategy: Strategy,
    *,
    window: int,
    seed: int,
    accumulate: bool,
) -> None:
    """Refuse an optimizer that cannot be wrapped, and settings that are out of range."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(
            f"optimizer must be a torch.optim.Optimizer, got {type(optimizer).__name__}."
        )
    if isinstance(strategy, type) or not isinstance(strategy, Strategy):
        raise TypeError(
            "strategy must be a strategy as AdaptiveSwitch(), with a decide method, got "
            f"{strategy!r}."
        )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise TypeError(
            "optimizer must take one gradient per step, got LBFGS, which evaluates the loss "
            "several times."
        )
    if any(group.get("maximize", False) for group in optimizer.param_groups):
        raise ValueError(
            "optimizer must minimise, got one with maximize=True, which would raise all losses and "
            "constraints; leave it out, and give the negative of what is to grow as a loss."
        )
    if not isinstance(window, int) or isinstance(window, bool) or window < 1:
        raise ValueError(f"window must be a whole number of at least 1, got {window}.")
    if not isinstance(seed, int):
        raise TypeError(f"seed must be a whole number, got {seed!r}.")
    if not isinstance(accumulate, bool):
        raise TypeError(f"accumulate must be True or False, got {accumulate!r}.")


def read_losses(losses: Tensor | Sequence[Tensor]) -> Tensor:
    """The losses as one tensor [m], each part of a graph."""
    if losses is None:
        raise TypeError("losses must be a list of scalars or a tensor of shape [m], got None.")
    if isinstance(losses, Tensor):
        if losses.ndim != 1 or losses.numel() == 0:
            raise ValueError(
                "losses must be a list of scalars or a tensor of shape [m], got shape "
                f"{list(losses.shape)}."
            )
        values = losses
        independent = [] if losses.requires_grad else [0]
    else:
        values, independent = _stack(list(as_names("losses", losses)))
    if independent:
        raise ValueError(
            f"losses[{independent[0]}] must depend on the model's parameters, but it has no "
            "gradient; was it detached, or computed under no_grad?"
        )
    return values


def check_finite(values: Tensor) -> None:
    """Refuse losses [m] that are infinite or NaN."""
    for position, value in enumerate(values.tolist()):
        if not math.isfinite(value):
            raise ValueError(f"losses[{position}] must be finite, got {value}.")


def check_real(tensors: Iterable[Tensor], what: str) -> None:
    """Refuse complex tensors: their gradients have no inner products as real ones have."""
    for tensor in tensors:
        if tensor.is_complex():
            raise TypeError(
                f"{what} must be real, got {tensor.dtype} of shape {list(tensor.shape)}; hold real "
                "and imaginary parts in a real tensor, and use torch.view_as_complex in the model."
            )


def read_constraints(
    constraints: Constraint | Sequence[Constraint] | None, parameters: Sequence[Tensor]
) -> dict[int, Constraint]:
    """The active constraints by their places, each of a value that depends on the parameters."""
    given = [constraints] if isinstance(constraints, Constraint) else list(constraints or ())
    active = {}
    for position, constraint in enumerate(given):
        if not isinstance(constraint, Constraint):
            raise TypeError(
                f"constraints[{position}] must be a Constraint, got {type(constraint).__name__}."
            )
        if constraint.is_active:
            if not constraint.soft.requires_grad or not _reaches(constraint.soft, parameters):
                raise ValueError(
                    f"constraints[{position}].soft must depend on the parameters of the "
                    "optimizer, but it does not."
                )
            active[position] = constraint
    return active


def check_reach(
    values: Tensor, parameters: Iterable[Tensor] | None, outputs: Tensor | None
) -> None:
    """Every loss must reach the parameters, and with ``outputs`` only through those.

    Parameters
    ----------
    values : Tensor of shape [m]
    parameters : iterable of Tensor, or None
        None: any leaf of the graph counts, as where the graph is of gathered copies.
    outputs : Tensor, optional
        The model's outputs, where gradients are compared in prediction space: a path that goes
        past them would be lost there.
    """
    owned = None if parameters is None else {id(parameter) for parameter in parameters}
    stop = None if outputs is None else _edge(outputs)
    for position, root in enumerate(_roots(values)):
        reached, past = _walk(root, owned, stop)
        if past:
            raise ValueError(
                f"losses[{position}] must depend on the parameters through outputs only, but "
                "there is another path (a penalty on weights, or another output?); leave out "
                "outputs, or pass the tensor that all losses are computed from."
            )
        if not reached:
            for node in graph_nodes([values]):
                check_not_flat(getattr(node, "variable", None))
            source = "the parameters of the optimizer" if outputs is None else "outputs"
            raise ValueError(f"losses[{position}] must depend on {source}, but it does not.")


def graph_nodes(tensors: Iterable[Tensor]) -> set[Any]:
    """All nodes of the graph that tensors were computed by."""
    seen: set[Any] = set()
    stack = [_edge(tensor)[0] for tensor in tensors]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack.extend(function for function, _ in node.next_functions)
    return seen


def used_parameters(nodes: Iterable[Any], parameters: Sequence[Tensor]) -> list[Tensor]:
    """The parameters that a graph reaches; the others keep their ``.grad``."""
    found = {id(node.variable) for node in nodes if hasattr(node, "variable")}
    return [parameter for parameter in parameters if id(parameter) in found]


def needs_each_gradient(strategy: Strategy) -> bool:
    """Whether a strategy may, at this step or a later one, compare the gradients of the losses."""
    return not isinstance(strategy, _ONE_PASS)


def check_compiled(nodes: Iterable[Any]) -> None:
    """Refuse a graph that allows one pass only, where the gradients of the losses are compared.

    Parameters
    ----------
    nodes : iterable of autograd nodes
        The graph of all that is differentiated.

    Notes
    -----
    By default the compiled backward pass writes its results into what the forward pass has stored
    ("donated buffers"), so a second pass through the same graph would find it spoilt. The setting
    counts at the time of compiling: switched off later, it only keeps torch from noticing.
    """
    if any(_donates_buffers(node) for node in nodes):
        raise RuntimeError(
            "The model must be compiled without donated buffers where the gradients of several "
            "losses are compared, got one that is compiled with them. Set "
            "torch._functorch.config.donated_buffer = False before the model first runs (if it has "
            "run, also call torch.compiler.reset()), or take a strategy that needs one backward "
            "pass only, as AdaptiveWeighting()."
        )


def check_recomputed(nodes: Iterable[Any]) -> None:
    """Refuse a graph that hides parameters behind what a backward pass computes again."""
    if any(node.name() == "CheckpointFunctionBackward" for node in nodes):
        raise RuntimeError(
            "Activation checkpointing must be of the kind that torch.autograd.grad can see "
            "through, got torch.utils.checkpoint with use_reentrant=True, whose layers would not "
            "be trained. Use checkpoint(..., use_reentrant=False); in transformers "
            "gradient_checkpointing_kwargs={'use_reentrant': False}."
        )


def elementwise_nodes(values: Tensor) -> Iterator[Any]:
    """The last operations on the losses, down to the first that is not entry by entry."""
    yield from _chain(values.grad_fn, _ELEMENTWISE)
    for node, _ in _roots(values):
        yield from _chain(node, (*_ELEMENTWISE, "View", "Alias", "Reshape"))


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


def _reaches(value: Tensor, parameters: Iterable[Tensor]) -> bool:
    return _walk(_edge(value), {id(parameter) for parameter in parameters}, None)[0]


def _roots(values: Tensor) -> list[tuple[Any, int]]:
    """The graph of each loss, where they were put together from parts; else the whole."""
    *_, node = _chain(values.grad_fn, _ELEMENTWISE)
    if node is not None and node.name().startswith(("StackBackward", "CatBackward")):
        parts = list(node.next_functions)
        if len(parts) == len(values):
            return parts
    return [_edge(values)]


_ELEMENTWISE = ("Mul", "Div", "Add", "Sub", "Clone", "ToCopy", "Neg")
"""Operations where entry k of the result depends on entry k of the input alone."""


def _chain(node: Any, names: tuple[str, ...]) -> Iterator[Any]:
    """A node, and those before it as long as they are of such operations, with one input each."""
    yield node
    while node is not None and node.name().startswith(names) and len(_inputs(node)) == 1:
        node = _inputs(node)[0]
        yield node


def _inputs(node: Any) -> list[Any]:
    return [function for function, _ in node.next_functions if function is not None]


def _edge(tensor: Tensor) -> tuple[Any, int]:
    """Where a tensor stands in the graph: its node, and which of the node's results it is."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"outputs must be a tensor, got {type(tensor).__name__}.")
    if not tensor.requires_grad:
        raise ValueError("outputs must depend on the model's parameters, but has no gradient.")
    if tensor.grad_fn is not None:
        return tensor.grad_fn, tensor.output_nr
    edge = torch.autograd.graph.get_gradient_edge(tensor)
    return edge.node, edge.output_nr


def _walk(
    root: tuple[Any, int], owned: set[int] | None, stop: tuple[Any, int] | None
) -> tuple[bool, bool]:
    """Whether parameters (or ``stop``) are reached, and whether parameters are past ``stop``."""
    reached = past = False
    seen, stack = set(), [root]
    while stack:
        node, number = stack.pop()
        if node is None:
            continue
        if stop is not None and node == stop[0] and number == stop[1]:
            reached = True
            continue
        if node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None and (owned is None or id(variable) in owned):
            if stop is None:
                return True, False
            past = True
        stack.extend(node.next_functions)
    return reached, past


def _donates_buffers(node: Any) -> bool:
    """Whether a node is a compiled function whose backward pass writes into its inputs."""
    if node.name() != "CompiledFunctionBackward":
        return False
    metadata = getattr(getattr(node, "_forward_cls", None), "metadata", None)
    return bool(getattr(metadata, "bw_donated_idxs", None))
