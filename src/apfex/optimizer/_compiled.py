"""Models under ``torch.compile``: a compiled backward pass may allow only one pass per graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apfex.strategies import (
    AdaptiveWeighting,
    EqualWeights,
    SetSampling,
    SmoothTchebycheff,
    Strategy,
)

_ONE_PASS = (AdaptiveWeighting, EqualWeights, SetSampling, SmoothTchebycheff)
"""Strategies that never ask for a Gramian: one backward pass is all they need."""


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


def _donates_buffers(node: Any) -> bool:
    """Whether a node is a compiled function whose backward pass writes into its inputs."""
    if node.name() != "CompiledFunctionBackward":
        return False
    metadata = getattr(getattr(node, "_forward_cls", None), "metadata", None)
    return bool(getattr(metadata, "bw_donated_idxs", None))
