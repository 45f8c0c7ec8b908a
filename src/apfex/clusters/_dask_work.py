"""Waiting for the workers of a Dask cluster, with an end where there are none left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

_T = TypeVar("_T")
_LONGEST_WAIT = 60
"""Seconds without any worker, or for workers to come back, after which the work is given up."""
_LOOK_EVERY = 0.5


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

    return await _unless(results(), _nobody_left(client))


def with_all_workers(client: Any, work: Callable[[], Awaitable[_T]]) -> _T:
    """Do work in which all workers wait for each other, as when they grow trees together.

    If one is lost the others would wait for ever: they are started again, what they held is
    computed again, and the work is done once more. If that fails, too, it ends with an error.
    """
    return client.sync(_try_twice, client, work)


async def _try_twice(client: Any, work: Callable[[], Awaitable[_T]]) -> _T:
    try:
        return await _while_all_live(client, work)
    except LostWorker as lost:
        await _restart(client, lost)
    try:
        return await _while_all_live(client, work)
    except LostWorker as lost:
        await _restart(client, lost)
        raise RuntimeError(
            "Workers of the Dask cluster were lost twice while trees were grown on all of them, "
            f"the last time {', '.join(lost.addresses)}; perhaps they want for memory. Fit again "
            "with more of it, or with more workers."
        ) from lost


class LostWorker(Exception):
    """Workers that are gone; with those that were there at first and still are."""

    def __init__(self, addresses: Sequence[str], others: Sequence[str]) -> None:
        super().__init__(f"lost {', '.join(addresses)}")
        self.addresses, self.others = sorted(addresses), sorted(others)


async def _while_all_live(client: Any, work: Callable[[], Awaitable[_T]]) -> _T:
    before = await _some_workers(client)
    try:
        return await _unless(_as_coroutine(work), _somebody_lost(client, before))
    except LostWorker:
        raise
    except Exception:
        await asyncio.sleep(_LOOK_EVERY)  # the scheduler may hear of a lost worker after others do
        lost = before - await _workers(client)
        if lost:
            raise LostWorker([*lost], [*(before - lost)]) from None
        raise


async def _as_coroutine(work: Callable[[], Awaitable[_T]]) -> _T:
    return await work()


async def _unless(work: Any, danger: Any) -> Any:
    """What the work returns, or the error that the danger ends with first."""
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(danger)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return (tasks[0] if tasks[0] in done else tasks[1]).result()


async def _somebody_lost(client: Any, before: set[str]) -> None:
    while True:
        await asyncio.sleep(_LOOK_EVERY)
        lost = before - await _workers(client)
        if lost:
            raise LostWorker([*lost], [*(before - lost)])


async def _nobody_left(client: Any) -> None:
    while True:
        await asyncio.sleep(_LOOK_EVERY)
        if not await _workers(client):
            await _some_workers(client)


async def _some_workers(client: Any) -> set[str]:
    """Workers that there are; a sentence if none comes."""
    for _ in range(round(_LONGEST_WAIT / _LOOK_EVERY) + 1):
        found = await _workers(client)
        if found:
            return found
        await asyncio.sleep(_LOOK_EVERY)
    raise RuntimeError(
        f"The Dask cluster must have a worker, got none for {_LONGEST_WAIT} seconds; start some "
        "(dask worker ADDRESS), and fit again."
    )


async def _workers(client: Any) -> set[str]:
    try:
        return set(await client.scheduler.ncores())
    except (OSError, AttributeError):  # the scheduler does not answer
        return set()


async def _restart(client: Any, lost: LostWorker) -> None:
    """End what waits for a lost worker: nothing else can."""
    alive = await _workers(client)
    others = [address for address in lost.others if address in alive]
    if not others:
        return
    try:
        await client.restart_workers(others, timeout=_LONGEST_WAIT)
    except Exception as error:
        raise RuntimeError(
            f"The Dask cluster has lost {', '.join(lost.addresses)} while trees were grown on all "
            f"workers, and {', '.join(others)}, which wait for it, could not be started again "
            f"({type(error).__name__}: {error}); restart the cluster, and fit again."
        ) from error
