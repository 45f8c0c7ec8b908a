"""Soft confusion counts: the differentiable twin of :class:`ConfusionCounts`, for training."""

from __future__ import annotations

import torch
from torch import Tensor

from apfex.rates._add_up import add_up
from apfex.rates._group_index import GroupIndex


def soft_counts(
    decisions: Tensor, labels: Tensor, index: GroupIndex, sample_weight: Tensor | None = None
) -> Tensor:
    """Selected negatives and positives, and all negatives and positives, of each group.

    Parameters
    ----------
    decisions : Tensor of shape [..., n], or [..., c, n]
        Soft or hard decisions in [0, 1]; gradients flow back into them.
    labels : Tensor of shape [n], or [c, n]
        0 or 1; with [c, n] one row of labels for each row of decisions.
    index : GroupIndex
    sample_weight : Tensor, optional
        Of shape [n], or one that broadcasts to that of the decisions: [b, n], or [b, 1, n] with
        classes, for weights that differ between members.

    Returns
    -------
    Tensor of shape [..., k, 4], or [..., c, k, 4]
        Of the dtype of the decisions, but at least float32: a sum of ones in bfloat16 ends at 256.

    Examples
    --------
    >>> index = GroupIndex.of(torch.tensor([0, 0, 1]))
    >>> soft_counts(torch.tensor([1.0, 0.0, 1.0]), torch.tensor([1, 1, 0]), index)
    tensor([[0., 1., 0., 2.],
            [1., 0., 1., 0.]])
    """
    decisions = decisions.to(torch.promote_types(decisions.dtype, torch.float32))
    ones = torch.ones_like(labels, dtype=decisions.dtype)
    total = ones if sample_weight is None else ones * sample_weight.to(decisions.dtype)
    selected = decisions if sample_weight is None else decisions * total
    if index.memberships is not None:
        h = index.memberships.to(decisions.dtype)
        y = labels.to(decisions.dtype)
        parts = [selected * (1 - y), selected * y, total * (1 - y), total * y]
        return torch.stack([(part @ h).expand(*selected.shape[:-1], -1) for part in parts], -1)
    cells = index.cells(labels)
    size = 2 * (index.n_groups + index.has_outsiders)
    sums = [add_up(part, cells, size)[..., : 2 * index.n_groups] for part in (selected, total)]
    pairs = [part.unflatten(-1, (index.n_groups, 2)) for part in sums]
    return torch.cat([pairs[0], pairs[1].expand_as(pairs[0])], -1)
