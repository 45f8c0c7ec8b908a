"""Several processes are refused: each would decide from its own rows, and copies drift apart."""

import json
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from tests.optimizer.loops import losses, same, snapshot
from torch import nn
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel

from apfex.optimizer import APFEx

pytestmark = pytest.mark.skipif(not dist.is_available(), reason="needs torch.distributed")
SECONDS = 120


def batch():
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    return x, (x[:, 0] > 0).long(), torch.arange(64) % 4


def join(folder: str, rank: int, number: int) -> None:
    store = (Path(folder) / "store").as_uri()
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=number)


def refused_on_two_ranks(rank: int, folder: str) -> None:
    """One rank: an optimizer from before the group, and one from after."""
    torch.set_num_threads(1)
    model = nn.Linear(3, 1)
    early = APFEx(torch.optim.SGD(model.parameters(), lr=0.1))
    join(folder, rank, 2)
    parallel = DistributedDataParallel(model)
    x, y, groups = (part[rank::2] for part in batch())
    before = snapshot(model, early)
    told = {}
    try:
        early.backward(losses(parallel(x), y, groups))
    except RuntimeError as error:
        told["backward"] = str(error)
    told["unchanged"] = same(snapshot(model, early), before)
    try:
        APFEx(torch.optim.SGD(parallel.parameters(), lr=0.1))
    except RuntimeError as error:
        told["constructor"] = str(error)
    dist.barrier()
    dist.destroy_process_group()
    (Path(folder) / f"{rank}.json").write_text(json.dumps(told))


def test_a_group_of_two_is_refused(monkeypatch):
    model, (x, y, groups) = nn.Linear(3, 1), batch()
    early = APFEx(torch.optim.SGD(model.parameters(), lr=0.1))
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)
    before = snapshot(model, early)
    with pytest.raises(RuntimeError, match=r"must run in one process, but torch.distributed has 2"):
        early.backward(losses(model(x), y, groups))
    assert same(snapshot(model, early), before)
    with pytest.raises(RuntimeError, match="Train in one process"):
        APFEx(torch.optim.SGD(model.parameters(), lr=0.1))


@pytest.mark.slow
def test_two_ranks_under_ddp_are_refused(tmp_path):
    context = spawn(refused_on_two_ranks, (str(tmp_path),), nprocs=2, join=False)
    assert context is not None
    deadline = time.monotonic() + SECONDS
    try:
        while not context.join(timeout=max(0.0, deadline - time.monotonic())):  # one rank is done
            assert time.monotonic() < deadline, f"The ranks took more than {SECONDS} seconds."
    finally:
        for process in context.processes:
            assert process is not None
            process.kill()
    for rank in range(2):
        told = json.loads((tmp_path / f"{rank}.json").read_text())
        for place in ("backward", "constructor"):
            assert "APFEx must run in one process, but torch.distributed has 2" in told[place]
            assert "Train in one process" in told[place]
        assert told["unchanged"]


def test_a_group_of_one_process_is_fine(tmp_path):
    join(str(tmp_path), 0, 1)
    try:
        x, y, groups = batch()
        model = nn.Linear(3, 1)
        optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.1))
        optimizer.backward(losses(DistributedDataParallel(model)(x), y, groups))
        optimizer.step()
        assert optimizer.history is not None
    finally:
        dist.destroy_process_group()
