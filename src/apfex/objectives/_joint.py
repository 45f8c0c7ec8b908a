"""Several objectives of one batch, evaluated together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.groups import Groups
from apfex.objectives._base import Batch, Objective, check_batch, need_groups, read_groups
from apfex.objectives._fairness import FairnessLoss, soft_sums
from apfex.objectives._pairs import pairwise_gap
from apfex.rates import GroupIndex, RateSums

Grouping = Groups | Tensor | None
_Family = dict[int, tuple[GroupIndex, dict[int, FairnessLoss]]]
"""Losses by position, under the groups that they share."""


@final
@dataclass(frozen=True)
class Objectives:
    """A list of objectives that share one check of the batch and one pass over its scores.

    Calling them one by one gives the same numbers; together, probabilities, soft decisions and
    cross-entropy are computed once.

    Examples
    --------
    >>> from apfex.objectives import CrossEntropy, FairnessLoss
    >>> objectives = Objectives([CrossEntropy(), FairnessLoss("dp"), FairnessLoss("tpr")])
    >>> scores, y = torch.tensor([1.0, -1.0, 1.0, 1.0]), torch.tensor([1, 0, 1, 1])
    >>> objectives(scores, y, torch.tensor([0, 0, 1, 1]))
    tensor([0.3133, 0.4406, 0.0313])
    """

    members: Sequence[Objective]

    def __post_init__(self) -> None:
        """Refuse an empty list."""
        if not self.members:
            raise ValueError("members must hold at least one objective, got none.")

    def __len__(self) -> int:
        """Return the number of objectives m."""
        return len(self.members)

    def __iter__(self) -> Iterator[Objective]:
        """Iterate over the objectives."""
        return iter(self.members)

    def __call__(
        self,
        scores: Tensor,
        y: Tensor,
        groups: Grouping | Sequence[Grouping] = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Return the losses of one batch, shape [m].

        ``groups`` is one grouping for all objectives, or a list with one for each.
        """
        batch = check_batch(scores, y, sample_weight)
        indexes = self._indexes(groups, scores.shape[0])
        losses: dict[int, Tensor] = {}
        families: dict[tuple, _Family] = {}
        for position, objective in enumerate(self.members):
            if isinstance(objective, FairnessLoss):
                key = (objective.step, objective.aggregate, objective.min_mass)
                family = families.setdefault(key, {})
                index = need_groups(indexes[position], objective)
                family.setdefault(id(index), (index, {}))[1][position] = objective
            else:
                losses[position] = objective.evaluate(batch, indexes[position])
        for family in families.values():
            losses |= _evaluate_family(family, batch)
        return torch.stack([losses[position] for position in range(len(self))])

    def _indexes(self, groups: Grouping | Sequence[Grouping], n: int) -> list[GroupIndex | None]:
        if groups is None or isinstance(groups, (Groups, Tensor)):
            given: list[Grouping] = [groups] * len(self)
        else:
            given = list(groups)
        if len(given) != len(self):
            raise ValueError(
                f"groups must be one grouping, or one for each of the {len(self)} objectives, "
                f"got {len(given)}."
            )
        read = {id(grouping): read_groups(grouping, n) for grouping in given}
        return [read[id(grouping)] for grouping in given]


def _evaluate_family(family: _Family, batch: Batch) -> dict[int, Tensor]:
    """Fairness losses that differ in rate, groups and task weight only, in one go."""
    parts = [soft_sums(list(same.values()), batch, index) for index, same in family.values()]
    members = {position: loss for _, same in family.values() for position, loss in same.items()}
    first = next(iter(members.values()))
    gaps = pairwise_gap(_stack(parts), first.aggregate, first.min_mass)
    return {
        position: loss.from_gaps(gap, batch)
        for (position, loss), gap in zip(members.items(), gaps.unbind(0), strict=True)
    }


def _stack(parts: Sequence[RateSums]) -> RateSums:
    """Put sums under each other; a grouping with fewer groups gets empty ones."""
    if len(parts) == 1:
        return parts[0]
    most = max(part.numerator.shape[-1] for part in parts)

    def padded(sums: Tensor) -> Tensor:
        missing = most - sums.shape[-1]
        return torch.nn.functional.pad(sums, (0, missing)) if missing else sums

    return RateSums(
        torch.cat([padded(part.numerator) for part in parts]),
        torch.cat([padded(part.denominator) for part in parts]),
    )
