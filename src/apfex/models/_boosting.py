"""Boosting under several aims: every round is a step in prediction space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from torch import Tensor, nn

from apfex.models._rows import TrainingRows
from apfex.models._trees import (
    Trees,
    TreeSettings,
    import_xgboost,
    quantise,
    side_by_side,
    unbinned,
)

if TYPE_CHECKING:
    from xgboost import Booster, DMatrix

Steer = Callable[[Tensor], Tensor]
"""From scores [b, n] or [b, n, c] to the slope of every member's mean loss by them."""
_LEAST_CURVATURE = 1e-6


@final
class RepairedTrees(nn.Module):
    """Scores of a trunk, plus those of trees on top.

    Parameters
    ----------
    trunk, repair : modules
        One score each, or c for several classes.

    Examples
    --------
    >>> RepairedTrees(nn.Linear(2, 1), nn.Linear(2, 1))(torch.zeros(3, 2)).shape
    torch.Size([3, 1])
    """

    def __init__(self, trunk: nn.Module, repair: nn.Module) -> None:
        super().__init__()
        self.trunk, self.repair = trunk, repair

    def forward(self, x: Tensor) -> Tensor:
        """Scores [n, 1], or [n, c]."""
        return self.trunk(x) + self.repair(x)


@final
@dataclass(frozen=True, eq=False)
class BoostedMembers:
    """Members on a common trunk, as they are after some rounds.

    Attributes
    ----------
    trunk : module
    boosters : sequence of xgboost.Booster
        Trees of each member; those of later rounds do not count.
    rounds : Tensor of shape [b]
        Of each member; fewer for one that has stopped.
    scores : Tensor of shape [b, n] or [b, n, c]
        For the training rows.
    held : Tensor, like the scores
        For the rows that are watched; empty if there are none.

    Examples
    --------
    >>> trunk = nn.Linear(2, 1)
    >>> start = torch.zeros(1, 5)
    >>> BoostedMembers(trunk, [], torch.tensor([0]), start, start).member(0) is trunk
    True
    """

    trunk: nn.Module
    boosters: Sequence[Booster]
    rounds: Tensor
    scores: Tensor
    held: Tensor

    def without_scores(self) -> BoostedMembers:
        """The same, to be kept: scores of many rounds would fill the memory."""
        return replace(self, scores=self.scores[:, :0], held=self.held[:, :0])

    def member(self, index: int) -> nn.Module:
        """A member as a module of its own."""
        rounds = int(self.rounds[index])
        if not rounds:
            return self.trunk
        return RepairedTrees(self.trunk, Trees(self.boosters[index][:rounds]))


def boost_members(
    trunk: nn.Module,
    rows: TrainingRows,
    steer: Steer,
    n_members: int,
    settings: TreeSettings,
    feature_types: Sequence[str],
    *,
    watched: Tensor | None = None,
    on_round: Callable[[BoostedMembers], Tensor | None] | None = None,
) -> BoostedMembers:
    """Grow trees for all members on top of a trunk, each round where ``steer`` says.

    Parameters
    ----------
    trunk : module
        From inputs [n, d] to scores [n, 1], or [n, c]; it stays as it is.
    rows : TrainingRows
    steer : callable
        Slopes of the losses by the scores; a round goes against them. :class:`Strategic` asks a
        strategy; :class:`~apfex.models.Pressure` has fixed weights.
    n_members : int
    settings : TreeSettings
    feature_types : sequence of str
        "q" or "c" for each input: a quantity, or a category's code.
    watched : Tensor of shape [m, d], optional
        Other rows whose scores are kept up to date.
    on_round : callable, optional
        Called before the first round and after each; it may say which members go on, a bool
        Tensor [b].

    Notes
    -----
    Leaves are Newton steps with the curvature of the cross-entropy alone: fairness losses curve
    either way, and counting only where they curve upwards shortens the steps. All members share
    the inputs' bins.

    Examples
    --------
    >>> x, y = torch.randn(60, 2), torch.arange(60) % 2
    >>> rows = TrainingRows(x, y, torch.zeros(0, 60, dtype=torch.int64), ())
    >>> settings = TreeSettings.for_rows(60, n_estimators=3)
    >>> def steer(scores):
    ...     return (torch.sigmoid(scores) - y) / 60
    >>> members = boost_members(nn.Linear(2, 1), rows, steer, 2, settings, ("q", "q"))
    >>> members.member(1)(x).shape
    torch.Size([60, 1])
    """
    data = quantise(_array(rows.x), feature_types)
    seen, new = (
        _Scores.of(trunk, x, n_members)
        for x in (rows.x, rows.x[:0] if watched is None else watched)
    )
    matrices = [data] if watched is None else [data, unbinned(_array(watched), feature_types)]
    parameters = settings.parameters(
        objective="reg:squarederror", num_target=seen.n_outputs, base_score=0.0
    )
    boosters = [
        import_xgboost().Booster({**parameters, "seed": settings.seed + member}, matrices)
        for member in range(n_members)
    ]
    weight, going = rows.weights(), torch.ones(n_members, dtype=torch.bool)
    members = BoostedMembers(
        trunk, boosters, torch.zeros(n_members, dtype=torch.int64), seen.start, new.start
    )
    for done in range(settings.n_estimators + 1):
        answer = None if on_round is None else on_round(members)
        going = going if answer is None else going & answer.cpu()
        if done == settings.n_estimators or not going.any():
            return members
        slopes = steer(members.scores) * weight.sum()
        curves = _curvature(members.scores, weight)
        jobs = [
            partial(boosters[i].boost, data, done, grad=_array(slopes[i]), hess=_array(curves[i]))
            for i in going.nonzero().flatten().tolist()
        ]
        list(side_by_side(lambda job: job(), jobs))
        # Scores are read here and never in the jobs: XGBoost keeps its cache of a matrix's margins
        # per thread, and boosting adds the new tree to the cache of its own thread only, so that
        # a thread that boosts misses the rounds that others have boosted. This one boosts none.
        scores = seen.plus(boosters, data)
        held = new.start if watched is None else new.plus(boosters, matrices[1])
        members = BoostedMembers(trunk, boosters, members.rounds + going, scores, held)
    return members


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores of some rows by the trunk, for all members alike."""

    start: Tensor  # [b, n] or [b, n, c]
    n_outputs: int

    @staticmethod
    def of(trunk: nn.Module, x: Tensor, n_members: int) -> _Scores:
        with torch.no_grad():
            scores = trunk(x)
        n_outputs = scores.shape[1]
        shared = scores.squeeze(1) if n_outputs == 1 else scores
        return _Scores(shared.expand(n_members, *shared.shape).clone(), n_outputs)

    def plus(self, boosters: Sequence[Booster], data: DMatrix) -> Tensor:
        """With what the members' own trees add."""
        own = np.stack([booster.predict(data, output_margin=True) for booster in boosters])
        return self.start + torch.from_numpy(own).to(self.start).reshape(self.start.shape)


def _curvature(scores: Tensor, weight: Tensor) -> Tensor:
    """Of the cross-entropy by each score, times the rows' weights."""
    if scores.ndim == 2:
        p = torch.sigmoid(scores)
        return weight * (p * (1 - p)).clamp_min(_LEAST_CURVATURE)
    p = torch.softmax(scores, 2)
    return weight.unsqueeze(1) * (2 * p * (1 - p)).clamp_min(_LEAST_CURVATURE)


def _array(values: Tensor) -> np.ndarray:
    return values.detach().cpu().numpy()
