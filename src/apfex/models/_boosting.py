"""Boosting members on a common base model, each round along a gradient by their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np
import torch
import xgboost
from torch import Tensor, nn
from xgboost import Booster, DMatrix

from apfex.models._checkpoint import NOWHERE, Checkpoint, check_count
from apfex.models._rows import TrainingRows
from apfex.models._trees import (
    Trees,
    TreeSettings,
    check_trees,
    in_parallel,
    plain_matrix,
    quantile_matrix,
)

_LEAST_CURVATURE = 1e-6
_NAME = "rounds"
"""Of the state in a checkpoint."""
_EVERY, _SEEDS = 5, 1_000_003
"""Rounds after which boosters are made anew and may be kept, and what sets their seeds apart."""


@final
class BoostedModel(nn.Module):
    """Scores of a base model, plus those of trees that were boosted on top of it.

    Parameters
    ----------
    base, boosted : modules
        One score each, or c for several classes.

    Examples
    --------
    >>> BoostedModel(nn.Linear(2, 1), nn.Linear(2, 1))(torch.zeros(3, 2)).shape
    torch.Size([3, 1])
    """

    def __init__(self, base: nn.Module, boosted: nn.Module) -> None:
        super().__init__()
        self.base, self.boosted = base, boosted

    def forward(self, x: Tensor) -> Tensor:
        """Return scores [n, 1], or [n, c]."""
        return self.base(x) + self.boosted(x)


@final
@dataclass(frozen=True, eq=False)
class BoostedMembers:
    """Members on a common base model, after some rounds.

    Attributes
    ----------
    base : module
    boosters : sequence of xgboost.Booster
        Trees of each member; those of later rounds do not count.
    rounds : Tensor of shape [b]
        Number of rounds of each member; fewer for one that has stopped.
    scores : Tensor of shape [b, n] or [b, n, c]
        Scores of the training rows.
    validation_scores : Tensor, like the scores
        Scores of the validation rows; empty if there are none.

    Examples
    --------
    >>> base, start = nn.Linear(2, 1), torch.zeros(1, 5)
    >>> BoostedMembers(base, [], torch.tensor([0]), start, start).member(0) is base
    True
    """

    base: nn.Module
    boosters: Sequence[Booster]
    rounds: Tensor
    scores: Tensor
    validation_scores: Tensor

    def without_scores(self) -> BoostedMembers:
        """Return the same members to be kept: the scores of many rounds would fill the memory."""
        return replace(self, scores=self.scores[:, :0], validation_scores=self.scores[:, :0])

    def member(self, index: int) -> nn.Module:
        """Return a member as a module of its own."""
        rounds = int(self.rounds[index])
        if not rounds:
            return self.base
        return BoostedModel(self.base, Trees(self.boosters[index][:rounds]))


def boost_members(
    base: nn.Module,
    rows: TrainingRows,
    gradient: Callable[[Tensor], Tensor],
    n_members: int,
    settings: TreeSettings,
    feature_types: Sequence[str],
    *,
    validation: Tensor | None = None,
    on_round: Callable[[BoostedMembers], Tensor | None] | None = None,
    checkpoint: Checkpoint = NOWHERE,
) -> BoostedMembers:
    """Boost trees for all members on top of a base model, each round against a gradient.

    Parameters
    ----------
    base : module
        From inputs [n, d] to scores [n, 1], or [n, c]; it stays as it is.
    rows : TrainingRows
    gradient : callable
        From scores [b, n] or [b, n, c] to the gradient of each member's mean loss by them. In the
        search for a front that is :class:`MemberGradient`.
    n_members : int
    settings : TreeSettings
    feature_types : sequence of str
        "q" or "c" for each input: a quantity, or a category's code.
    validation : Tensor of shape [m, d], optional
        Inputs of validation rows, whose scores are kept up to date.
    on_round : callable, optional
        Called before the first round and after each; it may return which members go on, a bool
        Tensor [b].
    checkpoint : Checkpoint, optional
        Where trees are kept after every fifth round, and from where boosting goes on: trees that
        are there are not grown again, but looked at and measured as if they were.

    Notes
    -----
    What XGBoost draws columns and rows by is remembered by a booster alone, and by no file. So
    every fifth round boosters are made anew of their trees, with a seed of that round.

    Leaves are Newton steps with the curvature of the cross-entropy alone: fairness losses curve
    either way, and counting only where they curve upwards shortens the steps. All members share
    the bins of the inputs.

    Examples
    --------
    >>> x, y = torch.randn(60, 2), torch.arange(60) % 2
    >>> rows = TrainingRows(x, y, torch.zeros(0, 60, dtype=torch.int64), ())
    >>> settings, gradient = TreeSettings.for_rows(60), lambda s: (torch.sigmoid(s) - y) / 60
    >>> members = boost_members(nn.Linear(2, 1), rows, gradient, 2, settings, ("q", "q"))
    >>> members.member(1)(x).shape
    torch.Size([60, 1])
    """
    validation = rows.x[:0] if validation is None else validation
    start, new_start = (_base_scores(base, x, n_members) for x in (rows.x, validation))
    data = quantile_matrix(_array(rows.x), feature_types)
    others = [plain_matrix(_array(validation), feature_types)] if len(validation) else []
    n_outputs = 1 if start.ndim == 2 else start.shape[2]
    objective = {"objective": "reg:squarederror", "num_target": n_outputs, "base_score": 0.0}
    parameters = settings.parameters(**objective)

    def booster(member: int, rounds: int, trees: Booster | None = None) -> Booster:
        seed = (settings.seed + member + _SEEDS * rounds) % 2**31
        given = (
            parameters if trees is None else {**parameters, "base_score": None}
        )  # it has its own
        return xgboost.Booster({**given, "seed": seed}, [data, *others], trees)

    kept = _Kept(checkpoint, n_members, settings.n_estimators, feature_types, n_outputs)
    first, boosters = kept.read() or (0, [booster(member, 0) for member in range(n_members)])
    draws = min(settings.subsample, settings.colsample_bytree) < 1
    weight, going = rows.weights(), torch.ones(n_members, dtype=torch.bool)
    no_rounds = torch.zeros(n_members, dtype=torch.int64)
    members = BoostedMembers(base, boosters, no_rounds, start, new_start)
    for done in range(settings.n_estimators + 1):
        answer = None if on_round is None else on_round(members)
        going = going if answer is None else going & answer.cpu()
        if done == settings.n_estimators or not going.any():
            return members
        slopes = gradient(members.scores) * weight.sum()
        if done < first:
            members = _with_round(members, start, new_start, going, data, others)
            continue
        if done and done == first:
            kept.check(boosters, members.rounds)
        if done and (done == first or (draws and done % _EVERY == 0)):
            boosters[:] = [booster(member, done, old) for member, old in enumerate(boosters)]
        curves = _curvature(members.scores, weight * rows.label_weights())
        jobs = [
            partial(boosters[i].boost, data, done, grad=_array(slopes[i]), hess=_array(curves[i]))
            for i in going.nonzero().flatten().tolist()
        ]
        list(in_parallel(lambda job: job(), jobs))
        # Scores are read here and never in the jobs: XGBoost keeps its cache of a matrix's margins
        # per thread, and boosting adds the new tree to the cache of its own thread only, so that
        # a thread that boosts misses the rounds that others have boosted. This one boosts none.
        scores = _add_trees(start, boosters, data)
        new_scores = _add_trees(new_start, boosters, others[0]) if others else new_start
        members = BoostedMembers(base, boosters, members.rounds + going, scores, new_scores)
        if (done + 1) % _EVERY == 0:
            kept.write(done + 1, boosters)
    return members


@final
@dataclass(frozen=True)
class _Kept:
    """Trees of all members after some rounds, in a checkpoint."""

    checkpoint: Checkpoint
    n_members: int
    most: int
    types: Sequence[str]
    n_outputs: int

    def read(self) -> tuple[int, list[Booster]] | None:
        """After how many rounds, and the trees."""
        return self.checkpoint.read(_NAME, self._taken)

    def _taken(self, state: Mapping[str, Any]) -> tuple[int, list[Booster]]:
        rounds, found = check_count(state["rounds"], 1, self.most, "rounds"), state["trees"]
        if not isinstance(found, list) or len(found) != self.n_members or rounds % _EVERY:
            raise ValueError(f"trees must be of {self.n_members} members, got others")
        for trees in found:
            check_trees(trees, self.types, max(2, self.n_outputs))
        return rounds, [trees.booster for trees in found]

    def check(self, boosters: Sequence[Booster], rounds: Tensor) -> None:
        """Refuse trees of other rounds than the members had, by all that was measured of them."""
        there = [booster.num_boosted_rounds() for booster in boosters]
        if there != rounds.tolist():
            raise ValueError(
                f"The checkpoint must have trees of {rounds.tolist()} rounds, got {there}; remove "
                "it, and what it held is computed again."
            )

    def write(self, rounds: int, boosters: Sequence[Booster]) -> None:
        """Keep them, if it is time."""
        if self.checkpoint.is_due(finished=rounds == self.most):
            trees = [Trees(booster.copy()) for booster in boosters]
            self.checkpoint.write(_NAME, {"rounds": rounds, "trees": trees})


def _with_round(
    members: BoostedMembers,
    start: Tensor,
    new_start: Tensor,
    going: Tensor,
    data: DMatrix,
    others: Sequence[DMatrix],
) -> BoostedMembers:
    """Members after one round more, whose trees are there already."""
    rounds = members.rounds + going
    scores = _add_trees(start, members.boosters, data, rounds)
    new_scores = _add_trees(new_start, members.boosters, others[0], rounds) if others else new_start
    return replace(members, rounds=rounds, scores=scores, validation_scores=new_scores)


def _base_scores(base: nn.Module, x: Tensor, n_members: int) -> Tensor:
    """Scores [b, n] or [b, n, c] of the base model, the same for all members."""
    with torch.no_grad():
        scores = base(x)
    shared = scores.squeeze(1) if scores.shape[1] == 1 else scores
    return shared.expand(n_members, *shared.shape).clone()


def _add_trees(
    start: Tensor, boosters: Sequence[Booster], data: DMatrix, rounds: Tensor | None = None
) -> Tensor:
    """Scores with all trees, or with those of so many rounds of each member."""
    ends = [0] * len(boosters) if rounds is None else rounds.tolist()  # 0: all of them
    own = np.stack(
        [
            booster.predict(data, output_margin=True, iteration_range=(0, end))
            for booster, end in zip(boosters, ends, strict=True)
        ]
    )
    return start + torch.from_numpy(own).to(start).reshape(start.shape)


def _curvature(scores: Tensor, weight: Tensor) -> Tensor:
    """Second derivative of the cross-entropy by each score, times the rows' weights."""
    if scores.ndim == 2:
        p = torch.sigmoid(scores)
        return weight * (p * (1 - p)).clamp_min(_LEAST_CURVATURE)
    p = torch.softmax(scores, 2)
    return weight.unsqueeze(1) * (2 * p * (1 - p)).clamp_min(_LEAST_CURVATURE)


def _array(values: Tensor) -> np.ndarray:
    return values.detach().cpu().numpy()
