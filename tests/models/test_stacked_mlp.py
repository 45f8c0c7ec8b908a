from itertools import pairwise

import pytest
import torch
from torch import nn

from apfex.models import StackedMLP

X = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))


def layered(*widths):
    layers = []
    for fan_in, fan_out in pairwise(widths):
        layers += [nn.ReLU()] if layers else []
        layers.append(nn.Linear(fan_in, fan_out))
    return nn.Sequential(*layers)


@pytest.mark.parametrize("widths", [(3, 1), (3, 4, 1), (3, 5, 4, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_around_a_module_all_start_equal_to_it(widths, dtype):
    module = layered(*widths).to(dtype)
    population = StackedMLP.around(module, 3, n_outputs=widths[-1])
    expected = module(X.to(dtype))
    expected = expected.squeeze(1) if widths[-1] == 1 else expected
    torch.testing.assert_close(population.scores(X.to(dtype)), expected.expand(3, *expected.shape))


def test_the_given_module_is_never_changed():
    module = layered(3, 4, 1)
    before = [parameter.detach().clone() for parameter in module.parameters()]
    population = StackedMLP.around(module, 2, 1)
    for value in population.values():
        value.fill_(9.0)
    torch.testing.assert_close([p.detach() for p in module.parameters()], before)


def test_a_member_goes_round():
    population = StackedMLP(3, 1, (4,), 2, seed=0)
    again = StackedMLP.around(population.member(1), 2, 1)
    torch.testing.assert_close(again.scores(X)[0], population.scores(X)[1])


@pytest.mark.parametrize(
    ("module", "error", "message"),
    [
        (nn.Linear(3, 1), TypeError, r"nn\.Sequential, got Linear; use StackedModules\.around"),
        (nn.Sequential(nn.ReLU()), ValueError, "a Linear at place 0, got ReLU"),
        (nn.Sequential(nn.Linear(3, 1), nn.Tanh()), ValueError, "a ReLU at place 1, got Tanh"),
        (nn.Sequential(nn.Linear(3, 1, bias=False)), ValueError, "a bias at place 0, got none"),
        (nn.Sequential(nn.Linear(3, 1), nn.ReLU()), ValueError, "end with a Linear, got ReLU"),
        (nn.Sequential(), ValueError, "end with a Linear, got no layers"),
        (layered(3, 4, 2), ValueError, "1 outputs, got 2"),
    ],
)
def test_what_differs_is_named(module, error, message):
    with pytest.raises(error, match=message):
        StackedMLP.around(module, 2, 1)
