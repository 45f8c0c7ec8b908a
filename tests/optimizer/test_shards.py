"""Sharded parameters in a group of one process: the pass that hands out gradients, and refusals.

Groups of several are in ``tests/distributed``.
"""

from typing import Any

import pytest
import torch
import torch.distributed as dist
from tests.distributed.loops import N, batch
from torch import nn

from apfex.constraints import Constraint
from apfex.distributed import Workers
from apfex.objectives import CrossEntropy, FairnessLoss
from apfex.optimizer import APFEx
from apfex.optimizer._shards import (
    are_sharded,
    backward_into_shards,
    check_not_flat,
    check_shards,
    is_sharded,
)
from apfex.strategies import AdaptiveWeighting, ConeProjection


class Named(torch.Tensor):
    """Of another class, and whole."""


class Net(nn.Module):
    """Two layers in use, and one that no loss depends on."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.body, self.head, self.unused = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
        self.double()

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


@pytest.fixture(scope="module")
def mesh(tmp_path_factory):
    """A mesh of one process."""
    if not (dist.is_available() and dist.is_gloo_available()):
        pytest.skip("needs torch.distributed with gloo")
    from torch.distributed.device_mesh import init_device_mesh

    store = (tmp_path_factory.mktemp("group") / "store").as_uri()
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


@pytest.fixture
def shard(mesh):
    from torch.distributed.fsdp import fully_shard

    return lambda module: fully_shard(module, mesh=mesh)


def losses(net):
    x, y, groups, _ = batch()
    scores = net(x).squeeze(1)
    return scores, [CrossEntropy()(scores, y), FairnessLoss("dp")(scores, y, groups)]


def trained(net, strategy, *, outputs):
    inner = torch.optim.AdamW(net.parameters(), lr=0.1, weight_decay=0.5)
    optimizer = APFEx(inner, strategy, window=2, space="prediction" if outputs else "auto")
    for _ in range(5):
        scores, values = losses(net)
        optimizer.backward(values, outputs=scores if outputs else None)
        optimizer.step()
    return [whole(parameter) for parameter in net.parameters()]


def whole(parameter):
    own = parameter.detach()
    return own.full_tensor() if is_sharded(own) else own


@pytest.mark.parametrize("layers", [("body", "net"), ("net",), ("body",), ("head",)])
@pytest.mark.parametrize(
    ("strategy", "outputs"), [(AdaptiveWeighting(), False), (ConeProjection(), True)]
)
def test_steps_are_those_of_whole_parameters(shard, layers, strategy, outputs):
    """Also with weight decay: what no loss depends on keeps its value."""
    expected = trained(Net(), strategy, outputs=outputs)
    net = Net()
    for layer in layers:
        shard(net if layer == "net" else getattr(net, layer))
    found = trained(net, strategy, outputs=outputs)
    assert max(float((a - b).abs().max()) for a, b in zip(found, expected, strict=True)) <= 1e-12
    assert torch.equal(found[4], whole(Net().unused.weight))


def test_a_pass_hands_out_what_it_reaches_and_leaves_grad(shard):
    net = Net()
    expected = torch.autograd.grad(losses(net)[1][0], [net.body.weight, net.head.weight])
    shard(net.body)
    kept = torch.ones_like(net.head.weight)
    net.head.weight.grad = kept
    parameters = list(net.parameters())
    found = backward_into_shards(
        losses(net)[1][0], torch.ones((), dtype=torch.float64), parameters, None
    )
    assert list(found) == parameters[:4]
    for parameter, gradient in zip([net.body.weight, net.head.weight], expected, strict=True):
        assert torch.allclose(whole(found[parameter]), gradient, rtol=1e-12)
    assert net.head.weight.grad is kept
    assert torch.equal(kept, torch.ones_like(kept))
    assert all(p.grad is None for p in parameters if p is not net.head.weight)


def test_a_pass_that_fails_leaves_grad(shard):
    net = shard(Net())
    value = losses(net)[1][0]
    value.backward()
    before = [parameter.grad for parameter in net.parameters()]
    with pytest.raises(RuntimeError, match="second time"):
        backward_into_shards(value, torch.ones_like(value), list(net.parameters()), None)
    assert all(p.grad is own for p, own in zip(net.parameters(), before, strict=True))


def test_whole_parameters_are_averaged_and_sharded_ones_are_not(shard, monkeypatch):
    """Of two workers, of which the other one's gradients are three times as large."""
    asked = []

    def mean_(_, tensors):
        asked.extend(tensors)
        return [2 * one for one in tensors]

    monkeypatch.setattr(Workers, "mean_", mean_)
    net = Net()
    alone = torch.autograd.grad(losses(net)[1][0], list(net.parameters())[:4])
    shard(net.body)
    parameters = list(net.parameters())
    found = backward_into_shards(
        losses(net)[1][0], torch.ones((), dtype=torch.float64), parameters, Workers(0, 2, None)
    )
    assert list(found) == parameters
    assert [one.shape for one in asked] == [p.shape for p in parameters[2:]]
    for parameter, own, times in zip(parameters[:4], alone, (1, 1, 2, 2), strict=True):
        assert torch.allclose(whole(found[parameter]), times * own, rtol=1e-12)
    for parameter in parameters[4:]:  # reached by rows of other workers, if at all
        assert torch.equal(found[parameter], torch.zeros_like(parameter))


def test_what_is_sharded_is_known(shard):
    net = Net()
    shard(net.body)
    assert is_sharded(net.body.weight)
    assert is_sharded(net.body.weight.detach())
    assert not is_sharded(net.head.weight)
    assert not is_sharded(net.head.weight.detach())
    assert not is_sharded(torch.zeros(1).as_subclass(Named))
    assert are_sharded(net.parameters())
    assert are_sharded([net.head.weight, net.body.weight, net.head.bias])
    assert not are_sharded(net.head.parameters())
    assert not are_sharded([])


def test_nothing_is_sharded_without_torch_distributed(shard, monkeypatch):
    net = shard(Net())
    monkeypatch.setattr(torch.distributed, "is_available", lambda: False)
    assert not is_sharded(net.body.weight)


def test_flat_parameters_are_refused_wherever_they_are():
    flat = nn.Parameter(torch.zeros(2))
    check_not_flat(flat)
    check_not_flat(None)
    flat._is_flat_param = False  # pyright: ignore[reportAttributeAccessIssue]
    check_not_flat(flat)
    flat._is_flat_param = True  # pyright: ignore[reportAttributeAccessIssue]
    other = nn.Parameter(torch.zeros(2))
    for parameters in ([flat], [flat, other], [other, flat]):
        with pytest.raises(TypeError, match=r"flat ones.*use|flat ones.*fully_shard\(model\)"):
            are_sharded(parameters)
        with pytest.raises(TypeError, match="FullyShardedDataParallel"):
            APFEx(torch.optim.SGD(parameters, lr=0.1))


SCORES = torch.zeros(N)


@pytest.mark.parametrize(
    ("wrong", "found", "remedy"),
    [
        ({"compares": True}, "the strategy compares gradients", "outputs=scores"),
        ({"compares": True}, "the strategy compares gradients", r"AdaptiveWeighting\(\)"),
        ({"constrained": True}, "there are constraints", "give them as losses"),
        ({"accumulates": True}, "accumulate is True", "take larger batches"),
        ({"scales": True}, "there is a GradScaler", "bfloat16"),
        ({"scales": True, "outputs": SCORES}, "there is a GradScaler", "bfloat16"),
    ],
)
def test_what_needs_each_gradient_is_refused(wrong, found, remedy):
    usual: dict[str, Any] = {
        "outputs": None,
        "compares": False,
        "constrained": False,
        "accumulates": False,
        "scales": False,
    }
    fine: list[dict[str, Any]] = [{}, {"outputs": SCORES}, {"outputs": SCORES, "compares": True}]
    for settings in fine:
        check_shards(**usual | settings)
    with pytest.raises(ValueError, match=rf"{found}.*{remedy}.*DistributedDataParallel"):
        check_shards(**usual | wrong)


def test_refusals_reach_backward(shard):
    def refused(match, strategy=None, **more):
        net = shard(Net())
        inner = torch.optim.SGD(net.parameters(), lr=0.1)
        accumulate = more.pop("accumulate", False)
        optimizer = APFEx(inner, strategy or AdaptiveWeighting(), accumulate=accumulate)
        scores, values = losses(net)
        if more.pop("bounded", False):
            more |= {"outputs": scores, "constraints": Constraint(values[1], 0.01)}
        with pytest.raises(ValueError, match=match):
            optimizer.backward(values, **more)
        assert all(parameter.grad is None for parameter in net.parameters())

    refused("compares gradients", ConeProjection())
    refused("constraints", bounded=True)
    refused("constraints", ConeProjection(), bounded=True)
    refused("accumulate", accumulate=True)
    refused("GradScaler", scaler=torch.amp.GradScaler("cpu"))
