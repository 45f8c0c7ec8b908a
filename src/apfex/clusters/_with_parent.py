"""A process that ends when the one that has started it does."""

from __future__ import annotations

import os
import signal
import threading

_SECONDS = 1.0
"""Between two looks."""
_watched: set[int] = set()


def end_with(parent: int) -> None:
    """Let this process end soon after another one that has started it, however that one ends.

    A worker whose parent is killed would go on with its job, which nobody waits for any more. A
    process that another one has started, as on a cluster, is left alone.

    Parameters
    ----------
    parent : int
        Number of the process that asks for the work.

    Examples
    --------
    >>> end_with(os.getpid())  # a process is not its own parent
    """
    if os.getppid() != parent or parent in _watched:
        return
    _watched.add(parent)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    never = threading.Event()
    while os.getppid() == parent:
        never.wait(_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)  # nothing of a worker is worth to be finished
