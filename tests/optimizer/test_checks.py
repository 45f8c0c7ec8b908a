"""What the optimizer refuses, and that nothing changes then."""

import pytest
import torch
from tests.optimizer.loops import losses, same, sgd, snapshot
from torch import nn

from apfex.optimizer import APFEx
from apfex.strategies import (
    AdaptiveSwitch,
    AdaptiveWeighting,
    ConeProjection,
    Decision,
    EqualWeights,
)


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


def test_a_foreign_loss_is_refused_at_any_step_and_in_any_form(batch):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    optimizer = sgd(model, AdaptiveWeighting(), window=100)
    foreign = torch.ones((), requires_grad=True)
    for _ in range(2):
        optimizer.backward(losses(model(x), y, groups))
        optimizer.step()
    good = losses(model(x), y, groups)
    for joined in (
        [*good[:2], foreign * 2],
        torch.stack([*good[:2], foreign * 2]),
        torch.cat([good[0][None], good[1][None], foreign[None] * 2]),
    ):
        with pytest.raises(ValueError, match=r"losses\[2\] must depend on the parameters"):
            optimizer.backward(joined)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"strategy": "mgda"}, TypeError, r"strategy must be a strategy as AdaptiveSwitch\(\)"),
        ({"strategy": EqualWeights}, TypeError, "strategy must be a strategy"),
        ({"window": 2.5}, ValueError, "window must be a whole number"),
    ],
)
def test_wrong_settings(arguments, error, message):
    with pytest.raises(error, match=message):
        sgd(nn.Linear(2, 1), **arguments)


def test_a_foreign_loss_is_found_behind_a_division(batch):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    good = losses(model(x), y, groups)
    foreign = torch.ones((), requires_grad=True) * 2
    with pytest.raises(ValueError, match=r"losses\[2\] must depend on the parameters"):
        sgd(model).backward(torch.stack([*good[:2], foreign]) / 4)


class Answers:
    def __init__(self, weights):
        self.weights = weights

    def decide(self, view):  # noqa: ARG002
        return Decision(torch.tensor(self.weights))


@pytest.mark.parametrize("weights", [[1.0], [1.0, float("nan"), 0.0]])
def test_a_strategy_that_answers_nonsense_is_named(batch, weights):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    with pytest.raises(ValueError, match=r"strategy must answer with 3 finite weights.*Answers"):
        sgd(model, Answers(weights)).backward(losses(model(x), y, groups))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"losses": None}, "losses must be a list of scalars"),
        ({"outputs": [torch.ones(2)]}, "outputs must be a tensor, got list"),
    ],
)
def test_arguments_of_another_kind_are_named(batch, arguments, message):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    given = {"losses": losses(model(x), y, groups), **arguments}
    with pytest.raises(TypeError, match=message):
        sgd(model).backward(**given)


def test_lbfgs_is_refused_at_once():
    with pytest.raises(TypeError, match="optimizer must take one gradient per step, got LBFGS"):
        APFEx(torch.optim.LBFGS([torch.ones(2, requires_grad=True)]))


def test_an_optimizer_that_climbs_is_refused():
    inner = torch.optim.Adam(nn.Linear(3, 1).parameters(), lr=0.1, maximize=True)
    with pytest.raises(ValueError, match="optimizer must minimise, got one with maximize=True"):
        APFEx(inner)


def test_complex_parameters_and_outputs_are_refused_and_frozen_ones_are_not(batch):
    x, _, _ = batch
    weight = nn.Parameter(torch.ones(3, dtype=torch.complex64))
    real = nn.Parameter(torch.ones(3))
    optimizer = APFEx(torch.optim.SGD([weight, real], lr=0.1), ConeProjection())
    size = (x.to(weight.dtype) @ weight).abs()
    with pytest.raises(TypeError, match=r"Parameters must be real, got torch.complex64.*\[3\]"):
        optimizer.backward([size.mean(), (x @ real).mean()])
    assert weight.grad is None
    weight.requires_grad_(False)
    turned = (x @ real) * weight[0]
    values = [turned.abs().mean(), turned.real.mean()]
    with pytest.raises(TypeError, match="outputs must be real"):
        optimizer.backward(values, outputs=turned)
    optimizer.backward(values)
    optimizer.step()


@pytest.mark.parametrize("strategy", [ConeProjection(), AdaptiveWeighting()], ids=str)
@pytest.mark.parametrize("outputs", [True, False])
def test_checkpoints_that_hide_their_layers_are_refused(batch, strategy, outputs):
    """A backward pass by the head alone does not run through them, and says nothing."""
    from torch.utils.checkpoint import checkpoint

    x, y, groups = batch
    body, head = nn.Linear(3, 4), nn.Linear(4, 1)
    inner = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
    optimizer = APFEx(inner, strategy)
    for reentrant in (True, False):
        hidden = checkpoint(body, x.clone().requires_grad_(), use_reentrant=reentrant)
        assert isinstance(hidden, torch.Tensor)
        scores = head(hidden).squeeze(1)
        given = {"outputs": scores} if outputs else {}
        if reentrant:
            with pytest.raises(RuntimeError, match="with use_reentrant=True"):
                optimizer.backward(losses(scores, y, groups), **given)
        else:
            optimizer.backward(losses(scores, y, groups), **given)
            assert body.weight.grad is not None
