"""Several groupings of the same rows: a model for each of them, and all of them as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor, nn


@final
class GroupingsModel(nn.Module):
    """Log-probabilities of the groups of several groupings, each of which counts the same.

    A row is in one group of every grouping. What a single model of all groups can say of that is
    the chance to find it in a group when one of the groupings is drawn: so probabilities add up to
    one over the groups of all groupings, and rules need not know that there are several.

    Parameters
    ----------
    models : sequence of modules
        Of each grouping, from the same inputs to a margin of each of its groups; one margin stands
        for the second of two.
    sizes : sequence of numbers
        Groups of each grouping.

    Examples
    --------
    >>> model = GroupingsModel([nn.Linear(2, 1), nn.Linear(2, 3)], (2, 3)).requires_grad_(False)
    >>> found = model(torch.zeros(1, 2)).exp()
    >>> found.shape, found[:, :2].sum()
    (torch.Size([1, 5]), tensor(0.5000))
    """

    def __init__(self, models: Sequence[nn.Module], sizes: Sequence[int]) -> None:
        super().__init__()
        self.models, self.sizes = nn.ModuleList(models), tuple(sizes)

    def forward(self, x: Tensor) -> Tensor:
        """Return log-probabilities [n, groups of all groupings]."""
        found = torch.cat([log_probabilities(model(x)) for model in self.models], 1)
        return found - math.log(len(self.models))


def log_probabilities(margins: Tensor) -> Tensor:
    """Log-probabilities [n, c] from c margins, or from one margin of the second of two classes.

    Examples
    --------
    >>> log_probabilities(torch.zeros(1, 1)).exp()
    tensor([[0.5000, 0.5000]])
    """
    if margins.shape[1] == 1:
        margins = torch.cat([torch.zeros_like(margins), margins], 1)
    return torch.log_softmax(margins, 1)
