"""Trees that begin to grow while a sample of the rows tells whether networks help, too."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from torch import Tensor, nn

from apfex.front._rows import Rows, TableEncoders, encode, networks_help, with_inputs
from apfex.models import (
    NOWHERE,
    Checkpoint,
    ColumnsLearner,
    JointLearner,
    JointRows,
    beside,
)

if TYPE_CHECKING:
    from apfex.front._settings import SearchSettings

_SPARE_THREADS = 4
"""From so many on there are some with nothing to do while a sample is looked at."""


def begins_early(settings: SearchSettings, n: int, checkpoint: Checkpoint) -> bool:
    """Whether trees grow on n rows before it is known whether networks help.

    With a checkpoint several workers may read it together, each at the same place: one thing
    after the other.
    """
    has_threads = torch.get_num_threads() >= _SPARE_THREADS
    return has_threads and checkpoint is NOWHERE and settings.looks_first(n)


def prepare_early(
    rows: Rows, part: np.ndarray, settings: SearchSettings, seed: int, folds: np.ndarray
) -> tuple[TableEncoders, list[JointLearner], Tensor]:
    """Encoders, learners and inputs of some of the rows; the trees among them are growing."""
    n, trees_alone = len(part), replace(settings, models=("boosting",))
    table, y = rows.take(part), rows.y[part]
    encoders = with_inputs(TableEncoders.fit(table, y, trees_alone, len(rows.y)))
    x = encode(encoders, rows, part, settings)
    joint = rows.joint(part, x, torch.from_numpy(folds).to(x.device), rows.cells(part))
    (trees,) = encoders.learners(trees_alone, n, seed)
    early = _EarlyLearner(trees, joint)
    if not networks_help(rows, part, settings):
        return encoders, [early], x
    encoders = TableEncoders.fit(table, y, settings, len(rows.y))
    *networks, columns = encoders.learners(settings, n, seed)
    assert isinstance(columns, ColumnsLearner)
    early.wait()  # nothing else goes to a GPU while networks record their steps there
    return (
        encoders,
        [*networks, replace(columns, learner=early)],
        encode(encoders, rows, part, settings),
    )


@final
class _EarlyLearner:
    """A learner that has begun, with rows of its own, before anybody waits for it."""

    def __init__(self, learner: JointLearner, rows: JointRows) -> None:
        self._learner, self._lock = learner, threading.Lock()
        self._done, self._tell = 0, None
        self.wait = beside(lambda: learner.fit(rows, self._advance))

    @property
    def steps(self) -> int:
        """Those of the learner."""
        return self._learner.steps

    def fit(
        self,
        rows: JointRows,  # noqa: ARG002
        on_step: Callable[[], None],
        checkpoint: Checkpoint = NOWHERE,  # noqa: ARG002
    ) -> tuple[list[nn.Module], Tensor]:
        """What it has learnt from the rows that it was given."""
        with self._lock:
            for _ in range(self._done):
                on_step()
            self._tell = on_step
        return self.wait()

    def _advance(self) -> None:
        with self._lock:
            self._done += 1
            if self._tell is not None:
                self._tell()
