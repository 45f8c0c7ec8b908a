"""The drop-in optimizer: what it writes, what it refuses, and that it continues bit for bit."""

import pytest
import torch
from tests.optimizer.loops import STRATEGIES, losses
from tests.test_gradients import MODELS, losses_of, make_model
from torch import nn

from apfex.objectives import CrossEntropy, FairnessLoss
from apfex.optimizer import APFEx
from apfex.solvers import min_norm
from apfex.strategies import (
    MGDA,
    AdaptiveSwitch,
    ConeProjection,
    EqualWeights,
    SetSampling,
)


def quadratics(w: torch.Tensor) -> list[torch.Tensor]:
    return [((w - 1) ** 2).sum(), ((w - torch.tensor([1.0, 3.0])) ** 2).sum()]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: type(s).__name__)
def test_the_step_goes_downhill_on_two_quadratics(strategy):
    """The sign: Algorithm 1 as printed climbs."""
    w = torch.tensor([4.0, -2.0], requires_grad=True)
    optimizer = APFEx(torch.optim.SGD([w], lr=0.05), strategy, window=5)
    before = [loss.item() for loss in quadratics(w)]
    for _ in range(20):
        optimizer.backward(quadratics(w))
        optimizer.step()
    after = [loss.item() for loss in quadratics(w)]
    assert all(a < b for a, b in zip(after, before, strict=True))


@pytest.mark.parametrize("outputs", [True, False])
def test_what_goes_into_grad_is_the_weighted_sum_of_scaled_gradients(setting, outputs):
    model, x, y, groups = setting
    scales = torch.tensor([0.5, 2.0, 4.0])
    optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.1), EqualWeights(), scales=scales)
    scores = model(x)
    values = losses(scores, y, groups)
    weighted = (torch.stack(values) / scales).mean()
    expected = torch.autograd.grad(weighted, list(model.parameters()), retain_graph=True)
    optimizer.backward(values, outputs=scores if outputs else None)
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


def test_what_is_told_of_gradients_is_theirs():
    """One of length 0 has no cosine with any other, and makes every point stationary."""
    rows = torch.tensor([[3.0, 0.0], [0.0, 0.0], [0.0, 4.0], [5.0, 5.0]])
    w = torch.zeros(2, requires_grad=True)
    optimizer = APFEx(torch.optim.SGD([w], lr=0.1), MGDA(), window=1, scales="none")
    optimizer.backward(rows @ w)
    optimizer.step()
    assert optimizer.history is not None
    told = optimizer.history.to_frame().iloc[0]
    assert [told[f"norm{k}"] for k in range(4)] == pytest.approx([3, 0, 4, 50**0.5])
    assert told["alignment"] == pytest.approx((0 + 2 * 0.5**0.5) / 3)
    assert told["omega"] == pytest.approx(0.0, abs=1e-6)
    assert told["omega_active"] == pytest.approx(12 / 5)  # of a triangle of sides 3, 4, 5


def test_sampling_goes_on_in_part_as_before():
    rows = torch.tensor([[3.0, 1.0], [-1.0, 4.0]])
    w = torch.zeros(2, requires_grad=True)
    strategy = SetSampling(blend=0.2, hold="step")
    optimizer = APFEx(torch.optim.SGD([w], lr=0.1), strategy, scales="none", trace=True)
    written = []
    for _ in range(4):
        optimizer.backward(rows @ w)
        assert w.grad is not None
        written.append(w.grad.clone())
        optimizer.step()
    assert optimizer.history is not None
    weights = torch.tensor(optimizer.history.to_frame()[["weight0", "weight1"]].to_numpy())
    drawn = weights.float() @ rows
    torch.testing.assert_close(written[0], drawn[0])
    for last, new, now in zip(written, drawn[1:], written[1:], strict=False):
        torch.testing.assert_close(now, 0.2 * new + 0.8 * last)


def test_scales_are_the_largest_sizes_of_the_first_window():
    """Of either sign, at least the floor, fixed from then on; earlier losses follow them."""
    values = torch.tensor(
        [[0.5, -1.0, 0.01], [-3.0, -2.0, 0.02], [9.0, 9.0, 9.0], [-7.0, 8.0, 1.0]]
    )
    w = torch.zeros(1, requires_grad=True)
    optimizer = APFEx(torch.optim.SGD([w], lr=0.1), EqualWeights(), window=2, floor=0.1)
    for taken, row in enumerate(values, start=1):
        optimizer.backward(row + (w - w.detach()))
        optimizer.step()
        assert optimizer.scales is not None
        largest = values[: min(taken, 2)].abs().amax(0).clamp(min=0.1)
        assert optimizer.scales.tolist() == pytest.approx(largest.tolist())
    assert optimizer.history is not None
    expected = (values / values[:2].abs().amax(0).clamp(min=0.1)).unflatten(0, (2, 2)).mean(1)
    torch.testing.assert_close(optimizer.history.losses, expected.double())


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("space", ["parameter", "prediction"])
def test_any_module_trains(kind, space):
    model, x = make_model(kind)
    optimizer = APFEx(torch.optim.Adam(model.parameters(), lr=1e-2), window=4, space=space)
    for _ in range(12):
        scores = model(x)
        optimizer.backward(losses_of(scores), outputs=scores)
        optimizer.step()
    assert all(p.isfinite().all() for p in model.parameters())
    assert optimizer.history is not None
    assert optimizer.history.n_windows == 3


def test_a_layer_that_cannot_be_batched_is_taken_one_by_one():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, gradient):  # type: ignore[override]
            (x,) = ctx.saved_tensors
            # Leaves torch, as custom kernels do.
            return gradient * torch.from_numpy(3 * x.detach().numpy() ** 2 * gradient.numpy() ** 0)

    w = torch.tensor([4.0, -2.0], requires_grad=True)

    def values() -> list[torch.Tensor]:
        cubed = Cube.apply(w)
        return [(cubed - 1).square().sum(), (cubed + 2).square().sum()]

    expected = [torch.autograd.grad(values()[k], w)[0] for k in range(2)]
    optimizer = APFEx(torch.optim.SGD([w], lr=1e-6), MGDA(), scales="none")
    with pytest.warns(UserWarning, match="one by one"):
        optimizer.backward(values())
    stacked = torch.stack(expected).double()
    torch.testing.assert_close(w.grad, (min_norm(stacked @ stacked.T) @ stacked).float())
    optimizer.step()
    optimizer.backward(values())  # no second warning


def test_schedulers_take_either_optimizer(setting):
    model, x, y, groups = setting
    for wrapped in (True, False):
        inner = torch.optim.SGD(model.parameters(), lr=1.0)
        optimizer = APFEx(inner)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer if wrapped else inner, 0.5)
        optimizer.backward(losses(model(x), y, groups))
        optimizer.step()
        schedule.step()
        assert inner.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"] == 0.5


def test_param_groups_and_frozen_parameters(setting):
    model, x, y, groups = setting
    first, last = model[0], model[2]
    optimizer = APFEx(torch.optim.SGD([{"params": first.parameters(), "lr": 0.0}], lr=0.1))
    optimizer.add_param_group({"params": last.parameters(), "lr": 0.1})
    first.bias.requires_grad_(False)
    before = {name: p.clone() for name, p in model.named_parameters()}
    optimizer.backward(losses(model(x), y, groups))
    optimizer.step()
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert moved == {"2.weight", "2.bias"}


def test_gradients_add_to_what_is_there_and_are_cleared_by_step(setting):
    model, x, y, groups = setting
    optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.1), EqualWeights(), scales="none")
    optimizer.backward(losses(model(x), y, groups))
    once = [p.grad.clone() for p in model.parameters()]
    optimizer.zero_grad()
    torch.stack(losses(model(x), y, groups)).mean().backward()
    optimizer.backward(losses(model(x), y, groups))
    for p, gradient in zip(model.parameters(), once, strict=True):
        torch.testing.assert_close(p.grad, 2 * gradient)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    optimizer.step()
    assert all(p.grad is None for p in model.parameters())


def test_leaving_a_stall_near_parity():
    """At parity the smoothed gap has no gradient, so plain MGDA stands still; PCP does not."""
    torch.manual_seed(0)
    x = torch.randn(40, 2, dtype=torch.float64)
    y, groups = (x[:, 0] > 0).long(), torch.arange(40) % 2
    x = torch.cat([x, x])  # every row in both groups: parity at any parameter
    y, groups = torch.cat([y, y]), torch.cat([groups, 1 - groups])

    def train(strategy) -> float:
        model = nn.Linear(2, 1).double()
        nn.init.zeros_(model.weight)
        nn.init.zeros_(model.bias)
        optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.5), strategy, window=5)
        gap = FairnessLoss("dp", task_weight=0.0)
        for _ in range(50):
            scores = model(x)
            optimizer.backward([CrossEntropy()(scores, y), gap(scores, y, groups)])
            optimizer.step()
        return CrossEntropy()(model(x).detach(), y).item()

    start = 0.6931
    assert train(MGDA()) > start - 1e-3
    assert train(ConeProjection()) < start - 0.05
    assert train(AdaptiveSwitch()) < start - 0.05
