"""The drop-in optimizer: what it writes, what it refuses, and that it continues bit for bit."""

import copy

import pytest
import torch
from tests.test_gradients import MODELS, losses_of, make_model
from torch import nn

from apfex.constraints import Constraint
from apfex.objectives import CrossEntropy, FairnessLoss
from apfex.optimizer import APFEx
from apfex.solvers import min_norm
from apfex.strategies import (
    MGDA,
    AdaptiveSwitch,
    AdaptiveWeighting,
    ConeProjection,
    EqualWeights,
    SetSampling,
    StepView,
    UPGrad,
)

STRATEGIES = [AdaptiveSwitch(), AdaptiveWeighting(), ConeProjection(), SetSampling(), UPGrad()]


def quadratics(w: torch.Tensor) -> list[torch.Tensor]:
    return [((w - 1) ** 2).sum(), ((w - torch.tensor([1.0, 3.0])) ** 2).sum()]


def snapshot(model: nn.Module, optimizer: APFEx) -> dict:
    return copy.deepcopy(
        {
            "model": model.state_dict(),
            "gradients": [p.grad for p in model.parameters()],
            "optimizer": optimizer.state_dict(),
        }
    )


def same(a, b) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a.nan_to_num(7), b.nan_to_num(7))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


@pytest.fixture
def setting():
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    y = (x[:, 0] + 0.3 * torch.randn(64) > 0).long()
    groups = (x[:, 1] > 0).long() * 2 + (x[:, 2] > 0).long()
    model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
    return model, x, y, groups


def losses(scores: torch.Tensor, y: torch.Tensor, groups: torch.Tensor) -> list[torch.Tensor]:
    return [
        CrossEntropy()(scores, y),
        FairnessLoss("dp")(scores, y, groups),
        FairnessLoss("tpr")(scores, y, groups),
    ]


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


@pytest.mark.parametrize("strategy", [ConeProjection(), MGDA(), UPGrad()], ids=str)
def test_both_spaces_write_what_their_gramian_says(setting, strategy):
    model, x, y, groups = setting
    parameters = list(model.parameters())
    for space in ("parameter", "prediction"):
        optimizer = APFEx(torch.optim.SGD(parameters, lr=0.1), strategy, scales="none", space=space)
        scores = model(x)
        values = torch.stack(losses(scores, y, groups))
        inputs = parameters if space == "parameter" else [scores]
        rows = [torch.autograd.grad(v, inputs, retain_graph=True) for v in values]
        flat = torch.stack([torch.cat([g.flatten() for g in row]) for row in rows]).double()
        view = StepView.of(flat @ flat.T, values.detach().double())
        weights = strategy.decide(view).weights.float()
        expected = torch.autograd.grad(values @ weights, parameters, retain_graph=True)
        optimizer.backward(values, outputs=scores)
        for parameter, gradient in zip(parameters, expected, strict=True):
            torch.testing.assert_close(parameter.grad, gradient, atol=1e-6, rtol=1e-4)
        optimizer.zero_grad()


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


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("outputs", [True, False])
@pytest.mark.parametrize("stop", [1, 5, 11])
def test_a_checkpoint_continues_bit_for_bit(setting, strategy, outputs, stop):
    model, x, y, groups = setting

    def make(model):
        inner = torch.optim.Adam(model.parameters(), lr=1e-2)
        optimizer = APFEx(inner, strategy, window=3, seed=5)
        return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, step_size=4)

    def train(model, optimizer, schedule, steps):
        for _ in range(steps):
            scores = model(x)
            optimizer.backward(losses(scores, y, groups), outputs=scores if outputs else None)
            optimizer.step()
            schedule.step()

    whole, part, fresh = (copy.deepcopy(model) for _ in range(3))
    train(whole, *make(whole), 20)
    optimizer, schedule = make(part)
    train(part, optimizer, schedule, stop)
    saved = copy.deepcopy((part.state_dict(), optimizer.state_dict(), schedule.state_dict()))
    train(part, optimizer, schedule, 1)  # must not reach into what was saved
    restored, restored_schedule = make(fresh)
    fresh.load_state_dict(saved[0])
    restored.load_state_dict(saved[1])
    restored_schedule.load_state_dict(saved[2])
    train(fresh, restored, restored_schedule, 20 - stop)
    for a, b in zip(whole.parameters(), fresh.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_checkpoint_survives_a_file(setting, tmp_path):
    model, x, y, groups = setting
    optimizer = APFEx(torch.optim.Adam(model.parameters()), window=2)
    for _ in range(5):
        optimizer.backward(losses(model(x), y, groups))
        optimizer.step()
    torch.save(optimizer.state_dict(), tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    other = APFEx(torch.optim.Adam(model.parameters()), window=2)
    other.load_state_dict(state)
    assert same(other.state_dict(), optimizer.state_dict())


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


def test_prediction_space_falls_back_when_it_harms(setting):
    model, x, y, groups = setting
    optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.05), MGDA(), window=1)
    share = 0.0
    for _ in range(40):
        share = 0.0 if optimizer.history is None else float(optimizer.history.harmful_share)
        scores = model(x)
        assert (optimizer._compared_outputs(scores) is not None) == (share <= 0.05)
        optimizer.backward(losses(scores, y, groups), outputs=scores)
        optimizer.step()
    assert share > 0.05


def test_harm_is_measured_in_parameter_space():
    """Two outputs of one parameter: u = (1, 0) and (0, 1) agree, the parameter gradients oppose."""
    w = torch.tensor([1.0], requires_grad=True)
    optimizer = APFEx(torch.optim.SGD([w], lr=0.1), EqualWeights(), window=1, scales=[1.0, 3.0])
    outputs = torch.cat([w, -w])
    optimizer.strategy = MGDA()
    optimizer.backward([outputs[0] + 2, outputs[1] + 2], outputs=outputs)
    optimizer.step()
    assert optimizer.history is not None
    assert optimizer.history.harmful_share == 1
    assert optimizer._compared_outputs(outputs) is None


def test_constraints_bend_the_direction(setting):
    model, x, y, groups = setting
    parameters = list(model.parameters())
    optimizer = APFEx(torch.optim.SGD(parameters, lr=0.1), AdaptiveWeighting(), scales="none")
    for outputs in (False, True):
        scores = model(x)
        task = CrossEntropy()(scores, y)
        soft = FairnessLoss("dp", task_weight=0.0)(scores, y, groups)
        gradient = torch.autograd.grad(soft, parameters, retain_graph=True)
        constraint = Constraint(soft, bound=-1.0, gain=0.5)
        optimizer.backward([task], scores if outputs else None, [constraint])
        along = sum((p.grad * g).sum() for p, g in zip(parameters, gradient, strict=True))
        assert along >= constraint.required_descent - 1e-5
        optimizer.step()
    inactive = Constraint(torch.tensor(0.0), bound=1.0)
    optimizer.backward([CrossEntropy()(model(x), y)], None, [inactive])
    optimizer.step()
    assert optimizer.history is not None
    assert optimizer.history.step == 3


def test_contradicting_constraints_are_logged(setting):
    model, x, y, groups = setting
    optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.1), EqualWeights(), window=1)
    scores = model(x)
    mean = scores.mean()
    both = [Constraint(mean, bound=-9.0), Constraint(-mean, bound=-9.0)]
    optimizer.backward(losses(scores, y, groups), constraints=both)
    optimizer.step()
    assert optimizer.history is not None
    assert optimizer.history.to_frame()["slack"].iloc[0] > 1


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


def bad_losses(model, x, y, groups):
    good = losses(model(x), y, groups)
    weight = model[0].weight
    return {
        "nan": ([good[0], good[1] * torch.nan], r"losses\[1\] must be finite, got nan"),
        "infinite": ([good[0] * torch.inf, good[1]], r"losses\[0\] must be finite, got inf"),
        "vector": (
            [good[0], model(x).squeeze(1)],
            r"losses\[1\] must be a scalar, got shape \[64\]",
        ),
        "matrix": (model(x), r"losses must be a list of scalars or a tensor of shape \[m\]"),
        "none": ([], "losses must hold at least one loss"),
        "detached": ([good[0], good[1].detach()], r"losses\[1\] must depend on the model"),
        "elsewhere": (
            [good[0], torch.ones((), requires_grad=True) * 2, good[2]],
            r"losses\[1\] must depend on the parameters of the optimizer",
        ),
        "another number": (good[:2], r"losses must be as many as before \(3\), got 2"),
        "infinite gradient": (
            [*good[:2], (weight * 0).abs().sqrt().sum()],
            "losses must have finite gradients",
        ),
    }


@pytest.mark.parametrize(
    "kind",
    list(
        bad_losses(
            nn.Sequential(nn.Linear(3, 1)),
            torch.randn(64, 3),
            torch.arange(64) % 2,
            torch.arange(64) % 4,
        )
    ),
)
@pytest.mark.parametrize(
    "strategy",
    [AdaptiveSwitch(), ConeProjection(), AdaptiveWeighting()],
    ids=lambda s: type(s).__name__,
)
def test_bad_losses_are_refused_and_nothing_changes(setting, kind, strategy):
    model, x, y, groups = setting
    optimizer = APFEx(torch.optim.Adam(model.parameters()), strategy, window=2)
    for _ in range(2):
        optimizer.backward(losses(model(x), y, groups))
        optimizer.step()
    bad, message = bad_losses(model, x, y, groups)[kind]
    before = snapshot(model, optimizer)
    with pytest.raises(ValueError, match=message):
        optimizer.backward(bad)
    assert same(snapshot(model, optimizer), before)


def test_paths_past_the_outputs_are_an_error_not_a_lost_gradient(setting):
    model, x, y, groups = setting
    optimizer = APFEx(torch.optim.Adam(model.parameters()))
    scores = model(x)
    values = losses(scores, y, groups)
    penalised = [values[0] + model[0].weight.square().sum(), *values[1:]]
    with pytest.raises(
        ValueError, match=r"losses\[0\] must depend on the parameters through outputs"
    ):
        optimizer.backward(penalised, outputs=scores)
    with pytest.raises(ValueError, match=r"losses\[0\] must depend on outputs, but it does not"):
        optimizer.backward([torch.ones((), requires_grad=True) * 2, values[1]], outputs=scores)
    with pytest.raises(ValueError, match="outputs must depend on the model's parameters"):
        optimizer.backward(values, outputs=scores.detach())
    assert optimizer.history is None
    optimizer.backward(values, outputs=scores)


def test_a_loss_of_the_wrong_kind(setting):
    model, *_ = setting
    optimizer = APFEx(torch.optim.Adam(model.parameters()))
    with pytest.raises(TypeError, match=r"losses\[0\] must be a scalar tensor, got float"):
        optimizer.backward([1.0])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"optimizer": "adam"}, TypeError, r"optimizer must be a torch.optim.Optimizer, got str"),
        ({"window": 0}, ValueError, "window must be a whole number of at least 1, got 0"),
        ({"space": "weights"}, ValueError, "space must be one of"),
        ({"scales": "max"}, ValueError, "scales must be 'first_window', 'none' or numbers"),
        ({"scales": [1.0, 0.0]}, ValueError, "scales must be positive and finite"),
        ({"floor": 0}, ValueError, "floor must be positive"),
    ],
)
def test_bad_settings(arguments, error, message):
    inner = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    with pytest.raises(error, match=message):
        APFEx(**{"optimizer": inner, **arguments})


def test_misuse_is_explained(setting):
    model, x, y, groups = setting
    optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.1), space="prediction")
    with pytest.raises(ValueError, match="outputs must be given where space is 'prediction'"):
        optimizer.backward(losses(model(x), y, groups))
    optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.1), scales=[1.0, 2.0])
    with pytest.raises(ValueError, match="scales must have one entry for each of the 3 losses"):
        optimizer.backward(losses(model(x), y, groups))
    with pytest.raises(TypeError, match="closure must be None"):
        optimizer.step(lambda: 0.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"state_dict must come from APFEx\.state_dict"):
        optimizer.load_state_dict(torch.optim.SGD(model.parameters(), lr=0.1).state_dict())
