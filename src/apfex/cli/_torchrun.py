"""A command in one of several processes that ``torchrun`` has started."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout

_SHARED = "explore"
"""The command that several workers can share; others they would do several times."""


class StoppedWorker(ValueError):
    """Why a worker stops, in words for the user; none where the first worker says it."""


@contextmanager
def as_worker(arguments: Sequence[str] | None, describe: Callable[[Exception], str]) -> Iterator:
    """Let a command in this block be shared with the other workers, if there are any.

    The first one alone talks to the user and writes. ``torchrun`` ends all processes as soon as one
    of them fails, so a worker that fails leaves word before it goes.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``apfex``; those of the process by default.
    describe : callable
        From an error to what the user is told.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not _is_shared(words):
        yield
        return
    from apfex.distributed import torchrun_workers

    with torchrun_workers() as team:
        assert team is not None
        try:
            with _quiet(team.rank > 0):
                yield
            team.call_roll("finishing", {})
        except Exception as error:
            raise StoppedWorker(_last_words(error, describe(error), team.rank)) from error


def _is_shared(words: Sequence[str]) -> bool:
    """Whether these are the words of one of several workers."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or "RANK" not in os.environ:
        return False
    if not words or words[0].startswith("-") or {"-h", "--help"} & set(words):
        return False
    if words[0] != _SHARED:
        raise ValueError(
            f"torchrun must run `apfex {_SHARED}`, got `apfex {words[0]}`, which every worker "
            "would do for itself; run it without torchrun (RANK and WORLD_SIZE are set)."
        )
    return True


def _last_words(error: Exception, message: str, rank: int) -> str:
    """What this worker tells the user; nothing, if another one does."""
    from apfex.distributed import WorkerError, leave_word, words_of_others

    if isinstance(error, WorkerError):  # a consequence of what another one says
        others = words_of_others()
        if others:
            return "" if rank else "; ".join(f"Worker {r}: {said}" for r, said in others.items())
        return f"Worker {rank}: {message}"
    said_by_first = leave_word(message)
    return message if rank == 0 else "" if said_by_first else f"Worker {rank}: {message}"


@contextmanager
def _quiet(wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield
