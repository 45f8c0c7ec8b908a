"""Threads: as many as the work is worth, and as the machine has for us."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import torch

_T = TypeVar("_T")
_FEW_ROWS = 10_000
"""Rows below which threads win a second at most, and lose minutes on cores that are busy."""

_lock = threading.Lock()
_users = 0
_before = 0
_is_forked = False
_here = threading.local()


def _after_fork() -> None:
    """Threads of the parent are not there in a child, but OpenMP waits for them for ever.

    One thread needs no others. A lock that another thread held would never be given back.
    """
    global _lock, _users, _is_forked
    _lock, _users, _is_forked = threading.Lock(), 0, True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def thread_count(n_jobs: int | None, n_rows: int) -> int:
    """How many threads to work on some rows with.

    Parameters
    ----------
    n_jobs : int or None
        As in scikit-learn: so many, or with -1 as many as there are processors, -2 all but one.
        None: one below 10,000 rows, else as many as torch is set to use, but no more than there
        are processors; limits of a container and of ``taskset`` count.
    n_rows : int

    Examples
    --------
    >>> thread_count(None, 500), thread_count(3, 500)
    (1, 3)
    """
    from joblib import cpu_count

    if n_jobs is None:
        return 1 if n_rows < _FEW_ROWS else min(torch.get_num_threads(), cpu_count())
    if n_jobs < 0:
        return max(1, cpu_count() + 1 + n_jobs)
    return n_jobs


@contextmanager
def use_threads(n: int) -> Iterator[None]:
    """Let torch, and all that goes by its setting, use so many threads for a while.

    In a forked child it is one, whatever is asked for: more would wait for those of the parent.
    torch keeps the number for each thread, and one for threads to come. Where several threads are
    in here at once, each puts back what was there before the first of them came; where one is in
    here twice, what it has set itself.
    """
    global _users, _before
    outer = getattr(_here, "n", None)
    with _lock:
        if _users == 0:
            _before = torch.get_num_threads()
        _users += 1
        _here.n = 1 if _is_forked else n
        torch.set_num_threads(_here.n)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            _here.n = outer
            torch.set_num_threads(outer or _before)


def beside(work: Callable[[], _T]) -> Callable[[], _T]:
    """Begin some work on a thread of its own; what is returned waits for the result.

    Where there is one thread alone, the work begins when its result is asked for.

    Parameters
    ----------
    work : callable
        It may use as many threads as the caller.

    Examples
    --------
    >>> result = beside(lambda: 6 * 7)
    >>> result()
    42
    """
    threads = torch.get_num_threads()
    if threads == 1:
        return cache(work)
    with_threads = ThreadPoolExecutor(1, "apfex", torch.set_num_threads, (threads,))
    begun = with_threads.submit(work)
    with_threads.shutdown(wait=False)
    return begun.result
