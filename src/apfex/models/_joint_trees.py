"""Boosted trees that learn labels, and groups given labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, count, pairwise
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn
from xgboost import Booster, DMatrix

from apfex.models._checkpoint import NOWHERE, Checkpoint, check_losses
from apfex.models._groupings_model import GroupingsModel, log_probabilities
from apfex.models._rows import JointRows
from apfex.models._trees import (
    Trees,
    TreeSettings,
    check_trees,
    fit_booster,
    in_parallel,
    plain_matrix,
    quantile_matrix,
)


@final
class JointTrees(nn.Module):
    """Log-probabilities of group and label: those of the label, plus those of the group given it.

    Parameters
    ----------
    label : Trees
        One margin, or c for several classes.
    group : Trees, GroupingsModel or None
        One margin, or k for more than two groups, from the inputs and the label. None for a single
        group.
    shape : pair of int
        k and c.

    Examples
    --------
    >>> rows = JointRows(torch.randn(40, 2), torch.arange(40) % 4, (2, 2), torch.arange(40) % 2)
    >>> models, _ = TreeLearner(TreeSettings.for_rows(40), "qq", 2).fit(rows, lambda: None)
    >>> models[0](rows.x).exp().sum(1).round(decimals=4).unique()
    tensor([1.])
    """

    kind = "boosting"

    def __init__(
        self, label: Trees, group: Trees | GroupingsModel | None, shape: tuple[int, int]
    ) -> None:
        super().__init__()
        self.label, self.group, self.shape = label, group, shape

    def forward(self, x: Tensor) -> Tensor:
        """Return log-probabilities [n, k * c]."""
        labels = log_probabilities(self.label(x))
        if self.group is None:
            return labels
        groups = log_groups_given_labels(self.group, x, self.shape[1])
        return (labels.unsqueeze(1) + groups).flatten(1)


def log_groups_given_labels(group: nn.Module, x: Tensor, n_classes: int) -> Tensor:
    """Log-probabilities [n, k, c] of the group given each label, by trees that take both."""
    labels = torch.arange(n_classes).to(x).repeat_interleave(len(x))
    found = log_probabilities(group(with_column(x.repeat(n_classes, 1), labels)))
    return found.unflatten(0, (n_classes, len(x))).permute(1, 2, 0)


@final
@dataclass(frozen=True)
class TreeLearner:
    """Boosted trees that learn the label first, and then the group given the label.

    The number of rounds is that with the least out-of-fold loss, the same for all folds.

    Attributes
    ----------
    settings : TreeSettings
        For the trees of the label; those of the group are fewer.
    feature_types : sequence of str
        "q" or "c" for each input: a quantity, or a category's code.
    n_folds : int

    Examples
    --------
    >>> rows = JointRows(torch.randn(80, 3), torch.arange(80) % 4, (2, 2), torch.arange(80) % 2)
    >>> learner = TreeLearner(TreeSettings.for_rows(80), ("q", "q", "q"), n_folds=2)
    >>> models, out_of_fold = learner.fit(rows, lambda: None)
    >>> out_of_fold.shape
    torch.Size([80, 4])
    """

    settings: TreeSettings
    feature_types: Sequence[str]
    n_folds: int

    @property
    def steps(self) -> int:
        """Number of ensembles: for each fold one of the label and one of the group."""
        return 2 * self.n_folds

    def fit(
        self, rows: JointRows, on_step: Callable[[], None], checkpoint: Checkpoint = NOWHERE
    ) -> tuple[list[nn.Module], Tensor]:
        """Grow trees for each fold; return them and out-of-fold probabilities [n, k * c]."""
        (k, c), x = rows.shape, rows.x
        label = _Growth(rows, x, self.feature_types, rows.labels, c, self.settings)
        growths = [label, *self._growths_of_groups(rows)]
        of_label, *rest = _grow(growths, self.steps, on_step, checkpoint)
        of_group = groups_by_fold(k, rows.sizes, rows.n_folds, rest)
        models: list[nn.Module] = [
            JointTrees(label, group, rows.shape)
            for label, group in zip(of_label, of_group, strict=True)
        ]
        out_of_fold = torch.empty(len(x), k * c, dtype=x.dtype, device=x.device)
        for fold, model in enumerate(models):
            own = rows.folds == fold
            out_of_fold[own] = model(x[own]).exp()
        return models, out_of_fold

    def fit_groups(
        self, rows: JointRows, on_step: Callable[[], None], checkpoint: Checkpoint = NOWHERE
    ) -> Sequence[Trees | GroupingsModel | None]:
        """Grow trees of the group given the label, for each fold; None where there is one group."""
        growths = self._growths_of_groups(rows)
        grown = _grow(growths, rows.n_folds, on_step, checkpoint)
        return groups_by_fold(rows.shape[0], rows.sizes, rows.n_folds, grown)

    def _growths_of_groups(self, rows: JointRows) -> list[_Growth]:
        """Of each grouping that has several groups."""
        settings, c = self.settings.for_groups(), rows.shape[1]
        with_label = with_column(rows.x, rows.labels.to(rows.x))
        types = [*self.feature_types, "q" if c == 2 else "c"]
        return [
            _Growth(rows, with_label, types, one.targets // c, one.shape[0], settings)
            for one in _groupings(rows)
            if one.shape[0] > 1
        ]


class _Growth:
    """Ensembles that are to be grown, one for each fold."""

    def __init__(
        self,
        rows: JointRows,
        x: Tensor,
        types: Sequence[str],
        target: Tensor,
        n_classes: int,
        settings: TreeSettings,
    ) -> None:
        self._inputs, self._target, self._folds, self._weight = (
            part.cpu().numpy() for part in (x, target, rows.folds, rows.weight)
        )
        self.types, self.n_classes, self._settings = types, n_classes, settings
        self.n_folds = rows.n_folds

    def learn(self, fold: int, n_threads: int) -> Grown:
        """Learn from the other folds; also return the loss of the fold after each round.

        Rows are put into bins by so many threads; trees grow on one.
        """
        data = self._matrix(quantile_matrix, self._folds != fold, n_threads)
        others = self._matrix(plain_matrix, self._folds == fold, n_threads)
        return Grown(*fit_booster(self._settings, self.n_classes, data, others))

    def _matrix(self, make: Callable[..., DMatrix], part: np.ndarray, n_threads: int) -> DMatrix:
        return make(
            self._inputs[part],
            self.types,
            label=self._target[part],
            weight=self._weight[part],
            n_threads=n_threads,
        )


@final
@dataclass(frozen=True, eq=False)
class Grown:
    """An ensemble before it is cut, and the loss of its fold after each round."""

    booster: Booster
    losses: Sequence[float]

    def state_dict(self) -> dict[str, Any]:
        """All of it, for a checkpoint."""
        return {"trees": Trees(self.booster), "losses": list(self.losses)}

    @staticmethod
    def read(
        checkpoint: Checkpoint, name: str, types: Sequence[str], n_classes: int
    ) -> Grown | None:
        """The one of this name, if it was grown before, from inputs of these types."""

        def take(state: Any) -> Grown:
            check_trees(state["trees"], types, n_classes)
            booster, losses = state["trees"].booster, state["losses"]
            check_losses(losses, "losses")
            if len(losses) != booster.num_boosted_rounds():
                raise ValueError(f"losses must be of every round, got {len(losses)}")
            return Grown(booster, losses)

        return checkpoint.read(name, take)

    @staticmethod
    def kept(
        checkpoint: Checkpoint,
        name: str,
        types: Sequence[str],
        n_classes: int,
        grow: Callable[[], Grown],
    ) -> Grown:
        """The one of this name; if it was not grown before, it is now."""
        found = Grown.read(checkpoint, name, types, n_classes)
        if found is None:
            found = grow()
            checkpoint.write(name, found.state_dict())
        return found


def _grow(
    growths: Sequence[_Growth],
    steps: int,
    on_step: Callable[[], None],
    checkpoint: Checkpoint,
) -> list[list[Trees]]:
    """Grow all ensembles side by side, each up to the round with the least out-of-fold loss.

    ``on_step`` is called so many times, as they are done.
    """
    jobs = [
        (f"trees{place}-{fold}", growth, fold)
        for place, growth in enumerate(growths)
        for fold in range(growth.n_folds)
    ]
    # read by this thread: several workers of one training read together, each at the same place
    before = {
        name: Grown.read(checkpoint, name, growth.types, growth.n_classes)
        for name, growth, _ in jobs
    }

    def learn(job: tuple[str, _Growth, int]) -> Grown:
        name, growth, fold = job
        found = before[name]
        if found is None:
            found = growth.learn(fold, n_threads)
            checkpoint.write(name, found.state_dict())
        return found

    n_threads = max(1, torch.get_num_threads() // max(1, len(jobs)))  # of each job
    grown, step = [], paced(on_step, steps, len(jobs))
    for found in in_parallel(learn, jobs) if jobs else ():
        step()
        grown.append(found)
    ends = accumulate((growth.n_folds for growth in growths), initial=0)
    return [at_least_loss(grown[start:end]) for start, end in pairwise(ends)]


def paced(on_step: Callable[[], None], steps: int, jobs: int) -> Callable[[], None]:
    """What is called after each of some jobs, so that ``on_step`` is called so many times in all.

    Examples
    --------
    >>> called = []
    >>> step = paced(lambda: called.append(1), 4, 2)
    >>> step()
    >>> len(called)
    2
    """
    done = count(1)

    def step() -> None:
        now = next(done)
        for _ in range(steps * now // jobs - steps * (now - 1) // jobs):
            on_step()

    for _ in range(0 if jobs else steps):
        on_step()
    return step


def _groupings(rows: JointRows) -> list[JointRows]:
    """The rows of each grouping by itself; the rows, where there is one."""
    return rows.by_grouping() if rows.sizes else [rows]


def groups_by_fold(
    k: int, sizes: tuple[int, ...], n_folds: int, grown: Sequence[list[Trees]]
) -> Sequence[Trees | GroupingsModel | None]:
    """Models of the group given the label, for each fold, from trees of each grouping.

    ``sizes`` are the groups of each grouping, and empty where there is one, of k groups.
    """
    several = iter(grown)
    found: list[Sequence[Trees | None]] = [
        next(several) if size > 1 else [None] * n_folds for size in sizes or (k,)
    ]
    if not sizes:
        return found[0]
    return [GroupingsModel(parts, sizes) for parts in zip(*found, strict=True)]


def at_least_loss(grown: Sequence[Grown]) -> list[Trees]:
    """Cut the ensembles of all folds after the round that is best for their mean."""
    rounds = common_rounds([one.losses for one in grown])
    return [Trees(one.booster[:rounds]) for one in grown]


def common_rounds(losses: Sequence[Sequence[float]]) -> int:
    """The number of rounds with the least loss over all folds, whose losses are given by round."""
    common = min(map(len, losses))  # rounds before the first of them has stopped
    return int(np.mean([loss[:common] for loss in losses], axis=0).argmin()) + 1


def with_column(x: Tensor, column: Tensor) -> Tensor:
    return torch.cat([x, column.unsqueeze(1)], 1)
