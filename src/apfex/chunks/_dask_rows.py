"""Encoded rows in the memory of Dask workers: they stay there, and sums and samples come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch

from apfex.chunks._rows import Chunk, JointTargets, Part
from apfex.clusters import gather

_AT_ONCE = 32
"""Partitions of which results come back at a time."""


@final
@dataclass(frozen=True, eq=False)
class PartitionRows:
    """Rows of one partition, on the worker that has them.

    Attributes
    ----------
    rows : Chunk
    measures, judges : bool arrays of shape [n]
        Which are validation rows, and by which of the others rules are fitted.
    stands_for : array of shape [k * c]
        How many training rows each of those stands for, by group and label.
    """

    rows: Chunk
    measures: np.ndarray
    judges: np.ndarray
    stands_for: np.ndarray

    def chunk(self, part: Part) -> Chunk:
        """Rows of a part."""
        masks = {"training": ~self.measures, "rules": self.judges, "validation": self.measures}
        chosen = self._take(masks[part])
        if part != "rules":
            return chosen
        stands_for = torch.from_numpy(self.stands_for[chosen.targets.numpy()])
        return replace(chosen, weight=chosen.weight * stands_for)

    def fold(self, fold: int, *, held_out: bool) -> Chunk:
        """Training rows of a fold, or those of all others."""
        own = self.rows.folds.numpy() == fold
        return self._take(~self.measures & (own if held_out else ~own))

    def _take(self, mask: np.ndarray) -> Chunk:
        return self.rows.take(torch.from_numpy(np.flatnonzero(mask)))


@final
@dataclass(frozen=True, eq=False)
class DaskRows:
    """Rows of all partitions: a :class:`~apfex.models.ChunkedRows`.

    Attributes
    ----------
    client : distributed.Client
    partitions : sequence of futures of PartitionRows
    parts : mapping from part to int array of shape [k, c]
        Rows by group and label.
    by_fold : int array of shape [partitions, folds]
        Training rows of each partition.
    n_inputs : int
    joint : JointTargets
        What models learn of them.
    """

    client: Any
    partitions: Sequence[Any]
    parts: Mapping[Part, np.ndarray]
    by_fold: np.ndarray
    n_inputs: int
    joint: JointTargets

    @property
    def shape(self) -> tuple[int, int]:
        """Number of groups k and of classes c."""
        k, c = self.parts["training"].shape
        return k, c

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return self.by_fold.shape[1]

    def counts(self, part: Part) -> np.ndarray:
        """Return the rows of a part by group and label, int64 [k, c]."""
        return self.parts[part]

    def chunks(self, part: Part) -> Iterator[Chunk]:
        """Return the rows of a part, a partition at a time."""
        for partition in self.partitions:
            task = self.client.submit(_chunk, partition, part, pure=False)
            (chunk,) = gather(self.client, [task])
            if len(chunk):
                yield chunk

    def mixed(self, seed: int, epoch: int) -> Iterator[Chunk]:
        """Refuse: networks do not learn from partitions."""
        del seed, epoch
        raise TypeError("Rows on Dask workers must be learnt from by trees, got networks.")

    def add_up(self, part: Part, measure: Callable[[Chunk], np.ndarray]) -> np.ndarray:
        """Return the sum of what is measured of each partition, on the worker that has it."""
        shared = self.client.submit(_Kept(measure), pure=False)  # sent once
        tasks = [
            self.client.submit(_measure, partition, part, shared, pure=False)
            for partition in self.partitions
        ]
        total: np.ndarray | None = None
        for start in range(0, len(tasks), _AT_ONCE):
            for one in gather(self.client, tasks[start : start + _AT_ONCE]):
                if one is not None:
                    total = one if total is None else total + one
        assert total is not None  # no part is without rows
        return total


@dataclass(frozen=True, eq=False)
class _Kept:
    """A task that gives a value."""

    value: Any

    def __call__(self) -> Any:
        return self.value


def _chunk(rows: PartitionRows, part: Part) -> Chunk:
    return rows.chunk(part)


def _measure(
    rows: PartitionRows, part: Part, measure: Callable[[Chunk], np.ndarray]
) -> np.ndarray | None:
    chunk = rows.chunk(part)
    return measure(chunk) if len(chunk) else None
