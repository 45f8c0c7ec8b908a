"""Boosted trees that learn group and label together by XGBoost's external memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
import xgboost
from torch import Tensor, nn
from xgboost import DMatrix

from apfex.models._checkpoint import NOWHERE, Checkpoint
from apfex.models._chunked_rows import Chunk, ChunkedRows
from apfex.models._joint_learners import Grown, JointTrees, at_least_loss, with_column
from apfex.models._trees import Trees, TreeSettings, fit_booster, plain_matrix

_STOP_ROWS = 2**14
"""Most rows of a fold by whose loss the growing of trees is stopped."""


@final
@dataclass(frozen=True)
class ChunkedTreeLearner:
    """Boosted trees of the label, and of the group given the label, by XGBoost's external memory.

    Attributes
    ----------
    settings : TreeSettings
    feature_types : sequence of str
        "q" or "c" for each input.
    n_folds : int
    folder : Path
        Where XGBoost keeps the rows in bins.

    Notes
    -----
    All folds share the bins of all training rows, and one file of them; rows of a fold count
    nothing for its model. Of every row XGBoost keeps label, weight, place in the tree, and for
    each output a margin and a gradient in memory: about 20 bytes, and 12 for each output.
    """

    settings: TreeSettings
    feature_types: Sequence[str]
    n_folds: int
    folder: Path

    @property
    def steps(self) -> int:
        """Number of ensembles: for each fold one of the label and one of the group."""
        return 2 * self.n_folds

    def fit(
        self, rows: ChunkedRows, on_step: Callable[[], None], checkpoint: Checkpoint = NOWHERE
    ) -> list[nn.Module]:
        """Grow trees for each fold."""
        (k, c), types = rows.shape, list(self.feature_types)
        settings = replace(self.settings, n_threads=torch.get_num_threads())
        labels = _Target("label", lambda chunk: chunk.x, lambda chunk: chunk.targets % c, types, c)
        of_label = self._boost(rows, labels, settings, on_step, checkpoint)
        of_group: Sequence[Trees | None] = [None] * self.n_folds
        if k > 1:
            groups = _Target(
                "group",
                lambda chunk: with_column(chunk.x, (chunk.targets % c).to(chunk.x)),
                lambda chunk: chunk.targets // c,
                [*types, "q" if c == 2 else "c"],
                k,
            )
            of_group = self._boost(rows, groups, settings.for_groups(), on_step, checkpoint)
        else:
            for _ in range(self.n_folds):
                on_step()
        pairs = zip(of_label, of_group, strict=True)
        return [JointTrees(label, group, rows.shape) for label, group in pairs]

    def _boost(
        self,
        rows: ChunkedRows,
        target: _Target,
        settings: TreeSettings,
        on_step: Callable[[], None],
        checkpoint: Checkpoint,
    ) -> list[Trees]:
        """Grow an ensemble for each fold, up to the round with the least out-of-fold loss."""
        learn = self._learner(rows, target, settings)
        grown = []
        for fold in range(self.n_folds):
            own = f"{target.name}-{fold}", target.types, target.n_classes
            grown.append(Grown.kept(checkpoint, *own, partial(learn, fold)))
            on_step()
        return at_least_loss(grown)

    def _learner(
        self, rows: ChunkedRows, target: _Target, settings: TreeSettings
    ) -> Callable[[int], Grown]:
        """What grows the ensemble of a fold; rows are put into bins when the first one is grown."""

        @cache
        def in_bins() -> tuple[DMatrix, np.ndarray, np.ndarray]:
            return self._in_bins(rows, target, settings)

        def learn(fold: int) -> Grown:
            data, folds, weight = in_bins()
            data.set_weight(np.where(folds == fold, np.float32(0), weight))
            others = self._held_out(rows, target, fold)
            return Grown(*fit_booster(settings, target.n_classes, data, others))

        return learn

    def _in_bins(
        self, rows: ChunkedRows, target: _Target, settings: TreeSettings
    ) -> tuple[DMatrix, np.ndarray, np.ndarray]:
        """All training rows in files of XGBoost, and fold and weight of each."""
        data = xgboost.ExtMemQuantileDMatrix(
            _Pages(rows, target, self.folder / f"pages-{target.name}"),
            enable_categorical=True,
            nthread=settings.n_threads,
        )
        folds = np.concatenate([part.folds.to(torch.uint8).numpy() for part in _training(rows)])
        return data, folds, np.asarray(data.get_weight())

    def _held_out(self, rows: ChunkedRows, target: _Target, fold: int) -> DMatrix:
        """Rows of a fold, as many as stop the growing, from those that rules are fitted by."""
        total = int(rows.counts("rules").sum())
        share = min(1.0, _STOP_ROWS * self.n_folds / total)
        generator = np.random.default_rng([self.settings.seed, fold])
        found = []
        for chunk in rows.chunks("rules"):
            taken = torch.from_numpy(generator.random(len(chunk)) < share)
            own = chunk.take(((chunk.folds == fold) & taken).nonzero().squeeze(1))
            found.append((target.inputs(own).numpy(), target.known(own), own.weight))
        inputs, known, weight = zip(*found, strict=True)
        return plain_matrix(
            np.concatenate(inputs),
            target.types,
            label=torch.cat(known).numpy(),
            weight=torch.cat(weight).numpy(),
        )


@dataclass(frozen=True, eq=False)
class _Target:
    """What an ensemble learns, and from what."""

    name: str
    inputs: Callable[[Chunk], Tensor]
    known: Callable[[Chunk], Tensor]
    types: Sequence[str]
    n_classes: int


class _Pages(xgboost.DataIter):
    """Training rows as XGBoost asks for them, several times over."""

    def __init__(self, rows: ChunkedRows, target: _Target, cache: Path) -> None:
        self._rows, self._target = rows, target
        self._chunks: Iterator[Chunk] = iter(())
        super().__init__(cache_prefix=str(cache))

    def reset(self) -> None:
        """Start again."""
        self._chunks = _training(self._rows)

    def next(self, input_data: Callable[..., Any]) -> bool:
        """Hand out the next rows."""
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        input_data(
            data=self._target.inputs(chunk).numpy(),
            label=self._target.known(chunk).numpy(),
            weight=chunk.weight.numpy(),
            feature_types=list(self._target.types),
        )
        return True


def _training(rows: ChunkedRows) -> Iterator[Chunk]:
    return rows.chunks("training")
