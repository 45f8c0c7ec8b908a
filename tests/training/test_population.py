import pytest
import torch
from torch import nn

from apfex.training import StackedMLP, StackedModules


def normed(n_features, n_outputs):
    # No bias before the norm: it has no slope but rounding, which Adam would blow up.
    first = nn.Linear(n_features, 6, bias=False)
    return nn.Sequential(first, nn.BatchNorm1d(6), nn.Linear(6, n_outputs))


POPULATIONS = {
    "mlp": lambda b, c: StackedMLP(3, c, (5,), b, seed=1),
    "deep": lambda b, c: StackedMLP(3, c, (5, 4), b, seed=1),
    "linear": lambda b, c: StackedMLP(3, c, (), b, seed=1),
    "modules": lambda b, c: StackedModules(nn.Linear, 3, c, b, seed=1),
    "batch norm": lambda b, c: StackedModules(normed, 3, c, b, seed=1),
}


@pytest.mark.parametrize("c", [1, 3])
@pytest.mark.parametrize("name", POPULATIONS)
def test_members_say_what_the_population_says(name, c):
    population = POPULATIONS[name](4, c)
    population.train(False)
    x = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
    together = population.scores(x)
    assert together.shape == ((4, 7) if c == 1 else (4, 7, 3))
    for i in range(4):
        alone = population.member(i).eval()(x)
        torch.testing.assert_close(together[i], alone.squeeze(-1) if c == 1 else alone)


@pytest.mark.parametrize("name", POPULATIONS)
def test_a_member_starts_the_same_in_a_population_of_any_size(name):
    x = torch.ones(2, 3)
    small, large = POPULATIONS[name](2, 1), POPULATIONS[name](5, 1)
    for population in (small, large):
        population.train(False)
    torch.testing.assert_close(small.scores(x), large.scores(x)[:2])
    assert not torch.allclose(large.scores(x)[0], large.scores(x)[1])


@pytest.mark.parametrize("name", POPULATIONS)
def test_a_member_shares_nothing_with_the_population(name):
    population = POPULATIONS[name](2, 1)
    member = population.member(0)
    population.train(False)
    before = population.scores(torch.ones(2, 3)).clone()
    with torch.no_grad():
        for parameter in member.parameters():
            parameter.fill_(9.0)
    torch.testing.assert_close(population.scores(torch.ones(2, 3)), before)


def test_starting_draws_nothing_from_the_global_generator():
    state = torch.get_rng_state()
    POPULATIONS["modules"](3, 1)
    POPULATIONS["mlp"](3, 1)
    assert torch.equal(state, torch.get_rng_state())


def test_a_module_may_give_a_flat_column():
    class Flat(nn.Linear):
        def forward(self, input):
            return super().forward(input).squeeze(1)

    assert StackedModules(Flat, 3, 1, 2, seed=0).scores(torch.ones(4, 3)).shape == (2, 4)


def test_a_factory_must_make_modules_of_the_right_shape():
    with pytest.raises(TypeError, match="factory must make"):
        StackedModules(lambda *_: None, 3, 1, 2, seed=0)  # pyright: ignore[reportArgumentType]
    wide = StackedModules(lambda d, c: nn.Linear(d, c + 1), 3, 1, 2, seed=0)
    with pytest.raises(ValueError, match=r"outputs of shape \[4, 1\], got \[4, 2\]"):
        wide.scores(torch.ones(4, 3))
