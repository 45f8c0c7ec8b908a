"""Boosted trees of group and label that all workers of a Dask cluster grow together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from torch import nn

from apfex.chunks._dask_rows import DaskRows, PartitionRows
from apfex.chunks._tree_targets import TreeTarget, grow_targets, settings_for
from apfex.clusters import with_all_workers
from apfex.models import NOWHERE, Checkpoint, Grown, TreeSettings, objective_of


@final
@dataclass(frozen=True)
class DaskTreeLearner:
    """Boosted trees of the label, and of the group given the label, by XGBoost's Dask interface.

    Attributes
    ----------
    settings : TreeSettings
    feature_types : sequence of str
        "q" or "c" for each input.

    Notes
    -----
    As in memory, an ensemble grows for each fold on the rows of the others, and stops by its own.
    Workers keep their rows, and exchange histograms.
    """

    settings: TreeSettings
    feature_types: Sequence[str]
    n_folds: int

    @property
    def steps(self) -> int:
        """Number of ensembles: for each fold one of the label and one of the group."""
        return 2 * self.n_folds

    def fit(
        self, rows: Any, on_step: Callable[[], None], checkpoint: Checkpoint = NOWHERE
    ) -> list[nn.Module]:
        """Grow trees for each fold; rows are :class:`DaskRows`."""

        def grow(target: TreeTarget, fold: int) -> Grown:
            training = _Growing(rows, target, settings_for(target, self.settings), fold)
            return Grown(*with_all_workers(rows.client, training.run, _is_broken))

        types = self.feature_types
        return grow_targets(rows.joint, types, rows.n_folds, grow, on_step, checkpoint)


@dataclass(frozen=True, eq=False)
class _Growing:
    """The ensemble of one fold."""

    rows: DaskRows
    target: TreeTarget
    settings: TreeSettings
    fold: int

    async def run(self, take_part: Callable[[Iterable[str]], None]) -> tuple[Any, list[float]]:
        """Grow it; also return the log loss on the rows of the fold after each round."""
        with self.rows.client.as_current():  # XGBoost asks for the client in use
            return await self._grow(take_part)

    async def _grow(self, take_part: Callable[[Iterable[str]], None]) -> tuple[Any, list[float]]:
        from xgboost import dask as xgboost

        objective = objective_of(self.target.n_classes)
        data = await self._matrix(xgboost.DaskQuantileDMatrix, held_out=False)
        validation = await self._matrix(xgboost.DaskDMatrix, held_out=True)
        take_part([*data.worker_map, *validation.worker_map])
        parameters = self.settings.parameters(**objective)
        del parameters["nthread"]  # as many as a worker has
        found = await xgboost.train(
            self.rows.client,
            parameters,
            data,
            self.settings.n_estimators,
            evals=[(validation, "validation")],
            early_stopping_rounds=self.settings.early_stopping_rounds,
            verbose_eval=False,
        )
        return found["booster"], found["history"]["validation"][objective["eval_metric"]]

    async def _matrix(self, make: Callable[..., Any], *, held_out: bool) -> Any:
        """Rows of the fold, or of all others, as arrays whose blocks lie on the workers."""
        sizes = self.rows.by_fold[:, self.fold]
        sizes = sizes if held_out else self.rows.by_fold.sum(1) - sizes
        width = len(self.target.types)
        inputs, known, weight = (
            self._array(name, sizes, held_out, shape)
            for name, shape in (("inputs", (width,)), ("known", ()), ("weight", ()))
        )
        return await make(
            self.rows.client,
            inputs,
            known,
            weight=weight,
            feature_types=list(self.target.types),
            enable_categorical=True,
        )

    def _array(self, name: str, sizes: np.ndarray, held_out: bool, shape: tuple[int, ...]) -> Any:
        import dask.array as arrays
        from dask.delayed import delayed

        take = delayed(_block, pure=False)
        blocks = [
            arrays.from_delayed(
                take(partition, self.fold, held_out, self.target, name),
                shape=(int(n), *shape),
                dtype=np.float32,
            )
            for partition, n in zip(self.rows.partitions, sizes, strict=True)
            if n
        ]
        return arrays.concatenate(blocks)


def _is_broken(error: Exception) -> bool:
    """Whether XGBoost's workers have lost each other."""
    return type(error).__name__ == "XGBoostError" and "/collective/" in str(error)


def _block(
    rows: PartitionRows, fold: int, held_out: bool, target: TreeTarget, name: str
) -> np.ndarray:
    chunk = rows.fold(fold, held_out=held_out)
    if name == "inputs":
        return target.inputs(chunk)
    return target.known(chunk.targets.numpy()) if name == "known" else chunk.weight.float().numpy()
