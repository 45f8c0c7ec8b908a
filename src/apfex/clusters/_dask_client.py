"""Jobs on Dask whose tables outlive workers, and which end; imported where Dask is used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future as Waiting
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, final
from uuid import uuid4

from dask import config
from distributed import Client, Future, LocalCluster
from joblib._dask import DaskDistributedBackend  # it has no public address

from apfex.clusters._dask_work import LONGEST_WAIT, workers_of

_T = TypeVar("_T")


def running_scheduler() -> tuple[Any, dict[str, Any]]:
    """Scheduler of the client in use, and how it is spoken to; None without a client."""
    try:
        found: Any = Client.current()
    except ValueError:
        return None, {}
    where = found.cluster if found.cluster is not None else found.scheduler.address
    return where, {"security": found.security}


@contextmanager
def start_workers(n: int) -> Iterator[Any]:
    """Start worker processes with one thread each on this machine, and end them after."""
    from joblib import cpu_count

    settings: dict[str, Any] = {
        "n_workers": n if n > 0 else max(1, cpu_count() + 1 + n),
        "threads_per_worker": 1,
        "host": "127.0.0.1",
        "dashboard_address": "127.0.0.1:0",  # any port: the usual one may be taken
    }
    with LocalCluster(processes=True, **settings) as cluster:
        yield cluster


@contextmanager
def connect(scheduler: Any, **options: Any) -> Iterator[Any]:
    """A client of that scheduler, which gives up where no worker is left."""
    try:
        client: Any = KeepingClient(scheduler, set_as_default=False, **options)
    except (OSError, ValueError) as error:
        raise ValueError(
            "scheduler must be the address of a Dask scheduler that answers, as tcp://HOST:8786, "
            f"got {scheduler!r} ({error})."
        ) from error
    with client:
        watching = asyncio.run_coroutine_threadsafe(
            _give_up_without_workers(client, LONGEST_WAIT), client.loop.asyncio_loop
        )
        try:
            yield client
        finally:
            watching.cancel()


@final
class KeepingClient(Client):
    """A client that sends data as tasks.

    Data that are scattered exist on one worker alone: if it dies, so does all that depends on them.
    The scheduler keeps the input of a task, and sends it again.
    """

    def scatter(self, data: Any, *args: Any, **options: Any) -> Any:
        """Send data; a coroutine of their future where joblib asks for one."""
        if options.get("asynchronous"):
            return self._keep(data)
        return super().scatter(data, *args, **options)

    async def _keep(self, data: Any) -> Any:
        # the warning is about data that every task brings along: these are sent once
        with config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"}):
            return self.submit(partial(_itself, data), key=f"data-{uuid4().hex}", pure=False)

    def submit(self, func: Any, *args: Any, **options: Any) -> Future:
        """Submit a task; what cannot be sent is a task that says so: joblib would wait for ever."""
        try:
            return super().submit(func, *args, **options)
        except Exception as error:
            reason = error.__cause__ or error
            return super().submit(_refuse, f"{type(reason).__name__}: {reason}", pure=False)


def _itself(data: _T) -> _T:
    return data


def _refuse(reason: str) -> None:
    raise ValueError(f"What a job needs must be such that it can be pickled, got {reason}.")


@final
class KeepingBackend(DaskDistributedBackend):
    """joblib's backend, which also hears of tasks that Dask itself gives up.

    A task whose workers died three times, for instance; joblib would wait for it for ever.
    """

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Jobs at a time: two at least, as joblib would run one at a time in this process."""
        return max(2, super().effective_n_jobs(n_jobs))

    def submit(self, func: Any, callback: Callable[[Any], None] | None = None) -> Any:
        """Submit a batch of jobs."""
        waiting = super().submit(func, callback)
        waiting.add_done_callback(partial(_tell_failure, callback))
        return waiting


def _tell_failure(callback: Callable[[Any], None] | None, done: Waiting[Any]) -> None:
    failure = done.exception()
    if failure is not None and callback is not None:
        callback(failure)


async def _give_up_without_workers(client: Client, longest: int) -> None:
    """Cancel what is waited for once there has been no worker for so many seconds."""
    alone = 0
    while True:
        await asyncio.sleep(1)
        alone = 0 if not client.futures or await workers_of(client) else alone + 1
        if alone >= longest:
            waiting = [Future(key, client) for key in list(client.futures)]
            reason = f"the cluster had no worker for {longest} seconds"
            await client.cancel(waiting, asynchronous=True, reason=reason)
            alone = 0
