"""The stacked network: the paper's start, and gradients as autograd has them."""

import torch

from apfex_reproduction.baselines._networks import Networks, as_module


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


def test_gradients_are_those_of_autograd():
    generator = torch.Generator().manual_seed(0)
    networks = spread(Networks(6, (5, 4), 0.3, n_members=3, seed=1))
    x = torch.randn(20, 6, generator=generator)
    masks = networks.draw_masks(20, 2, generator)
    passed = networks.forward(x, masks)
    members, passes = torch.tensor([0, 2, 2, 1]), torch.tensor([0, 0, 1, 1])
    cotangents = torch.randn(4, 20, generator=generator)
    found = networks.pull_back(passed, cotangents, members, passes)
    for row, (member, place) in enumerate(zip(members, passes, strict=True)):
        weights = [w[member].clone().requires_grad_() for w in networks.weights]
        biases = [b[member].clone().requires_grad_() for b in networks.biases]
        scores = reference(weights, biases, x, [mask[place, 0] for mask in masks])
        torch.testing.assert_close(passed.scores[place, member], scores.detach())
        expected = torch.autograd.grad(scores, [*weights, *biases], cotangents[row])
        flat = torch.cat([part.flatten() for part in expected])
        torch.testing.assert_close(found[row], flat)


def test_a_snapshot_scores_as_the_member_without_dropout():
    networks = spread(Networks(6, (5, 4), 0.3, n_members=2, seed=1))
    x = torch.randn(9, 6)
    module = as_module(networks.snapshot(1), 0.3)
    assert not module.training
    with torch.no_grad():
        torch.testing.assert_close(module(x).squeeze(1), networks.forward(x).scores[0, 1])


def test_dropout_keeps_the_mean_and_its_first_pass_does_not_depend_on_the_others():
    networks = Networks(6, (50, 40), 0.2, n_members=1, seed=1)
    one, two = (
        networks.draw_masks(400, passes, torch.Generator().manual_seed(7)) for passes in (1, 2)
    )
    assert abs(float(one[0].mean()) - 1) < 0.02
    assert float((one[0] == 0).float().mean()) > 0.15
    assert all(torch.equal(a[0], b[0]) for a, b in zip(one, two, strict=True))
    assert not torch.equal(two[0][0], two[0][1])
