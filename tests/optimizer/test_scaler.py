"""``torch.amp``: the documented recipe is training without a scaler, and others are refused."""

import copy
import math

import pandas as pd
import pytest
import torch
from tests.optimizer.loops import STRATEGIES, losses, same
from torch import nn

from apfex.constraints import Constraint
from apfex.optimizer import APFEx
from apfex.strategies import ConeProjection, Decision, EqualWeights

DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
        ],
    ),
]


def setting(device: str = "cpu"):
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    y, groups = (x[:, 0] > 0).long(), torch.arange(64) % 4
    model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
    return model.to(device), x.to(device), y.to(device), groups.to(device)


def sgd(model: nn.Module, strategy=None, **more) -> APFEx:
    return APFEx(torch.optim.SGD(model.parameters(), lr=0.1), strategy, **more)


def train(model, optimizer, batches, steps, scaler=None, clip=False):
    """The loop of the docstring, with or without a scaler."""
    x, y, groups = batches
    for _ in range(steps):
        for rows in (slice(0, 32), slice(32, 64)) if optimizer.accumulate else (slice(0, 64),):
            values = losses(model(x[rows]), y[rows], groups[rows])
            optimizer.backward([value / 2 for value in values], scaler=scaler)
        if scaler is not None and clip:
            scaler.unscale_(optimizer)
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("accumulate", [True, False])
@pytest.mark.parametrize("clip", [True, False])
def test_the_recipe_trains_as_without_a_scaler(device, strategy, accumulate, clip):
    model, *batches = setting(device)
    twin = copy.deepcopy(model)
    scaled = sgd(model, strategy, window=2, accumulate=accumulate)
    plain = sgd(twin, strategy, window=2, accumulate=accumulate)
    scaler = torch.amp.GradScaler(device, init_scale=1024.0, growth_interval=3)
    train(model, scaled, batches, 8, scaler, clip)
    train(twin, plain, batches, 8, None, clip)
    assert scaler.get_scale() == 4096.0
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b)
    assert scaled.history is not None
    assert plain.history is not None
    told, expected = scaled.history.to_frame(), plain.history.to_frame()
    pd.testing.assert_frame_equal(told, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("strategy", [EqualWeights(), ConeProjection()], ids=str)
def test_constraints_bend_a_scaled_direction_alike(strategy):
    model, x, y, groups = setting()
    found = []
    for scaler in (None, torch.amp.GradScaler("cpu", init_scale=1024.0)):
        twin = copy.deepcopy(model)
        optimizer = sgd(twin, strategy, window=1)
        scores = twin(x)
        mean = scores.mean()
        bounds = [Constraint(mean, -9.0), Constraint(-mean, -5.0), Constraint(scores[0, 0], -1.0)]
        optimizer.backward(losses(scores, y, groups), constraints=bounds, scaler=scaler)
        if scaler is not None:
            scaler.unscale_(optimizer)
        gradients = [p.grad for p in twin.parameters()]
        optimizer.step() if scaler is None else scaler.step(optimizer)
        assert optimizer.history is not None
        found.append((gradients, optimizer.history.to_frame()))
    (plain, expected), (scaled, told) = found
    torch.testing.assert_close(scaled, plain, rtol=1e-4, atol=1e-5)
    pd.testing.assert_frame_equal(told, expected, rtol=1e-4, atol=1e-6)
    assert expected["slack"].item() > 1


@pytest.mark.parametrize("accumulate", [True, False])
@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize("strategy", [EqualWeights(), ConeProjection()], ids=str)
def test_an_overflow_is_skipped_and_training_goes_on(accumulate, clip, strategy):
    """A scale of 2**126 overflows in float32, and so may the Gramian at 2**96 and 2**66."""
    model, *batches = setting()
    twin = copy.deepcopy(model)
    optimizer = sgd(model, strategy, scales=[1e-6], window=2, accumulate=accumulate)
    other = sgd(twin, strategy, scales=[1e-6], window=2, accumulate=accumulate)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**126, backoff_factor=2.0**-30)
    before = copy.deepcopy(model.state_dict())
    train(model, optimizer, batches, 1, scaler, clip)
    assert same(model.state_dict(), before)
    assert optimizer.history is None
    assert all(p.grad is None for p in model.parameters())
    train(model, optimizer, batches, 6, scaler, clip)
    assert optimizer.history is not None
    skipped = round((126 - math.log2(scaler.get_scale())) / 30)
    assert optimizer.history.step == 7 - skipped >= 3
    train(twin, other, batches, 7 - skipped, None, clip)
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("unscaled", [True, False])
@pytest.mark.parametrize("clones", [True, False])
def test_scaled_losses_are_refused_when_the_scaler_steps(device, unscaled, clones):
    """By the scales of the first window they would give steps that are too small by the scale."""
    model, x, y, groups = setting(device)
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler(device, init_scale=1024.0)
    values = torch.stack(losses(model(x), y, groups))
    optimizer.backward(scaler.scale(values) if clones else [scaler.scale(v) for v in values])
    if unscaled:
        scaler.unscale_(optimizer)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(RuntimeError, match=r"backward\(losses, scaler=scaler\)"):
        scaler.step(optimizer)
    assert same(model.state_dict(), before)
    assert optimizer.history is None
    optimizer.zero_grad()
    optimizer.backward(losses(model(x), y, groups))
    optimizer.step()  # nothing of the scaler is left


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", ["each", "stacked", "divided", "half"])
def test_losses_that_are_scaled_twice_are_refused_at_once(device, form):
    model, x, y, groups = setting(device)
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler(device, init_scale=1024.0)
    values = losses(model(x), y, groups)
    scaled = {
        "each": [scaler.scale(value) for value in values],
        "stacked": scaler.scale(torch.stack(values)),
        "divided": [scaler.scale(value) / 4 for value in values],
        "half": [scaler.scale(value.reshape(1) / 2) for value in values],
    }[form]
    with pytest.raises(ValueError, match=r"multiplied by 1024\.0, the scale of scaler"):
        optimizer.backward(scaled, scaler=scaler)
    assert optimizer.history is None
    assert all(p.grad is None for p in model.parameters())
    optimizer.backward([value * 3.0 for value in values], scaler=scaler)


def test_a_step_past_the_scaler_is_refused():
    model, x, y, groups = setting()
    optimizer, scaler = sgd(model), torch.amp.GradScaler("cpu")
    optimizer.backward(losses(model(x), y, groups), scaler=scaler)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(RuntimeError, match=r"must be taken by scaler\.step\(optimizer\)"):
        optimizer.step()
    assert same(model.state_dict(), before)
    other = torch.amp.GradScaler("cpu", init_scale=8.0)
    other.scale(torch.zeros(()))
    with pytest.raises(RuntimeError, match=r"of scale 65536\.0, got one of scale 8\.0"):
        other.step(optimizer)
    scaler.step(optimizer)
    assert not same(model.state_dict(), before)


@pytest.mark.parametrize("scaler", [torch.amp.GradScaler("cpu", enabled=False), None])
def test_a_scaler_that_is_disabled_changes_nothing(scaler):
    model, *batches = setting()
    optimizer, twin = sgd(model), copy.deepcopy(model)
    train(model, optimizer, batches, 3, scaler)
    train(twin, sgd(twin), batches, 3)
    assert same(model.state_dict(), twin.state_dict())


@pytest.mark.parametrize("clip", [True, False])
def test_a_scale_of_one_is_a_scale(clip):
    model, *batches = setting()
    optimizer, twin = sgd(model), copy.deepcopy(model)
    train(model, optimizer, batches, 3, torch.amp.GradScaler("cpu", init_scale=1.0), clip)
    train(twin, sgd(twin), batches, 3, None, clip)
    assert same(model.state_dict(), twin.state_dict())


def test_an_overflow_is_left_to_a_scaler_of_scale_one():
    w = torch.ones(2, requires_grad=True)
    optimizer = APFEx(torch.optim.SGD([w], lr=0.1), EqualWeights())
    scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
    optimizer.backward([(w * 0).sqrt().sum()], scaler=scaler)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 0.5
    assert w.tolist() == [1.0, 1.0]


def test_a_plain_loss_may_go_through_the_scaler_too():
    model, x, y, groups = setting()
    twin = copy.deepcopy(model)
    optimizer, scaler = sgd(model), torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(losses(model(x), y, groups)[0]).backward()
    scaler.step(optimizer)
    plain = torch.optim.SGD(twin.parameters(), lr=0.1)
    losses(twin(x), y, groups)[0].backward()
    plain.step()
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_half_precision_parameters_are_refused_as_by_any_optimizer():
    w = torch.ones(2, dtype=torch.float16, requires_grad=True)
    optimizer = APFEx(torch.optim.SGD([w], lr=0.1), EqualWeights())
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    optimizer.backward([w.sum()], scaler=scaler)
    with pytest.raises(ValueError, match="full precision where a scaler is used, got float16"):
        scaler.step(optimizer)
    assert w.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("accumulate", [True, False])
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("strategy", [EqualWeights(), ConeProjection()], ids=str)
def test_parameters_with_the_same_gradient_are_unscaled_and_clipped_once(
    accumulate, power, strategy
):
    """The gradients of summands are one tensor; in place it must not be changed twice."""
    a, b, c = (torch.ones(3, requires_grad=True) for _ in range(3))
    inner = torch.optim.SGD([a, b, c], lr=1.0)
    optimizer = APFEx(inner, strategy, scales="none", accumulate=accumulate)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(2 if accumulate else 1):
        optimizer.backward([(a + b + c).pow(power).sum() / 100], scaler=scaler)
    scaler.step(optimizer)
    scaler.update()
    slope = {1: 1.0, 2: 6.0}[power] / 100 * (2 if accumulate else 1)
    for parameter in (a, b, c):
        torch.testing.assert_close(1 - parameter.detach(), torch.full((3,), slope))
    optimizer.backward([(a + b + c).pow(power).sum()])
    nn.utils.clip_grad_norm_([a, b, c], 0.3)
    for parameter in (a, b, c):
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, torch.full((3,), 0.1), rtol=1e-4, atol=1e-5)


def test_a_scaler_of_another_kind_is_named():
    model, x, y, groups = setting()
    with pytest.raises(TypeError, match=r"scaler must be a torch\.amp\.GradScaler, got float"):
        sgd(model).backward(losses(model(x), y, groups), scaler=1024.0)  # type: ignore[arg-type]


class Looks:
    """Keeps the Gramian it is shown."""

    gramian = torch.zeros(0)

    def decide(self, view):
        self.gramian = view.gramian
        return Decision(torch.full_like(view.losses, 1 / 3))


@pytest.mark.parametrize("accumulate", [True, False])
def test_backward_within_autocast_is_backward_without(accumulate):
    """Gramians in bfloat16 would have three digits."""
    model, x, y, groups = setting()
    found = []
    for within in (True, False):
        strategy, twin = Looks(), copy.deepcopy(model)
        optimizer = sgd(twin, strategy, accumulate=accumulate)
        with torch.autocast("cpu", torch.bfloat16):
            values = losses(twin(x), y, groups)
            if within:
                optimizer.backward(values)
        if not within:
            optimizer.backward(values)
        found.append((strategy.gramian, *[p.grad for p in twin.parameters()]))
    for a, b in zip(*found, strict=True):
        assert torch.equal(a, b)


def test_a_factor_that_happens_to_equal_the_scale_is_fine():
    """As loss / k in accumulation, or a weight of the user's own."""
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    weight = torch.tensor(8.0, requires_grad=True)
    for scaled in (lambda x: x * 8, lambda x: x / 8, lambda x: x * torch.tensor(8.0)):
        model = torch.nn.Linear(2, 1)
        optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.1))
        loss = model(torch.ones(4, 2)).square().mean()
        optimizer.backward([scaled(loss), loss * weight], scaler=scaler)
        scaler.step(optimizer)
        scaler.update()
