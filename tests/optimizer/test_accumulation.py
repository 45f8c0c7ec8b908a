"""Micro-batches: several calls of ``backward`` are one step of the summed losses."""

import copy

import pytest
import torch
from tests.optimizer.loops import STRATEGIES, losses, same, snapshot
from torch import nn

from apfex.constraints import Constraint
from apfex.objectives import CrossEntropy
from apfex.optimizer import APFEx
from apfex.strategies import (
    MGDA,
    AdaptiveWeighting,
    CAGrad,
    ConeProjection,
    EqualWeights,
    PCGrad,
    SetSampling,
    SmoothTchebycheff,
)

QUARTERS = [slice(16 * part, 16 * (part + 1)) for part in range(4)]
ALL_STRATEGIES = [
    *STRATEGIES,
    MGDA(),
    PCGrad(),
    CAGrad(),
    SmoothTchebycheff(),
    EqualWeights(),
    SetSampling(hold="step"),
]


@pytest.fixture
def setting():
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    y = (x[:, 0] + 0.3 * torch.randn(64) > 0).long()
    groups = (x[:, 1] > 0).long() * 2 + (x[:, 2] > 0).long()
    model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1)).double()
    return model, x.double(), y, groups


def sgd(model: nn.Module, strategy=None, **more) -> APFEx:
    return APFEx(torch.optim.SGD(model.parameters(), lr=0.1), strategy, **more)


def gradients(model: nn.Module) -> torch.Tensor:
    grads = [p.grad for p in model.parameters()]
    return torch.cat([torch.zeros(0) if g is None else g.flatten() for g in grads])


@pytest.mark.parametrize("strategy", ALL_STRATEGIES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("outputs", [True, False])
def test_micro_batches_are_one_batch_of_the_summed_losses(setting, strategy, outputs):
    """The oracle is one graph with all rows; the same losses, gradients, steps and windows."""
    model, x, y, groups = setting
    whole_model = copy.deepcopy(model)
    parts = sgd(model, strategy, accumulate=True, window=2, trace=True)
    whole = sgd(whole_model, strategy, window=2, trace=True)
    for _ in range(5):
        for rows in QUARTERS:
            scores = model(x[rows])
            values = torch.stack(losses(scores, y[rows], groups[rows])) / 4
            parts.backward(values, outputs=scores if outputs else None)
        scores = whole_model(x)
        values = [torch.stack(losses(scores[r], y[r], groups[r])) / 4 for r in QUARTERS]
        whole.backward(torch.stack(values).sum(0), outputs=scores if outputs else None)
        torch.testing.assert_close(gradients(model), gradients(whole_model), atol=1e-9, rtol=1e-7)
        parts.step()
        whole.step()
    assert parts.history is not None
    assert whole.history is not None
    assert parts.history.n_windows == whole.history.n_windows == 2
    ours, theirs = parts.history.to_frame(), whole.history.to_frame()
    assert list(ours["strategy"]) == list(theirs["strategy"])
    for column in ours.columns.drop("strategy"):
        expected = theirs[column].to_numpy(dtype=float)
        assert ours[column].to_numpy(dtype=float) == pytest.approx(
            expected, abs=1e-9, rel=1e-6, nan_ok=True
        ), column


@pytest.mark.parametrize("scales", ["first_window", "none", [0.5]])
def test_quarters_of_a_mean_loss_have_the_gradient_of_the_batch(setting, scales):
    model, x, y, _ = setting
    twin = copy.deepcopy(model)
    whole = sgd(twin, AdaptiveWeighting(), scales=scales)
    whole.backward([CrossEntropy()(twin(x), y)])
    parts = sgd(model, AdaptiveWeighting(), accumulate=True, scales=scales)
    for rows in QUARTERS:
        parts.backward([CrossEntropy()(model(x[rows]), y[rows]) / 4])
    torch.testing.assert_close(gradients(model), gradients(twin))


def test_by_the_scales_of_the_first_window_the_division_may_be_left_out(setting):
    model, x, y, groups = setting
    found = []
    for divisor in (1, 4):
        twin = copy.deepcopy(model)
        optimizer = sgd(twin, accumulate=True)
        for rows in QUARTERS:
            values = losses(twin(x[rows]), y[rows], groups[rows])
            optimizer.backward([value / divisor for value in values])
        found.append(gradients(twin))
    torch.testing.assert_close(*found)


def test_windows_count_steps(setting):
    model, x, y, groups = setting
    optimizer = sgd(model, SetSampling(), accumulate=True, window=3)
    for step in range(6):
        for rows in QUARTERS[: 1 + step % 4]:  # also where the last step of an epoch is short
            optimizer.backward(losses(model(x[rows]), y[rows], groups[rows]))
        optimizer.step()
        assert optimizer.history is not None
        assert optimizer.history.step == step + 1
    assert optimizer.history is not None
    assert optimizer.history.n_windows == 2


@pytest.mark.parametrize("strategy", [AdaptiveWeighting(), ConeProjection()], ids=str)
def test_a_second_call_without_a_step_is_refused(setting, strategy):
    model, x, y, groups = setting
    optimizer = sgd(model, strategy)
    optimizer.backward(losses(model(x), y, groups))
    before = snapshot(model, optimizer)
    with pytest.raises(RuntimeError, match=r"no step was taken.*accumulate=True.*zero_grad\(\)"):
        optimizer.backward(losses(model(x), y, groups))
    assert same(snapshot(model, optimizer), before)
    optimizer.step()
    optimizer.backward(losses(model(x), y, groups))


CLEARED = {
    "optimizer": lambda _, optimizer: optimizer.zero_grad(),
    "optimizer, to zeros": lambda _, optimizer: optimizer.zero_grad(set_to_none=False),
    "model": lambda model, _: model.zero_grad(),
    "model, to zeros": lambda model, _: model.zero_grad(set_to_none=False),
    "wrapped optimizer": lambda _, optimizer: optimizer.inner.zero_grad(),
}


@pytest.mark.parametrize("way", CLEARED)
@pytest.mark.parametrize("accumulate", [True, False])
def test_a_batch_that_is_skipped_does_not_count(setting, way, accumulate):
    model, x, y, groups = setting
    twin = copy.deepcopy(model)
    optimizer = sgd(model, SetSampling(), accumulate=accumulate, window=2, trace=True)
    other = sgd(twin, SetSampling(), accumulate=accumulate, window=2, trace=True)
    for _ in range(3):
        optimizer.backward([100 * value for value in losses(model(x), y, groups)])
        CLEARED[way](model, optimizer)
        for m, o in ((model, optimizer), (twin, other)):
            o.backward(losses(m(x), y, groups))
            o.step()
    assert same(model.state_dict(), twin.state_dict())
    assert same(optimizer.state_dict(), other.state_dict())


def test_a_plain_loss_may_follow_a_batch_that_is_skipped(setting):
    model, x, y, groups = setting
    optimizer = sgd(model)
    optimizer.backward(losses(model(x), y, groups))
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.backward(losses(model(x), y, groups))
    optimizer.step()
    assert optimizer.history is not None
    assert optimizer.history.step == 1


def test_steps_of_the_wrapped_optimizer_count(setting):
    model, x, y, groups = setting
    model, optimizer = copy.deepcopy((model, sgd(model, window=2)))  # a copy watches its own
    for _ in range(4):
        optimizer.backward(losses(model(x), y, groups))
        optimizer.inner.step()
        optimizer.inner.zero_grad()
    assert optimizer.history is not None
    assert optimizer.history.n_windows == 2


def test_gradients_that_were_there_before_stay(setting):
    model, x, y, groups = setting
    twin = copy.deepcopy(model)
    optimizer, plain = sgd(model, MGDA(), accumulate=True), sgd(twin, MGDA(), accumulate=True)
    model(x).mean().backward()
    foreign = gradients(model).clone()
    for rows in QUARTERS:
        for m, o in ((model, optimizer), (twin, plain)):
            o.backward(losses(m(x[rows]), y[rows], groups[rows]))
    torch.testing.assert_close(gradients(model), gradients(twin) + foreign)


def bad_calls(model, x, y, groups):
    values = losses(model(x), y, groups)
    scores = model(x)
    return {
        "another number": ({"losses": values[:2]}, ValueError, r"as many as before \(3\), got 2"),
        "outputs": (
            {"losses": losses(scores, y, groups), "outputs": scores},
            ValueError,
            "outputs must be given for all micro-batches",
        ),
        "scaler": (
            {"losses": values, "scaler": torch.amp.GradScaler("cpu")},
            ValueError,
            "scaler must keep its scale during a step, got 65536.0 after None",
        ),
        "constraints": (
            {"losses": values, "constraints": Constraint(scores.mean(), -9.0)},
            ValueError,
            "constraints must be None where accumulate is True",
        ),
        "nan": ({"losses": [values[0] * torch.nan, *values[1:]]}, ValueError, "must be finite"),
        "infinite gradient": (
            {"losses": [*values[:2], (model[0].weight * 0).abs().sqrt().sum()]},
            ValueError,
            "losses must have finite gradients",
        ),
    }


@pytest.mark.parametrize(
    "kind", ["another number", "outputs", "scaler", "constraints", "nan", "infinite gradient"]
)
def test_a_bad_micro_batch_is_refused_and_changes_nothing(setting, kind):
    model, x, y, groups = setting
    twin = copy.deepcopy(model)
    optimizer, other = sgd(model, MGDA(), accumulate=True), sgd(twin, MGDA(), accumulate=True)
    optimizer.backward(losses(model(x), y, groups))
    other.backward(losses(twin(x), y, groups))
    before = snapshot(model, optimizer)
    arguments, error, message = bad_calls(model, x, y, groups)[kind]
    with pytest.raises(error, match=message):
        optimizer.backward(**arguments)
    assert same(snapshot(model, optimizer), before)
    for m, o in ((model, optimizer), (twin, other)):
        o.backward(losses(m(x), y, groups))
    assert torch.equal(gradients(model), gradients(twin))


def test_gradients_that_are_changed_between_micro_batches_are_refused(setting):
    model, x, y, groups = setting
    optimizer = sgd(model, accumulate=True)
    optimizer.backward(losses(model(x), y, groups))
    nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    with pytest.raises(RuntimeError, match="left alone until the last micro-batch"):
        optimizer.backward(losses(model(x), y, groups))


@pytest.mark.parametrize("accumulate", [True, False])
def test_a_checkpoint_within_a_step_continues_from_the_last_one(setting, accumulate):
    model, x, y, groups = setting

    def make(model) -> APFEx:
        adam = torch.optim.Adam(model.parameters(), lr=1e-2)
        return APFEx(adam, SetSampling(), window=2, accumulate=accumulate)

    def train(model, optimizer, steps):
        for _ in range(steps):
            for rows in QUARTERS if accumulate else QUARTERS[:1]:
                optimizer.backward(losses(model(x[rows]), y[rows], groups[rows]))
            optimizer.step()

    optimizer, fresh = make(model), copy.deepcopy(model)
    train(model, optimizer, 3)
    optimizer.backward(losses(model(x[:16]), y[:16], groups[:16]))
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    optimizer.zero_grad()
    train(model, optimizer, 3)
    restored = make(fresh)
    fresh.load_state_dict(saved[0])
    with pytest.warns(UserWarning, match="after 1 calls of backward since the last step"):
        restored.load_state_dict(saved[1])
    train(fresh, restored, 3)
    assert same(fresh.state_dict(), model.state_dict())
    assert same(restored.state_dict(), optimizer.state_dict())


def test_accumulate_must_be_a_truth_value(setting):
    with pytest.raises(TypeError, match="accumulate must be True or False, got 4"):
        sgd(setting[0], accumulate=4)
