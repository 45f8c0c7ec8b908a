"""Several objectives of one batch, evaluated together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.arguments import as_names
from apfex.groups import Groups
from apfex.objectives._base import BatchObjective, Objective, group_reader, need_groups
from apfex.objectives._batch import Batch
from apfex.objectives._fairness import FairnessLoss, fairness_gaps
from apfex.objectives._fused import Recipe, can_fuse, fused_losses, has_codes
from apfex.objectives._read_batch import Grouping, read_batch
from apfex.rates import GroupIndex


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
        """Refuse an empty list, or members that are no objectives."""
        object.__setattr__(self, "members", as_names("members", self.members))
        if not self.members:
            raise ValueError("members must hold at least one objective, got none.")
        for position, member in enumerate(self.members):
            if not isinstance(member, Objective):
                raise TypeError(
                    f"members[{position}] must be an objective with evaluate and typical_scale, "
                    f"got {type(member).__name__}."
                )

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
        readers = [group_reader(objective) for objective in self.members]
        given = self._groupings(groups)
        batch, indexes = read_batch(scores, y, sample_weight, readers, given)
        recipes = self._recipes(batch, indexes)
        known = [indexes[position] for position in recipes]
        if len(recipes) == len(self):
            return fused_losses(batch, list(recipes.values()), known)
        losses: dict[int, Tensor] = {}
        if recipes:
            together = fused_losses(batch, list(recipes.values()), known)
            losses |= dict(zip(recipes, together.unbind(0), strict=True))
        families: dict[tuple, list[int]] = {}
        for position, objective in enumerate(self.members):
            if isinstance(objective, FairnessLoss) and position not in losses:
                index = need_groups(indexes[position], objective)
                key = (objective.step, objective.aggregate, objective.min_count, id(index))
                families.setdefault(key, []).append(position)
            elif position not in losses:
                losses[position] = objective.evaluate(batch, indexes[position])
        for positions in families.values():
            losses |= self._evaluate_family(positions, batch, indexes[positions[0]])
        return torch.stack([losses[position] for position in range(len(self))])

    def _recipes(self, batch: Batch, indexes: Sequence[GroupIndex | None]) -> dict[int, Recipe]:
        """Recipes of the losses that one pass can serve, if any of them is a gap."""
        fuse = can_fuse(batch)
        recipes: dict[int, Recipe] = {}
        for position, (objective, index) in enumerate(zip(self.members, indexes, strict=True)):
            if isinstance(objective, BatchObjective):
                objective.check_groups(index)
                if fuse and objective.recipe is not None and has_codes(index):
                    recipes[position] = objective.recipe
        return recipes if any(recipe.gap is not None for recipe in recipes.values()) else {}

    def _evaluate_family(
        self, positions: Sequence[int], batch: Batch, index: GroupIndex | None
    ) -> dict[int, Tensor]:
        """Fairness losses that differ in rate and task weight only, from one pass over the rows."""
        losses = [self.members[position] for position in positions]
        family = [loss for loss in losses if isinstance(loss, FairnessLoss)]
        gaps = fairness_gaps(family, batch, need_groups(index, family[0]))
        shares = gaps.new_tensor([loss.task_weight for loss in family])
        has_task = any(loss.task_weight for loss in family)
        values = torch.addcmul(gaps, shares, batch.cross_entropy) if has_task else gaps
        return dict(zip(positions, values.unbind(0), strict=True))

    def _groupings(self, groups: Grouping | Sequence[Grouping]) -> list[Grouping]:
        """One for each objective."""
        if groups is None or isinstance(groups, (Groups, Tensor)):
            return [groups] * len(self)
        given = list(groups)
        if len(given) != len(self):
            raise ValueError(
                f"groups must be one grouping, or one for each of the {len(self)} objectives, "
                f"got {len(given)}."
            )
        return given
