"""Networks, linear models and boosted trees that learn group and label together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import final

import numpy as np
import torch
from torch import Tensor, nn
from xgboost import Booster, DMatrix

from apfex.models._groupings_model import GroupingsModel, log_probabilities
from apfex.models._joint_model import JointLearner, kind_of
from apfex.models._rows import JointRows, TrainingRows
from apfex.models._stacked_mlp import StackedMLP
from apfex.models._training import TrainingSettings, train_population
from apfex.models._trees import (
    Trees,
    TreeSettings,
    fit_booster,
    in_parallel,
    plain_matrix,
    quantile_matrix,
)

_DECAY_ROWS = 1_000.0
"""Rows that the weight decay of linear models counts as."""
_CHUNK = 2**14
"""Rows that are predicted at a time."""


@final
@dataclass(frozen=True)
class NetworkLearner:
    """Networks or linear models, one for each fold, trained as one population.

    Attributes
    ----------
    hidden : tuple of int
        Widths of the hidden layers. Empty for linear models, whose weight decay counts as much as
        1,000 rows, so that it fades on large tables.
    training : TrainingSettings
    """

    hidden: tuple[int, ...]
    training: TrainingSettings

    @property
    def steps(self) -> int:
        """Number of epochs."""
        return self.training.epochs

    def fit(self, rows: JointRows, on_step: Callable[[], None]) -> tuple[list[nn.Module], Tensor]:
        """Train a network for each fold; return them and out-of-fold probabilities [n, k * c]."""
        n, x, folds = len(rows.x), rows.x, torch.arange(rows.n_folds, device=rows.x.device)
        training = self.training
        if not self.hidden:
            training = replace(training, weight_decay=min(1.0, _DECAY_ROWS / n))
        weight = rows.weight.to(x) * (rows.folds != folds.unsqueeze(1))  # [b, n]
        n_outputs = rows.shape[0] * rows.shape[1]
        made = StackedMLP(x.shape[1], n_outputs, self.hidden, len(folds), training.seed)
        population = made.to(x.device)
        train_population(
            population,
            TrainingRows(x, rows.targets, rows.targets.new_empty(0, n), (), weight),
            training,
            on_epoch=lambda _: on_step(),
        )
        models: list[nn.Module] = [population.member(fold) for fold in range(len(folds))]
        with torch.no_grad():
            parts = zip(x.split(_CHUNK), rows.folds.split(_CHUNK), strict=True)
            chosen = [
                population.scores(part)[fold, torch.arange(len(part), device=part.device)]
                for part, fold in parts
            ]
        return models, torch.softmax(torch.cat(chosen), 1)


def network_learners(hidden: Sequence[int], training: TrainingSettings) -> list[NetworkLearner]:
    """Return a learner of linear models, and one of networks if there are hidden layers.

    Examples
    --------
    >>> [learner.hidden for learner in network_learners((64,), TrainingSettings())]
    [(), (64,)]
    """
    widths = [(), tuple(hidden)] if hidden else [()]
    return [NetworkLearner(found, training) for found in widths]


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
    with_label = (_with_column(x, x.new_full((len(x),), y)) for y in range(n_classes))
    return torch.stack([log_probabilities(group(inputs)) for inputs in with_label], 2)


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

    def fit(self, rows: JointRows, on_step: Callable[[], None]) -> tuple[list[nn.Module], Tensor]:
        """Grow trees for each fold; return them and out-of-fold probabilities [n, k * c]."""
        (k, c), x = rows.shape, rows.x
        labels, types = rows.labels, self.feature_types
        of_label = self._boost(rows, x, types, labels, c, self.settings, on_step)
        of_group = self.fit_groups(rows, on_step)
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
        self, rows: JointRows, on_step: Callable[[], None]
    ) -> Sequence[Trees | GroupingsModel | None]:
        """Grow trees of the group given the label, for each fold; None where there is one group."""
        if rows.sizes:
            advance = _every(len(rows.sizes), on_step)
            found = [self.fit_groups(one, advance) for one in rows.by_grouping()]
            return [GroupingsModel(parts, rows.sizes) for parts in zip(*found, strict=True)]
        k, c = rows.shape
        if k == 1:
            for _ in range(rows.n_folds):
                on_step()
            return [None] * rows.n_folds
        labels, groups = rows.targets % c, rows.targets // c
        with_label = _with_column(rows.x, labels.to(rows.x))
        types = [*self.feature_types, "q" if c == 2 else "c"]
        settings = self.settings.for_groups()
        return self._boost(rows, with_label, types, groups, k, settings, on_step)

    def _boost(
        self,
        rows: JointRows,
        x: Tensor,
        types: Sequence[str],
        target: Tensor,
        n_classes: int,
        settings: TreeSettings,
        on_step: Callable[[], None],
    ) -> list[Trees]:
        """Grow an ensemble for each fold, up to the round with the least out-of-fold loss."""
        inputs, known, folds = (part.cpu().numpy() for part in (x, target, rows.folds))
        weight = rows.weight.cpu().numpy()

        def matrix(make: Callable[..., DMatrix], part: np.ndarray) -> DMatrix:
            return make(inputs[part], types, label=known[part], weight=weight[part])

        def learn(fold: int) -> tuple[Booster, list[float]]:
            data = matrix(quantile_matrix, folds != fold)
            return fit_booster(settings, n_classes, data, matrix(plain_matrix, folds == fold))

        boosters, losses = [], []
        for booster, loss in in_parallel(learn, range(rows.n_folds)):
            boosters.append(booster)
            losses.append(loss)
            on_step()
        common = min(map(len, losses))  # rounds before the first of them has stopped
        rounds = int(np.mean([loss[:common] for loss in losses], axis=0).argmin()) + 1
        return [Trees(booster[:rounds]) for booster in boosters]


def _every(nth: int, on_step: Callable[[], None]) -> Callable[[], None]:
    """Advance once in so many calls: a step of all groupings is one of the learner."""
    calls = count(1)
    return lambda: on_step() if next(calls) % nth == 0 else None


def _with_column(x: Tensor, column: Tensor) -> Tensor:
    return torch.cat([x, column.unsqueeze(1)], 1)


@final
@dataclass(frozen=True)
class ColumnsLearner:
    """A learner that is given some of the inputs only.

    Attributes
    ----------
    learner : JointLearner
    start, stop : int
        Which inputs, as in :class:`ColumnsModel`.

    Examples
    --------
    >>> rows = JointRows(torch.randn(40, 3), torch.arange(40) % 4, (2, 2), torch.arange(40) % 2)
    >>> (learner,) = network_learners((), TrainingSettings(epochs=2))
    >>> models, _ = ColumnsLearner(learner, 1, 3).fit(rows, lambda: None)
    >>> models[0](rows.x).shape
    torch.Size([40, 4])
    """

    learner: JointLearner
    start: int
    stop: int

    @property
    def steps(self) -> int:
        """Those of the learner."""
        return self.learner.steps

    def fit(self, rows: JointRows, on_step: Callable[[], None]) -> tuple[list[nn.Module], Tensor]:
        """Fit the learner to its inputs."""
        own = replace(rows, x=rows.x[:, self.start : self.stop])
        models, out_of_fold = self.learner.fit(own, on_step)
        return [ColumnsModel(model, self.start, self.stop) for model in models], out_of_fold


@final
class ColumnsModel(nn.Module):
    """A model that is given some of the inputs only.

    Parameters
    ----------
    model : module
    start, stop : int
        The model sees the inputs from ``start`` up to, but not including, ``stop``.

    Examples
    --------
    >>> ColumnsModel(nn.Linear(2, 4), 1, 3)(torch.zeros(5, 3)).shape
    torch.Size([5, 4])
    """

    def __init__(self, model: nn.Module, start: int, stop: int) -> None:
        super().__init__()
        self.model, self.start, self.stop = model, start, stop
        self.kind = kind_of(model)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of the model."""
        return self.model(x[:, self.start : self.stop])
