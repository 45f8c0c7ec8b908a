"""Boosted trees of group and label that all workers of a Dask cluster grow together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from torch import nn

from apfex.clusters import with_all_workers
from apfex.models._checkpoint import NOWHERE, Checkpoint
from apfex.models._chunked_rows import Chunk
from apfex.models._dask_rows import DaskRows, PartitionRows
from apfex.models._joint_learners import Grown, JointTrees, at_least_loss, with_column
from apfex.models._trees import Trees, TreeSettings, objective_of


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
        (k, c), types = rows.shape, list(self.feature_types)
        label = _Target("label", c, c, types)
        of_label = self._boost(rows, label, self.settings, on_step, checkpoint)
        of_group: Sequence[Trees | None] = [None] * rows.n_folds
        if k > 1:
            group = _Target("group", k, c, [*types, "q" if c == 2 else "c"])
            of_group = self._boost(rows, group, self.settings.for_groups(), on_step, checkpoint)
        else:
            for _ in range(rows.n_folds):
                on_step()
        pairs = zip(of_label, of_group, strict=True)
        return [JointTrees(label, group, rows.shape) for label, group in pairs]

    def _boost(
        self,
        rows: DaskRows,
        target: _Target,
        settings: TreeSettings,
        on_step: Callable[[], None],
        checkpoint: Checkpoint,
    ) -> list[Trees]:
        """Grow an ensemble for each fold, up to the round with the least out-of-fold loss."""

        def learn(fold: int) -> Grown:
            training = _Growing(rows, target, settings, fold)
            return Grown(*with_all_workers(rows.client, training.run, _is_broken))

        grown = []
        for fold in range(rows.n_folds):
            own = f"{target.kind}-{fold}", target.types, target.n_classes
            grown.append(Grown.kept(checkpoint, *own, partial(learn, fold)))
            on_step()
        return at_least_loss(grown)


@dataclass(frozen=True)
class _Target:
    """What an ensemble learns: the label, or the group given inputs and label."""

    kind: str
    n_classes: int
    n_labels: int
    types: Sequence[str]

    def inputs(self, chunk: Chunk) -> np.ndarray:
        if self.kind == "label":
            return chunk.x.numpy()
        return with_column(chunk.x, (chunk.targets % self.n_labels).to(chunk.x)).numpy()

    def known(self, chunk: Chunk) -> np.ndarray:
        labels, groups = chunk.targets % self.n_labels, chunk.targets // self.n_labels
        return (labels if self.kind == "label" else groups).to(chunk.x).numpy()

    def weight(self, chunk: Chunk) -> np.ndarray:
        return chunk.weight.to(chunk.x).numpy()


@dataclass(frozen=True, eq=False)
class _Growing:
    """The ensemble of one fold."""

    rows: DaskRows
    target: _Target
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
    rows: PartitionRows, fold: int, held_out: bool, target: _Target, name: str
) -> np.ndarray:
    return getattr(target, name)(rows.fold(fold, held_out=held_out))
