"""Confusion counts that run over batches."""

import pytest
import torch

from apfex.models._running_counts import RunningCounts
from apfex.rates import GroupIndex, soft_counts


def batches(n, generator):
    return [
        (
            torch.rand(3, 20, generator=generator),
            torch.randint(2, (20,), generator=generator),
            GroupIndex(torch.randint(4, (20,), generator=generator), None, 4),
        )
        for _ in range(n)
    ]


def test_the_first_batch_counts_in_full():
    (decisions, labels, index), *_ = batches(1, torch.Generator().manual_seed(0))
    found = RunningCounts(memory=50.0).update(decisions, labels, index, None)
    torch.testing.assert_close(found, soft_counts(decisions, labels, index))


def test_equal_batches_leave_the_mean_where_it_is():
    (decisions, labels, index), *_ = batches(1, torch.Generator().manual_seed(0))
    running = RunningCounts(memory=5.0)
    found = [running.update(decisions, labels, index, None) for _ in range(7)][-1]
    torch.testing.assert_close(found, soft_counts(decisions, labels, index))


def test_it_is_the_weighted_mean_of_the_past():
    memory, running = 4.0, RunningCounts(memory=4.0)
    seen = batches(6, torch.Generator().manual_seed(1))
    found = [running.update(*batch, None) for batch in seen][-1]
    ages = torch.arange(5, -1, -1)
    shares = (1 - 1 / memory) ** ages / memory
    counts = torch.stack([soft_counts(*batch) for batch in seen])
    expected = (shares[:, None, None, None] * counts).sum(0) / shares.sum()
    torch.testing.assert_close(found, expected)


def test_it_remembers_a_group_that_is_absent_from_a_batch():
    running = RunningCounts(memory=10.0)
    index = GroupIndex(torch.tensor([0, 1]), None, 2)
    running.update(torch.ones(2), torch.ones(2, dtype=torch.int64), index, None)
    alone = GroupIndex(torch.tensor([0, 0]), None, 2)
    found = running.update(torch.ones(2), torch.ones(2, dtype=torch.int64), alone, None)
    assert found[1, 3] > 0


def test_weights_count_as_repeated_rows():
    decisions, labels = torch.tensor([0.2, 0.7]), torch.tensor([1, 0])
    index = GroupIndex(torch.tensor([0, 1]), None, 2)
    weighted = RunningCounts(3.0).update(decisions, labels, index, torch.tensor([2.0, 1.0]))
    rows = torch.tensor([0, 0, 1])
    again = GroupIndex(torch.tensor([0, 0, 1]), None, 2)
    repeated = RunningCounts(3.0).update(decisions[rows], labels[rows], again, None)
    torch.testing.assert_close(weighted, repeated)


@pytest.mark.parametrize("memory", [0.0, 1.0])
def test_no_memory_means_the_last_batch(memory):
    running = RunningCounts(memory)
    seen = batches(3, torch.Generator().manual_seed(2))
    found = [running.update(*batch, None) for batch in seen][-1]
    torch.testing.assert_close(found, soft_counts(*seen[-1]))


def test_some_members_are_remembered_as_they_were():
    running, kept = RunningCounts(4.0), torch.tensor([2, 0])
    *seen, last = batches(4, torch.Generator().manual_seed(3))
    for batch in seen:
        running.update(*batch, None)
    some = running.of_members(kept)
    decisions, labels, index = last
    found = some.update(decisions[kept], labels, index, None)
    torch.testing.assert_close(found, running.update(*last, None)[kept])


@pytest.mark.parametrize("c", [None, 3])
def test_members_may_weigh_rows_differently(c):
    generator = torch.Generator().manual_seed(4)
    shape = (5, 20) if c is None else (5, c, 20)
    decisions, weight = torch.rand(shape, generator=generator), torch.rand(5, 20)
    labels = torch.randint(2, shape[1:], generator=generator)
    index = GroupIndex(torch.randint(4, (20,), generator=generator), None, 4)
    given = weight if c is None else weight.unsqueeze(1)
    found = RunningCounts(3.0).update(decisions, labels, index, given)
    for i in range(5):
        alone = RunningCounts(3.0).update(decisions[i], labels, index, weight[i])
        torch.testing.assert_close(found[i], alone)
