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
from torch import nn
from xgboost import DMatrix

from apfex.chunks._rows import Chunk, ChunkedRows
from apfex.chunks._tree_targets import TreeTarget, grow_targets, settings_for
from apfex.models import NOWHERE, Checkpoint, Grown, TreeSettings, fit_booster, plain_matrix

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
    each output a margin and a gradient in memory: about 25 bytes, and 12 for each output.
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
        settings = replace(self.settings, n_threads=torch.get_num_threads())
        binned = cache(partial(self._in_bins, rows, settings.n_threads))

        def grow(target: TreeTarget, fold: int) -> Grown:
            known = binned(target.groups is not None)
            known.data.set_label(target.known(known.strata))
            known.data.set_weight(np.where(known.folds == fold, np.float32(0), known.weight))
            others, own = self._held_out(rows, target, fold), settings_for(target, settings)
            return Grown(*fit_booster(own, target.n_classes, known.data, others))

        types = self.feature_types
        return grow_targets(rows.joint, types, self.n_folds, grow, on_step, checkpoint)

    def _in_bins(self, rows: ChunkedRows, n_threads: int, with_label: bool) -> _Binned:
        """All training rows in files of XGBoost; with the label among the inputs, for groups."""
        c = rows.shape[1]
        types = [*self.feature_types, "q" if c == 2 else "c"] if with_label else self.feature_types
        of = TreeTarget("", c, c, list(types), np.empty(0) if with_label else None)
        data = xgboost.ExtMemQuantileDMatrix(
            _Pages(rows, of, self.folder / f"pages-{'group' if with_label else 'label'}"),
            enable_categorical=True,
            nthread=n_threads,
        )
        kept = [
            (part.folds.to(torch.uint8).numpy(), part.targets.to(torch.int32).numpy())
            for part in _training(rows)
        ]
        folds, strata = map(np.concatenate, zip(*kept, strict=True))
        return _Binned(data, folds, strata, np.asarray(data.get_weight()))

    def _held_out(self, rows: ChunkedRows, target: TreeTarget, fold: int) -> DMatrix:
        """Rows of a fold, as many as stop the growing, from those that rules are fitted by."""
        total = int(rows.counts("rules").sum())
        share = min(1.0, _STOP_ROWS * self.n_folds / total)
        generator = np.random.default_rng([self.settings.seed, fold])
        found = []
        for chunk in rows.chunks("rules"):
            taken = torch.from_numpy(generator.random(len(chunk)) < share)
            own = chunk.take(((chunk.folds == fold) & taken).nonzero().squeeze(1))
            found.append((target.inputs(own), target.known(own.targets.numpy()), own.weight))
        inputs, known, weight = zip(*found, strict=True)
        return plain_matrix(
            np.concatenate(inputs),
            target.types,
            label=np.concatenate(known),
            weight=torch.cat(weight).numpy(),
        )


@dataclass(frozen=True, eq=False)
class _Binned:
    """Training rows as XGBoost has them, and what they are."""

    data: DMatrix
    folds: np.ndarray
    strata: np.ndarray
    weight: np.ndarray


class _Pages(xgboost.DataIter):
    """Training rows as XGBoost asks for them, several times over."""

    def __init__(self, rows: ChunkedRows, target: TreeTarget, cache: Path) -> None:
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
            data=self._target.inputs(chunk),
            weight=chunk.weight.numpy(),
            feature_types=list(self._target.types),
        )
        return True


def _training(rows: ChunkedRows) -> Iterator[Chunk]:
    return rows.chunks("training")
