"""Two worker processes of a local Dask cluster, and a limit of time for all that waits for them."""

import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

LIMIT = 300
"""Seconds after which a test that uses workers ends, whatever it waits for."""


def give_up(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise TimeoutError(f"The test was not done after {LIMIT} seconds.")


@pytest.fixture
def time_limit() -> Iterator[None]:
    """End what waits for ever with an error."""
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def two_workers(time_limit: None) -> Iterator[Any]:
    """The client of two workers with one thread each; what dies is started again."""
    del time_limit
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=":0",  # any port: others may have a cluster, too
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def kill_one(client: Any) -> str:
    """Kill a worker, one that is at work if there is one; return its address.

    One that has done all its jobs may still hold their results.
    """
    tasks = client.processing()
    busy = sorted(tasks, key=lambda worker: len(tasks[worker]), reverse=True)
    (pid,) = client.run(os.getpid, workers=busy[:1]).values()
    os.kill(pid, signal.SIGKILL)
    return busy[0]
