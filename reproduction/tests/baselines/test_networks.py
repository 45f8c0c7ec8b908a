"""The stacked network: the paper's start, and gradients as autograd has them."""

import pytest
import torch

from apfex_reproduction.baselines import _networks
from apfex_reproduction.baselines._networks import (
    Inputs,
    Networks,
    as_module,
    draw_masks,
    scores_of,
)


def reference(weights, biases, x, masks):
    """Scores [n] of one member, for autograd."""
    values = x.T
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        values = weight @ values + bias
        if layer < len(weights) - 1:
            values = values.relu() * masks[layer]
    return values.squeeze(0)


def spread(networks):
    """Make members differ."""
    generator = torch.Generator().manual_seed(3)
    networks.values += 0.3 * torch.randn(networks.values.shape, generator=generator)
    return networks


def test_it_starts_as_the_paper_says():
    networks = Networks(400, (60, 25), 0.2, n_members=2, seed=0)
    assert [tuple(w.shape[1:]) for w in networks.weights] == [(60, 400), (25, 60), (1, 25)]
    assert abs(float(networks.weights[0].std()) - 0.02) < 1e-3
    assert all(bool((bias == 0).all()) for bias in networks.biases)
    assert torch.equal(networks.values[0], networks.values[1])


def expected_gradient(networks, member, x, masks, cotangent):
    """By autograd, in the order of the parameters: each unit's weights, then its bias."""
    weights = [w[member].clone().requires_grad_() for w in networks.weights]
    biases = [b[member].clone().requires_grad_() for b in networks.biases]
    scores = reference(weights, biases, x, masks)
    found = torch.autograd.grad(scores, [*weights, *biases], cotangent)
    layers = zip(found[: len(weights)], found[len(weights) :], strict=True)
    return scores.detach(), torch.cat([torch.cat(layer, 1).flatten() for layer in layers])


@pytest.mark.parametrize("own_passes", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("hidden", [(5, 4), (3,)])
def test_gradients_are_those_of_autograd(own_passes, wide, hidden, monkeypatch):
    """Whether losses share a pass, in portions of one member, and without unused inputs."""
    monkeypatch.setattr(_networks, "_AT_ONCE", 1)
    monkeypatch.setattr(_networks, "_WIDE", 3 if wide else 128)
    generator = torch.Generator().manual_seed(0)
    networks = spread(Networks(6, hidden, 0.3, n_members=3, seed=1))
    x = torch.randn(20, 6, generator=generator)
    x[:, 2] = 0.0
    inputs = Inputs.of(x).take(torch.arange(20))
    assert inputs.x.shape[1] == (6 if wide else 7)
    masks = draw_masks(hidden, 0.3, 20, 2 if own_passes else 1, generator)
    passed = networks.forward(inputs, masks)
    cotangents = torch.randn(3, 2, 20, generator=generator)
    found = networks.pull_back(passed, cotangents)
    for member in range(3):
        for loss in range(2):
            place = loss if own_passes else 0
            some = [mask[place] for mask in masks]
            scores, flat = expected_gradient(networks, member, x, some, cotangents[member, loss])
            torch.testing.assert_close(passed.scores[place, member], scores)
            torch.testing.assert_close(found[member, loss], flat)


def test_a_snapshot_scores_as_the_member_without_dropout():
    networks = spread(Networks(6, (5, 4), 0.3, n_members=2, seed=1))
    x = torch.randn(9, 6)
    snapshots = [networks.snapshot(member) for member in range(2)]
    module = as_module(snapshots[1], 0.3)
    assert not module.training
    scores = networks.forward(Inputs.of(x)).scores[0]
    with torch.no_grad():
        torch.testing.assert_close(module(x).squeeze(1), scores[1])
    torch.testing.assert_close(scores_of(snapshots, x).float(), scores)


def test_dropout_keeps_the_mean_and_its_first_pass_does_not_depend_on_the_others():
    one, two = (
        draw_masks((50, 40), 0.2, 400, passes, torch.Generator().manual_seed(7))
        for passes in (1, 2)
    )
    assert abs(float(one[0].mean()) - 1) < 0.02
    assert float((one[0] == 0).float().mean()) > 0.15
    assert all(torch.equal(a[0], b[0]) for a, b in zip(one, two, strict=True))
    assert not torch.equal(two[0][0], two[0][1])
