"""Waiting for the workers of a Dask cluster, with an end where there are none left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from apfex.extras import need_extra

_T = TypeVar("_T")
Work = Callable[[Callable[[Iterable[str]], None]], Coroutine[Any, Any, _T]]
"""Work on the loop of the client; it tells which workers take part, as soon as it knows."""
LONGEST_WAIT = 60
"""Seconds without any worker, or for workers to come back, after which the work is given up."""
_LOOK_EVERY = 0.5
_HEARD_WITHIN = 10
"""Seconds in which the scheduler hears of a lost worker, after the others have."""


def is_dask_frame(X: Any) -> bool:
    """Whether a table is a Dask DataFrame; Dask is not imported for others.

    Examples
    --------
    >>> is_dask_frame([[1.0]])
    False
    """
    kind = type(X)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("dask.dataframe.")


def client_in_use() -> Any:
    """The Dask client that is in use; a sentence where there is none."""
    need_extra("dask", "distributed", "A Dask DataFrame")
    from distributed import Client

    try:
        client: Any = Client.current()
    except ValueError:
        raise ValueError(
            "X must come with a Dask client in use where it is a Dask DataFrame, got none; start "
            "one: from distributed import Client; client = Client()."
        ) from None
    if client.asynchronous:
        raise ValueError("The Dask client must not be asynchronous where X is a Dask DataFrame.")
    return client


def gather(client: Any, futures: Sequence[Any]) -> list[Any]:
    """Results of tasks, in their order."""
    from distributed import KilledWorker

    try:
        return client.sync(_gather, client, futures)
    except KilledWorker as error:
        raise RuntimeError(
            "Workers of the Dask cluster died again and again at the same task, perhaps for want "
            f"of memory; give them more, or make partitions smaller ({error})."
        ) from error


async def _gather(client: Any, futures: Sequence[Any]) -> list[Any]:
    async def results() -> list[Any]:
        return await client.gather(list(futures), asynchronous=True)

    return await _unless(results(), _somebody_lost(client, ()))


def with_all_workers(
    client: Any, work: Work[_T], is_broken: Callable[[Exception], bool] | None = None
) -> _T:
    """Do work in which all workers wait for each other, as when they grow trees together.

    If one is lost the others would wait for ever: they are started again, what they held is
    computed again, and the work is done once more. If that fails, too, it ends with an error.

    Parameters
    ----------
    client : distributed.Client
    work : callable
        Gives a coroutine, on the loop of the client. It is given a function to call with the
        addresses of the workers that take part, as soon as they are known: others may come and go.
    is_broken : callable, optional
        Whether an error of the work says that workers do not hear of each other any more.
    """
    return client.sync(_try_twice, client, work, is_broken)


async def _try_twice(
    client: Any, work: Work[_T], is_broken: Callable[[Exception], bool] | None
) -> _T:
    try:
        return await _while_all_live(client, work, is_broken)
    except LostWorker as lost:
        await _restart(client, lost)
    try:
        return await _while_all_live(client, work, is_broken)
    except LostWorker as lost:
        await _restart(client, lost)
        raise RuntimeError(
            "Workers of the Dask cluster were lost twice while trees were grown on all of them, "
            f"the last time {lost.told}; perhaps they want for memory. Fit again with more of it, "
            "or with more workers."
        ) from lost


class LostWorker(Exception):
    """Workers that are gone; with the others that take part, who wait for them."""

    def __init__(self, addresses: Collection[str], others: Collection[str]) -> None:
        self.told = ", ".join(sorted(addresses)) or "one that the scheduler still knows"
        super().__init__(f"lost {self.told}")
        self.others = sorted(others)


async def _while_all_live(
    client: Any, work: Work[_T], is_broken: Callable[[Exception], bool] | None
) -> _T:
    before, members = await _some_workers(client), set[str]()
    try:
        return await _unless(work(members.update), _somebody_lost(client, members))
    except LostWorker:
        raise
    except Exception as error:
        broken = is_broken is not None and is_broken(error)
        lost = await _lost(client, before, _HEARD_WITHIN if broken else 0)
        if lost or broken:
            raise LostWorker(lost, members - lost) from error
        raise


async def _lost(client: Any, before: set[str], seconds: float) -> set[str]:
    """Workers that are gone, waiting a while for the first of them."""
    for _ in range(round(seconds / _LOOK_EVERY)):
        if before - await workers_of(client):
            break
        await asyncio.sleep(_LOOK_EVERY)
    return before - await workers_of(client)


async def _unless(work: Any, danger: Any) -> Any:
    """What the work returns, or the error that the danger ends with first."""
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(danger)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        # no longer than that: what is cancelled may wait for a scheduler that is gone
        ended, _ = await asyncio.wait(tasks, timeout=_HEARD_WITHIN)
        for task in ended:
            _ = task.cancelled() or task.exception()
    return (tasks[0] if tasks[0] in done else tasks[1]).result()


async def _somebody_lost(client: Any, members: Collection[str]) -> None:
    """End with an error once a member is gone, or nobody is left at all."""
    while True:
        await asyncio.sleep(_LOOK_EVERY)
        found = await workers_of(client)
        lost = {*members} - found
        if lost:
            raise LostWorker(lost, {*members} - lost)
        if not found:
            await _some_workers(client)


async def _some_workers(client: Any) -> set[str]:
    """Workers that there are; a sentence if none comes."""
    for _ in range(round(LONGEST_WAIT / _LOOK_EVERY) + 1):
        found = await workers_of(client)
        if found:
            return found
        await asyncio.sleep(_LOOK_EVERY)
    raise RuntimeError(
        f"The Dask cluster must have a worker, got none for {LONGEST_WAIT} seconds; start some "
        "(dask worker ADDRESS), and fit again."
    )


async def workers_of(client: Any) -> set[str]:
    """Addresses of the workers that the scheduler knows; none where it does not answer."""
    try:
        return set(await client.scheduler.ncores())
    except (OSError, AttributeError):  # the scheduler does not answer
        return set()


async def _restart(client: Any, lost: LostWorker) -> None:
    """End what waits for a lost worker: nothing else can."""
    alive = await workers_of(client)
    others = [address for address in lost.others if address in alive]
    if not others:
        return
    try:
        await client.restart_workers(others, timeout=LONGEST_WAIT)
    except Exception as error:
        raise RuntimeError(
            f"The Dask cluster has lost {lost.told} while trees were grown on all workers, and "
            f"{', '.join(others)}, which wait for it, could not be started again "
            f"({type(error).__name__}: {error}); restart the cluster, and fit again."
        ) from error
