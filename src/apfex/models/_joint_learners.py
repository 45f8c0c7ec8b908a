"""Networks and linear models that learn group and label together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor, nn

from apfex.models._checkpoint import NOWHERE, Checkpoint
from apfex.models._joint_model import ColumnsModel
from apfex.models._mixture import JointLearner
from apfex.models._rows import JointRows, TrainingRows
from apfex.models._stacked_mlp import StackedMLP
from apfex.models._training import TrainingSettings, train_population

DECAY_ROWS = 1_000.0
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

    def fit(
        self, rows: JointRows, on_step: Callable[[], None], checkpoint: Checkpoint = NOWHERE
    ) -> tuple[list[nn.Module], Tensor]:
        """Train a network for each fold; return them and out-of-fold probabilities [n, k * c]."""
        n, x, folds = len(rows.x), rows.x, torch.arange(rows.n_folds, device=rows.x.device)
        training = self.training
        if not self.hidden:
            training = replace(training, weight_decay=min(1.0, DECAY_ROWS / n))
        weight = rows.weight.to(x) * (rows.folds != folds.unsqueeze(1))  # [b, n]
        n_outputs = rows.shape[0] * rows.shape[1]
        made = StackedMLP(x.shape[1], n_outputs, self.hidden, len(folds), training.seed)
        population = made.to(x.device)
        train_population(
            population,
            TrainingRows(x, rows.targets, rows.targets.new_empty(0, n), (), weight),
            training,
            on_epoch=lambda _: on_step(),
            checkpoint=checkpoint,
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

    def fit(
        self, rows: JointRows, on_step: Callable[[], None], checkpoint: Checkpoint = NOWHERE
    ) -> tuple[list[nn.Module], Tensor]:
        """Fit the learner to its inputs."""
        own = replace(rows, x=rows.x[:, self.start : self.stop])
        models, out_of_fold = self.learner.fit(own, on_step, checkpoint)
        return [ColumnsModel(model, self.start, self.stop) for model in models], out_of_fold
