"""The processes that share each batch, and what they tell each other."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, final

import torch
import torch.distributed as dist
from torch import Tensor

_FACTS = 12
"""The most facts of a roll call; its size is fixed, so that any two calls can meet."""
_LONGEST = 1000
"""Bytes of a message to other workers."""
_BUCKET = 2**23
"""Numbers that are exchanged at a time."""
_OWN, _OF_OTHERS = 1.0, 0.5
"""How a worker tells of a problem in a roll call; 0: it has none."""
_calls: dict[str, int] = {}
"""Roll calls so far, by the name of the process group."""
_chosen: ContextVar[Workers | Literal["all"] | None] = ContextVar("workers", default="all")

_measuring: ContextVar[bool] = ContextVar("measuring", default=False)


class WorkerError(RuntimeError):
    """Another worker has failed, has stopped, or does something else.

    Examples
    --------
    >>> issubclass(WorkerError, RuntimeError)
    True
    """


@final
@dataclass(frozen=True)
class Workers:
    """Processes that share each batch: what they exchange, and how.

    Attributes
    ----------
    rank, size : int
        Number of this process among them, and how many there are.
    group : torch.distributed.ProcessGroup

    Examples
    --------
    >>> workers() is None  # one process
    True
    """

    rank: int
    size: int
    group: Any

    @staticmethod
    def of(group: Any) -> Workers | None:
        """Those of a process group; None where this process is alone in it."""
        if group is None or dist.get_world_size(group) == 1:
            return None
        rank = dist.get_rank(group)
        if rank < 0:
            raise ValueError("group must hold this process, got a group of others.")
        return Workers(rank, dist.get_world_size(group), group)

    def gather(self, values: Tensor) -> Tensor:
        """The tensors of all workers, of one shape, as [size, *shape] in the order of ranks."""
        sent = values.detach().to(self._meeting_place).contiguous()
        parts = [torch.empty_like(sent) for _ in range(self.size)]
        with self._answered():
            dist.all_gather(parts, sent, group=self.group)
        return torch.stack(parts).to(values.device)

    def sum(self, values: Tensor) -> Tensor:
        """Sum over workers, the same on all to the last bit; no gradient flows."""
        return self._reduced(values.detach().clone())

    def first(self, values: Tensor) -> Tensor:
        """What the first worker has."""
        sent = values.detach().to(self._place_of(values)).clone().contiguous()
        with self._answered():
            dist.broadcast(sent, dist.get_global_rank(self.group, 0), group=self.group)
        return sent.to(values.device)

    def mean_(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Means over workers of many tensors, in buckets; what comes in may be overwritten."""
        return self._in_buckets(tensors, self.size)

    def sum_(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Sums over workers of many tensors, in buckets; what comes in may be overwritten."""
        return self._in_buckets(tensors, 1)

    def part(self, rows: Tensor) -> Tensor:
        """The rows of this worker, of a batch that all of them know."""
        return rows.tensor_split(self.size)[self.rank]

    def call_roll(
        self,
        place: str,
        facts: Mapping[str, float],
        problem: Exception | None = None,
        *,
        is_own: bool = True,
    ) -> Tensor:
        """Meet all workers, and hear how each of them stands.

        Parameters
        ----------
        place : str
            What this worker is about to do, in words.
        facts : mapping from names to numbers
            At most 12.
        problem : Exception, optional
            Why this worker cannot go on; it is raised here, and the others raise that it was.
        is_own : bool
            False: the problem comes from the rows of others, who know it as their own.

        Returns
        -------
        float64 Tensor of shape [size, number of facts]
        """
        name = str(getattr(self.group, "group_name", ""))
        count = _calls[name] = _calls.get(name, 0) + 1
        own = torch.zeros(3 + _FACTS, dtype=torch.float64)
        standing = 0.0 if problem is None else _OWN if is_own else _OF_OTHERS
        known = [count, zlib.crc32(place.encode()), standing, *facts.values()]
        own[: len(known)] = torch.tensor(known, dtype=torch.float64)
        found = self.gather(own)
        if bool(found[:, 2].any()):
            self._raise_problem(place, problem, found[:, 2])
        if bool((found[:, :2] != found[0, :2]).any()):
            _calls[name] = int(found[:, 0].max())
            raise self._out_of_step(place, count)
        return found[:, 3 : 3 + len(facts)]

    def _raise_problem(self, place: str, problem: Exception | None, failed: Tensor) -> None:
        said = self._tell("" if problem is None else str(problem))
        worst = int(failed.argmax())
        if problem is not None and (failed[self.rank] == _OWN or failed[worst] < _OWN):
            raise problem
        raise WorkerError(f"Worker {worst} of {self.size} has failed {place}: {said[worst]}")

    def _out_of_step(self, place: str, count: int) -> WorkerError:
        said = self._tell(f"{place} (exchange {count})")
        what = "; ".join(f"worker {rank} is {text}" for rank, text in enumerate(said))
        return WorkerError(
            f"Workers must do the same in the same order, but {what}. Has one of them skipped a "
            "batch, caught an error, or more batches than others? Give every worker as many "
            "batches (an empty one has no rows), or compute the loss of one worker alone within "
            "share_batches(None)."
        )

    def _tell(self, message: str) -> list[str]:
        """The messages of all workers."""
        data = torch.zeros(_LONGEST, dtype=torch.uint8)
        text = message.encode()[:_LONGEST]
        data[: len(text)] = torch.tensor(list(text), dtype=torch.uint8)
        return [
            bytes(row.tolist()).rstrip(b"\0").decode(errors="ignore") for row in self.gather(data)
        ]

    def _in_buckets(self, tensors: Sequence[Tensor], divisor: int) -> list[Tensor]:
        found: list[Tensor] = []
        for bucket in _buckets(tensors):
            flat = torch.cat([part.reshape(-1) for part in bucket])
            flat = self._reduced(flat if divisor == 1 else flat.div_(divisor))
            parts = zip(flat.split([part.numel() for part in bucket]), bucket, strict=True)
            found += [whole.view(part.shape) for whole, part in parts]
        return found

    def _reduced(self, values: Tensor) -> Tensor:
        """The sum over workers, in place where the group can read it there."""
        sent = values.to(self._place_of(values)).contiguous()
        with self._answered():
            dist.all_reduce(sent, group=self.group)
        return sent.to(values.device)

    @property
    def _backend(self) -> str:
        return str(dist.get_backend(self.group)).lower()

    @property
    def _meeting_place(self) -> torch.device:
        """Where small tensors are exchanged: a GPU where the group knows nothing else."""
        return torch.device("cuda" if self._backend == "nccl" else "cpu")

    def _place_of(self, values: Tensor) -> torch.device:
        return self._meeting_place if values.device.type == "cpu" else values.device

    @contextmanager
    def _answered(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:  # of the connection
            why = str(error).strip().splitlines()
            raise WorkerError(
                f"Worker {self.rank} of {self.size} gets no answer from another worker, which has "
                "stopped, is stuck, has had fewer batches (all must have as many; an empty one has "
                "no rows), or does not call fit (within share_batches all must; one that fits "
                "alone leaves it): see what that one says, mend it, and start all of them from "
                f"the last checkpoint. ({why[0] if why else type(error).__name__})"
            ) from error


def workers() -> Workers | None:
    """The processes that share each batch; None where this one trains alone.

    All processes of ``torch.distributed``, once it is initialised, unless :func:`share_batches`
    says otherwise.

    Returns
    -------
    Workers or None

    Examples
    --------
    >>> workers() is None
    True
    """
    chosen = _chosen.get()
    if chosen != "all":
        return chosen
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return None
    return Workers.of(dist.group.WORLD)


def chosen_workers() -> Workers | None:
    """Those that :func:`share_batches` names; None by default, also where there are others."""
    chosen = _chosen.get()
    return None if chosen == "all" else chosen


def workers_of(scores: Tensor) -> Workers | None:
    """Those that share the batch of a loss; None for a loss that nothing is to learn from."""
    if not isinstance(scores, Tensor):
        return None
    learns = scores.requires_grad and torch.is_grad_enabled()
    return workers() if learns or _measuring.get() else None


@contextmanager
def measure_together() -> Iterator[None]:
    """Let losses be those of all workers in this block even where nothing is to learn from them.

    Examples
    --------
    >>> with measure_together():
    ...     workers_of(torch.zeros(3)) is None  # one process
    True
    """
    token = _measuring.set(True)
    try:
        yield
    finally:
        _measuring.reset(token)


@contextmanager
def share_batches(group: Any) -> Iterator[Workers | None]:
    """Say which processes share each batch, for losses, ``APFEx`` and ``fit``, in this block.

    Parameters
    ----------
    group : torch.distributed.ProcessGroup or None
        Such as ``torch.distributed.group.WORLD``; None: this process is alone.

    Examples
    --------
    >>> with share_batches(None) as found:
    ...     found is None
    True
    """
    token = _chosen.set(Workers.of(group))
    try:
        yield _chosen.get()  # pyright: ignore[reportReturnType]
    finally:
        _chosen.reset(token)


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Neighbours of one kind together, up to a size that memory hardly notices."""
    bucket: list[Tensor] = []
    for tensor in tensors:
        if bucket and (
            (tensor.dtype, tensor.device) != (bucket[0].dtype, bucket[0].device)
            or sum(part.numel() for part in bucket) + tensor.numel() > _BUCKET
        ):
            yield bucket
            bucket = []
        bucket.append(tensor)
    if bucket:
        yield bucket
