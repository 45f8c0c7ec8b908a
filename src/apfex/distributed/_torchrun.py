"""Workers that ``torchrun`` has started: they meet, and tell each other why one of them stops."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import torch
import torch.distributed as dist

from apfex.distributed._workers import Workers, share_batches

_PATIENCE = timedelta(minutes=10)
"""How long a worker waits for the others; steps of a training take far less."""
_LAST_WORDS = timedelta(seconds=5)
"""How long a worker that fails waits for the first one to say so."""


def is_torchrun() -> bool:
    """Whether this process is one of several that ``torchrun`` has started.

    Examples
    --------
    >>> is_torchrun()
    False
    """
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


@contextmanager
def torchrun_workers() -> Iterator[Workers | None]:
    """The workers that ``torchrun`` has started share batches in this block; None without it.

    Examples
    --------
    >>> with torchrun_workers() as found:
    ...     found is None
    True
    """
    if not is_torchrun():
        yield None
        return
    on_gpus = torch.cuda.is_available()
    if on_gpus:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpus else "gloo", timeout=_PATIENCE)
    try:
        with share_batches(dist.group.WORLD) as found:
            yield found
    finally:
        dist.destroy_process_group()


def said_by_first(message: str) -> bool:
    """Leave word why this worker stops; tell whether the first one stops for the same reason.

    Then it tells the user, and the others need not: ``torchrun`` ends all as soon as one has.
    """
    if not dist.is_initialized():
        return False
    store, rank = dist.distributed_c10d._get_default_store(), dist.get_rank()
    with suppress(RuntimeError):  # the first worker, which keeps the store, may be gone
        store.set(f"apfex/stopped/{rank}", message)
        if rank > 0:
            store.wait(["apfex/stopped/0"], _LAST_WORDS)
            return store.get("apfex/stopped/0").decode() == message
    return False
