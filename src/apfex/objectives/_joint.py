"""Several objectives of one batch, evaluated together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.groups import Groups
from apfex.objectives._base import Batch, Objective, check_batch, need_groups
from apfex.objectives._fairness import FairnessLoss, soft_sums
from apfex.objectives._pairs import pairwise_gap
from apfex.rates import GroupIndex, RateSums


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
        groups: Groups | Tensor | Sequence[Groups | Tensor | None] | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Return the losses of one batch, shape [m].

        ``groups`` is one grouping for all objectives, or a list with one for each.
        """
        batch = check_batch(scores, y, sample_weight)
        indexes = self._indexes(groups, scores.shape[0])
        losses: dict[int, Tensor] = {}
        families: dict[tuple, list[int]] = {}
        for position, objective in enumerate(self.members):
            if isinstance(objective, FairnessLoss):
                key = (objective.step, objective.aggregate, objective.min_mass)
                families.setdefault(key, []).append(position)
            else:
                losses[position] = objective.evaluate(batch, indexes[position])
        for positions in families.values():
            losses |= self._evaluate_family(positions, batch, indexes)
        return torch.stack([losses[position] for position in range(len(self))])

    def _evaluate_family(
        self, positions: list[int], batch: Batch, indexes: Sequence[GroupIndex | None]
    ) -> dict[int, Tensor]:
        """Fairness losses that differ in rate, groups and task weight only, in one go."""
        by_groups: dict[int, list[int]] = {}
        for position in positions:
            by_groups.setdefault(id(indexes[position]), []).append(position)
        parts = [
            soft_sums(
                [self.members[p] for p in same],
                batch,
                need_groups(indexes[same[0]], self.members[same[0]]),
            )
            for same in by_groups.values()
        ]
        first = self.members[positions[0]]
        gaps = pairwise_gap(_stack(parts), first.aggregate, first.min_mass)
        ordered = [position for same in by_groups.values() for position in same]
        return {
            position: self.members[position].from_gaps(gap, batch)
            for position, gap in zip(ordered, gaps.unbind(0), strict=True)
        }

    def _indexes(
        self, groups: Groups | Tensor | Sequence[Groups | Tensor | None] | None, n: int
    ) -> list[GroupIndex | None]:
        shared = groups is None or isinstance(groups, (Groups, Tensor))
        given = [groups] * len(self) if shared else list(groups)
        if len(given) != len(self):
            raise ValueError(
                f"groups must be one grouping, or one for each of the {len(self)} objectives, "
                f"got {len(given)}."
            )
        read = {id(g): g if g is None else GroupIndex.of(g, n) for g in given}
        return [read[id(g)] for g in given]


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
