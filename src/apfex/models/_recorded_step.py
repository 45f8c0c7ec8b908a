"""A step of training that a GPU replays: recorded once as CUDA graphs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from apfex.models._stacked_mlp import Population, StackedMLP

if TYPE_CHECKING:
    from apfex.models._learners import Learners

_one_at_a_time = threading.Lock()


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
    changes parameters, moments and running counts where they are. Where the weights of the losses
    are known beforehand nothing waits for the device: what is told of a step is taken in during
    the next one.

    Parameters
    ----------
    learners : Learners
        Nothing of theirs changes while recording.
    chosen : int64 Tensor of shape [n]
        Rows of some batch.
    """

    def __init__(self, learners: Learners, chosen: Tensor) -> None:
        device = chosen.device
        self._gradient, self._chosen = learners.gradient, chosen.clone()
        self._rate = torch.zeros((), device=device)
        self._measuring, self._moving = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream(device)
        with _one_at_a_time:
            with _recording(self._measuring, stream):
                scores, found = learners.measure(self._chosen)
                self._told = found.told()
            shape = (learners.population.n_members, found.n_losses)
            self._weights = torch.ones(shape, dtype=torch.float64, device=device)
            # The second half needs what the first has left in its memory.
            with _recording(self._moving, stream, self._measuring):
                learners.move(scores, found, self._weights, self._rate)
        self._read, self._is_unread = torch.cuda.Event(), False
        if self._told is not None:
            self._on_host = torch.empty_like(self._told, device="cpu", pin_memory=True)

    def play(self, chosen: Tensor, learning_rate: float) -> None:
        """Take a step on a batch."""
        self._chosen.copy_(chosen)
        self._rate.fill_(learning_rate)
        self._measuring.replay()
        if self._told is not None:
            self.finish()
            self._on_host.copy_(self._told, non_blocking=True)
            self._read.record()
            self._is_unread = True
            foreseen = self._gradient.foreseen()
            self._weights.copy_(self._taken_in() if foreseen is None else foreseen)
        self._moving.replay()

    def finish(self) -> None:
        """Take in what was told of the last step."""
        if self._is_unread:
            self._taken_in()

    def _taken_in(self) -> Tensor:
        """Weights [b, m] by what was told."""
        self._read.synchronize()
        self._is_unread = False
        return self._gradient.decide(self._on_host.clone())


@contextmanager
def _recording(
    graph: torch.cuda.CUDAGraph,
    stream: torch.cuda.Stream,
    before: torch.cuda.CUDAGraph | None = None,
) -> Iterator[None]:
    """Record what is launched, in memory that is shared with the graph before.

    On a stream of its own, without waiting for the device, and with errors of this thread alone:
    others may use the device meanwhile.
    """
    current = torch.cuda.current_stream(stream.device)
    stream.wait_stream(current)
    with torch.cuda.stream(stream):
        pool = () if before is None else (before.pool(),)
        graph.capture_begin(*pool, capture_error_mode="thread_local")
        try:
            yield
        finally:
            graph.capture_end()
    current.wait_stream(stream)
