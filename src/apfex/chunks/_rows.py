"""Rows that are not all in memory: the seam between where they lie and what learns from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, final

import numpy as np
import torch
from torch import Tensor

from apfex.models import NOWHERE, Checkpoint

Part = Literal["training", "rules", "validation"]
"""Rows to learn from; those of them by which rules are fitted; rows that measure."""


@final
@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows in memory.

    Attributes
    ----------
    x : float32 Tensor of shape [n, d]
    targets : int64 Tensor of shape [n]
        Group (a cell of the crossing) and label in one number: ``group * c + label``.
    folds : int64 Tensor of shape [n]
        Of validation rows 0.
    weight : float64 Tensor of shape [n]
        One on average; of rules' rows times the number of training rows that each stands for.

    Examples
    --------
    >>> rows = torch.zeros(3, dtype=torch.int64)
    >>> len(Chunk(torch.zeros(3, 2), rows, rows, torch.ones(3, dtype=torch.float64)))
    3
    """

    x: Tensor
    targets: Tensor
    folds: Tensor
    weight: Tensor

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.targets)

    def take(self, rows: Tensor) -> Chunk:
        """Return some of the rows."""
        return Chunk(self.x[rows], self.targets[rows], self.folds[rows], self.weight[rows])

    def to(self, device: torch.device) -> Chunk:
        """Return the rows on a device."""
        return Chunk(*(part.to(device) for part in (self.x, self.targets, self.folds, self.weight)))


@final
@dataclass(frozen=True, eq=False)
class JointTargets:
    """What models learn of a row: group and label, or its groups in several groupings of the cells.

    Attributes
    ----------
    shape : pair of int
        Groups, of all groupings together, and classes c.
    cells : int64 Tensor of shape [k, s], optional
        Of each of many cells its groups in s groupings, numbered one after the other.
    sizes : tuple of s numbers
        Groups of each grouping.

    Examples
    --------
    >>> joint = JointTargets((5, 2), torch.tensor([[0, 2], [0, 3], [1, 4]]), (2, 3))
    >>> joint.of(torch.tensor([5, 0]))
    tensor([[3, 9],
            [0, 4]])
    """

    shape: tuple[int, int]
    cells: Tensor | None = None
    sizes: tuple[int, ...] = ()

    def of(self, strata: Tensor) -> Tensor:
        """Return targets [n], or [n, s], of rows with ``cell * c + label`` [n]."""
        if self.cells is None:
            return strata
        c = self.shape[1]
        return self.cells.to(strata.device)[strata // c] * c + (strata % c).unsqueeze(1)


class ChunkedRows(Protocol):
    """Encoded rows in chunks that can be read again, wherever they lie.

    Files of one machine (:class:`~apfex.front.SpooledRows`) are one kind, partitions on the
    workers of a cluster are another.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Number of groups k (cells of the crossing) and of classes c."""
        ...

    @property
    def joint(self) -> JointTargets:
        """What models learn of them."""
        ...

    @property
    def n_inputs(self) -> int:
        """Number of inputs d."""
        ...

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        ...

    def counts(self, part: Part) -> np.ndarray:
        """Return the rows of a part by group and label, int64 [k, c]."""
        ...

    def chunks(self, part: Part) -> Iterator[Chunk]:
        """Return the rows of a part, some at a time, the same in the same order every time."""
        ...

    def mixed(self, seed: int, epoch: int) -> Iterator[Chunk]:
        """Return the training rows in chunks that are each a sample of all of them."""
        ...

    def add_up(self, part: Part, measure: Callable[[Chunk], np.ndarray]) -> np.ndarray:
        """Return the sum of what is measured of each chunk; measured where the rows are."""
        ...


class ChunkedLearner(Protocol):
    """Something that learns group and label together from chunks, once for each fold."""

    @property
    def steps(self) -> int:
        """How often ``fit`` calls ``on_step``."""
        ...

    def fit(
        self, rows: ChunkedRows, on_step: Callable[[], None], checkpoint: Checkpoint = NOWHERE
    ) -> list[torch.nn.Module]:
        """Train a model for each fold, without its rows, with logits as ``rows.joint`` says."""
        ...


def out_of_fold(models: list[torch.nn.Module], chunk: Chunk) -> Tensor:
    """Probabilities [n, k * c] of a chunk, each row by the model that has not learnt from it."""
    found: Tensor | None = None
    for fold, model in enumerate(models):
        own = (chunk.folds == fold).nonzero().squeeze(1)
        if len(own):
            with torch.no_grad():
                part = torch.softmax(model(chunk.x[own]), 1)
            found = part.new_empty(len(chunk), part.shape[1]) if found is None else found
            found[own] = part
    assert found is not None
    return found
