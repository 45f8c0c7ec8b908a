"""A process group of one process changes nothing."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from tests.optimizer.loops import losses
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from apfex.distributed import workers
from apfex.optimizer import APFEx

pytestmark = pytest.mark.skipif(not dist.is_available(), reason="needs torch.distributed")


def test_a_group_of_one_process_is_fine(tmp_path, batch):
    store = (Path(tmp_path) / "store").as_uri()
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        assert workers() is None
        x, y, groups = batch
        model = nn.Linear(3, 1)
        optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.1))
        optimizer.backward(losses(DistributedDataParallel(model)(x), y, groups))
        optimizer.step()
        assert optimizer.history is not None
    finally:
        dist.destroy_process_group()
