"""Waiting for workers: results, errors as they are, and an end where nobody is left."""

from collections.abc import Iterator
from typing import Any

import pytest

from apfex.clusters import _dask_work, client_in_use, gather, with_all_workers


@pytest.fixture
def client(time_limit: None) -> Iterator[Any]:
    """A worker in this process."""
    del time_limit
    from distributed import Client

    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as one:
        yield one


def fail(reason: str) -> None:
    raise ValueError(reason)


def test_results_come_in_order(client):
    assert client_in_use() is client
    assert gather(client, [client.submit(pow, 2, power) for power in (3, 1, 2)]) == [8, 2, 4]


def test_errors_of_tasks_are_those_of_the_worker(client):
    with pytest.raises(ValueError, match="partition 3 is odd"):
        gather(client, [client.submit(fail, "partition 3 is odd")])


def test_work_that_fails_for_itself_is_not_done_again(client):
    tries = []

    async def work(take_part: Any) -> None:
        del take_part
        tries.append(1)
        raise ValueError("no luck")

    with pytest.raises(ValueError, match="no luck"):
        with_all_workers(client, work)
    assert len(tries) == 1


def test_work_of_all_workers_returns_what_it_found(client):
    async def work(take_part: Any) -> int:
        take_part([])
        return await client.submit(abs, -3)

    assert with_all_workers(client, work) == 3


@pytest.mark.slow
def test_where_nobody_is_left_waiting_ends(client, monkeypatch):
    monkeypatch.setattr(_dask_work, "LONGEST_WAIT", 1)
    client.cluster.scale(0)

    async def work(take_part: Any) -> int:
        take_part([])
        return await client.submit(abs, -3)

    with pytest.raises(RuntimeError, match=r"must have a worker, got none for 1 seconds; start so"):
        with_all_workers(client, work)
    with pytest.raises(RuntimeError, match=r"must have a worker, got none for 1 seconds; start so"):
        gather(client, [client.submit(abs, -4)])
