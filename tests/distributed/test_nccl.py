"""Through NCCL workers tell each other what they tell through gloo. One GPU has room for one."""

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from apfex.distributed import Workers, _workers
from apfex.objectives import CrossEntropy, FairnessLoss
from apfex.optimizer import APFEx

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.fixture(params=["nccl", "cpu:gloo,cuda:nccl"])
def alone(request, tmp_path):
    """A worker that has nobody else, and exchanges all the same."""
    place = f"file://{tmp_path / 'store'}"
    dist.init_process_group(request.param, init_method=place, rank=0, world_size=1)
    yield Workers(0, 1, dist.group.WORLD)
    dist.destroy_process_group()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_what_is_told_comes_back_where_it_was(alone, device):
    values = torch.arange(6.0, device=device).view(2, 3)
    for found in (alone.gather(values)[0], alone.sum(values), alone.first(values)):
        assert found.device == values.device
        assert found.equal(values)
    for many in (alone.mean_, alone.sum_):
        one, other = many([values.clone(), values[0].double()])
        assert one.equal(values)
        assert other.equal(values[0].double())
        assert one.device == other.device == values.device
    assert alone.call_roll("meeting", {"rows": 3.0}).tolist() == [[3.0]]


def test_a_loop_takes_the_steps_that_it_takes_alone(alone):
    def train(wrap):
        torch.manual_seed(0)
        x = torch.randn(64, 3, device="cuda", dtype=torch.float64)
        y, groups = (x[:, 0] > 0).long(), torch.arange(64, device="cuda") % 4
        net = nn.Linear(3, 1, device="cuda", dtype=torch.float64)
        model, losses = wrap(net), (CrossEntropy(), FairnessLoss("dp"), FairnessLoss("tpr"))
        optimizer = APFEx(torch.optim.Adam(net.parameters(), lr=0.05), window=2)
        for _ in range(8):
            scores = model(x).squeeze(1)
            optimizer.backward([loss(scores, y, groups) for loss in losses])
            optimizer.step()
        return net.weight.detach().clone()

    expected = train(lambda net: net)
    token = _workers._chosen.set(alone)
    try:
        found = train(DistributedDataParallel)
    finally:
        _workers._chosen.reset(token)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
