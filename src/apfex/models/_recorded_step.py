"""A step of training that a GPU replays: recorded once as CUDA graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from apfex.models._stacked_mlp import Population, StackedMLP

if TYPE_CHECKING:
    from apfex.models._learners import Learners


def can_record(population: Population, chosen: Tensor) -> bool:
    """Whether a step is the same kernels every time.

    That holds for our own networks on a GPU; a user's module may branch, or draw at random.
    """
    return chosen.is_cuda and isinstance(population, StackedMLP)


@final
class RecordedStep:
    """Both halves of a step on batches of one size.

    A step is about a hundred small kernels, each of which takes longer to be launched than to run.
    A recording launches them at once. It reads its batch and learning rate from fixed places, and
    changes parameters, moments and running counts where they are.

    Parameters
    ----------
    learners : Learners
        Nothing of theirs changes while recording.
    chosen : int64 Tensor of shape [n]
        Rows of some batch.
    """

    def __init__(self, learners: Learners, chosen: Tensor) -> None:
        self._decide = learners.gradient.decide
        self._chosen = chosen.clone()
        self._rate = torch.zeros((), device=chosen.device)
        self._measuring, self._moving = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream(chosen.device)
        # A stream of its own, and errors of this thread alone: others may use the device meanwhile.
        with torch.cuda.graph(self._measuring, None, stream, "thread_local"):
            scores, found = learners.measure(self._chosen)
            self._told = found.told()
        shape = (learners.population.n_members, found.n_losses)
        self._weights = torch.ones(shape, dtype=torch.float64, device=chosen.device)
        # The second half needs what the first has left in its memory.
        with torch.cuda.graph(self._moving, self._measuring.pool(), stream, "thread_local"):
            learners.move(scores, found, self._weights, self._rate)

    def play(self, chosen: Tensor, learning_rate: float) -> None:
        """Take a step on a batch."""
        self._chosen.copy_(chosen)
        self._rate.fill_(learning_rate)
        self._measuring.replay()
        if self._told is not None:
            self._weights.copy_(self._decide(self._told.cpu()))
        self._moving.replay()
