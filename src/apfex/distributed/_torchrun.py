"""Workers that ``torchrun`` has started: they meet, and leave word why one of them stops."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from apfex.distributed._workers import Workers, share_batches

_PATIENCE = timedelta(minutes=30)
"""How long a worker waits for the others, which may fit trees or measure meanwhile."""
_LAST_WORDS = timedelta(seconds=5)
"""How long a worker that stops waits for the first one to say why it does."""


@contextmanager
def torchrun_workers() -> Iterator[Workers | None]:
    """The processes that ``torchrun`` has started share batches in this block.

    Without ``torchrun``, or with one process, nobody does. GPUs are used if there is one for each
    process of this machine.

    Examples
    --------
    >>> with torchrun_workers() as found:
    ...     found is None
    True
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or "RANK" not in os.environ:
        yield None
        return
    own_gpu = torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if own_gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl" if own_gpu else "gloo", timeout=_PATIENCE)
    with share_batches(dist.group.WORLD) as found:
        yield found
    dist.destroy_process_group()  # not after an error, when others may never answer


def leave_word(message: str) -> bool:
    """Say why this worker stops; tell whether the first one stops for the same reason."""
    store, rank = _store(), dist.get_rank()
    with suppress(RuntimeError):  # whoever keeps the store may be gone
        store.set(f"apfex/stopped/{rank}", message)
        if rank > 0:
            store.wait(["apfex/stopped/0"], _LAST_WORDS)
            return store.get("apfex/stopped/0").decode() == message
    return False


def words_of_others() -> dict[int, str]:
    """What workers that have stopped have said, by rank."""
    store, found = _store(), {}
    with suppress(RuntimeError):
        for rank in range(dist.get_world_size()):
            if store.check([f"apfex/stopped/{rank}"]):
                found[rank] = store.get(f"apfex/stopped/{rank}").decode()
    return found


def _store() -> Any:
    return dist.distributed_c10d._get_default_store()
