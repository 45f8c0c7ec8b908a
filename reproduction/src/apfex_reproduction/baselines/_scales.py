"""What the losses of a plan are divided by, so that their gradients can be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from apfex_reproduction.baselines._losses import LossBatch, LossList
from apfex_reproduction.baselines._networks import Inputs, Networks
from apfex_reproduction.baselines._weigh import Plan

_LN2 = 0.6931471805599453
"""Cross-entropy of a model that knows nothing."""
_FLOOR = 0.05
"""Smallest scale of a loss where scales are the largest losses at the start."""

Batches = Callable[[bool], Iterable[tuple[Inputs, LossBatch, Sequence[Tensor] | None]]]
"""The batches of an epoch before the first step, with dropout or without."""


def starting_scales(plans: Sequence[Plan], start: Networks, batches: Batches) -> Tensor:
    """Scales [b, m] of plans of one number of losses; 1 for a loss that is alone.

    All members start alike, so that one network, ``start``, tells the losses of all.
    """
    kinds = [plan.scales if plan.compared else "none" for plan in plans]
    scales = torch.ones(len(plans), plans[0].n_losses)
    for kind, dropout in (("mean", True), ("largest", False)):
        members = [member for member, own in enumerate(kinds) if own == kind]
        if members:
            seen = _seen([plans[member] for member in members], start, batches(dropout), dropout)
            scales[members] = seen.mean(0) if dropout else seen.amax(0).clamp(min=_FLOOR)
    for member, own in enumerate(kinds):
        if own == "range":
            weights = [term.task_weight for term in plans[member].terms]
            scales[member] = _LN2 * torch.tensor([1.0, *weights])
            scales[member, 1:] += 1.0
    return scales


def _seen(plans: Sequence[Plan], start: Networks, batches: Iterable, dropout: bool) -> Tensor:
    """Losses [batches, b, m] of the network that all start from.

    The mean over an epoch with dropout on is the scale in the code of Padh et al.
    """
    own = plans[0].own_passes and dropout
    listed = LossList([plan.terms for plan in plans], own)
    values = []
    for inputs, batch, masks in batches:
        passes = plans[0].n_losses if own else 1
        some = None if masks is None else [mask[:passes] for mask in masks]
        scores = start.forward(inputs, some).scores
        values.append(listed.evaluate(scores.expand(-1, len(plans), -1), batch).values)
    return torch.stack(values)
