"""Networks that learn group and label together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor, nn

from apfex.models._gap_weights import Aims
from apfex.models._joint_model import CellRows
from apfex.models._rows import TrainingRows
from apfex.models._stacked_mlp import StackedMLP
from apfex.models._training import TrainingSettings, train_population

_WORTH_OF_DECAY = 1_000.0
"""Rows that the weight decay of linear models is worth."""


@final
@dataclass(frozen=True)
class NetworkKind:
    """Networks, or linear models, one for each fold, as one stacked population.

    Attributes
    ----------
    hidden : tuple of int
        Widths of the hidden layers; empty for linear models, whose weight decay is worth 1,000
        rows, so that it fades on large tables.
    training : TrainingSettings

    Examples
    --------
    >>> NetworkKind((16,), TrainingSettings(epochs=3)).steps
    3
    """

    hidden: tuple[int, ...]
    training: TrainingSettings

    @property
    def steps(self) -> int:
        """Epochs."""
        return self.training.epochs

    def fit(self, rows: CellRows, on_step: Callable[[], None]) -> tuple[list[nn.Module], Tensor]:
        """A network for each fold, and probabilities [n, k * c] by the one that has not seen it."""
        n, x, folds = len(rows.x), rows.x, torch.arange(rows.n_folds, device=rows.x.device)
        training = self.training
        if not self.hidden:
            training = replace(training, weight_decay=min(1.0, _WORTH_OF_DECAY / n))
        learnt = rows.weight.to(x) * (rows.folds != folds.unsqueeze(1))  # [b, n]
        n_cells = rows.shape[0] * rows.shape[1]
        made = StackedMLP(x.shape[1], n_cells, self.hidden, len(folds), training.seed)
        population = made.to(x.device)
        train_population(
            population,
            Aims((), x.new_zeros(len(folds), 0)),
            TrainingRows(x, rows.cells, rows.cells.new_empty(0, n), (), learnt),
            training,
            lambda _: on_step(),
        )
        models: list[nn.Module] = [population.member(fold) for fold in range(len(folds))]
        return models, _unseen(population, rows)


def network_kinds(hidden: Sequence[int], training: TrainingSettings) -> list[NetworkKind]:
    """Linear models, and networks beside them if they have hidden layers.

    Examples
    --------
    >>> [kind.hidden for kind in network_kinds((64,), TrainingSettings())]
    [(), (64,)]
    """
    widths = [(), tuple(hidden)] if hidden else [()]
    return [NetworkKind(found, training) for found in widths]


def _unseen(population: StackedMLP, rows: CellRows) -> Tensor:
    """Probabilities [n, k c] by the member that has not seen the row."""
    with torch.no_grad():
        parts = zip(rows.x.split(2**14), rows.folds.split(2**14), strict=True)
        chosen = [
            population.scores(part)[fold, torch.arange(len(part), device=part.device)]
            for part, fold in parts
        ]
    return torch.softmax(torch.cat(chosen), 1)
