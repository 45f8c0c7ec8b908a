import pytest
import torch
from tests.models.populations import MODULES, TOGETHER, Flat, Tied, dropping, normed
from torch import nn

from apfex.models import StackedModules

X = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))


def gradients(population, x, together):
    population._is_stacked = {True: together}
    torch.manual_seed(5)
    scores = population.scores(x)
    (scores * torch.arange(1.0, 1 + scores.numel()).view_as(scores)).sum().backward()
    return scores.detach(), [parameter.grad for parameter in population.parameters()]


@pytest.mark.parametrize("c", [1, 3])
@pytest.mark.parametrize("name", [*TOGETHER, "convolution"])
def test_together_equals_one_by_one(name, c):
    """Scores and gradients, in training: dropout draws the same numbers both ways."""
    found, expected = (
        gradients(StackedModules(MODULES[name], 3, c, 4, seed=0), X, together)
        for together in (True, False)
    )
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", MODULES)
def test_stacked_where_that_is_possible(name):
    population = StackedModules(MODULES[name], 3, 1, 3, seed=0)
    population.train()
    population.scores(X)
    assert population._is_stacked == {True: name in TOGETHER}


@pytest.mark.parametrize("name", MODULES)
def test_in_training_a_population_does_what_its_modules_do(name):
    """One step of plain modules is the oracle, for scores and for what they remember."""
    population = StackedModules(MODULES[name], 3, 1, 3, seed=0)
    population.train()
    modules = [population.member(i) for i in range(3)]
    for _ in range(2):
        torch.manual_seed(3)
        found = population.scores(X)
        for i, module in enumerate(modules):
            torch.manual_seed(3)
            torch.testing.assert_close(found[i], module(X).squeeze(1))
    for i, module in enumerate(modules):
        torch.testing.assert_close(population.member(i).state_dict(), module.state_dict())


def test_the_first_call_leaves_generator_and_statistics_alone():
    for factory in (dropping, normed):
        found = []
        for decided in ({}, {True: factory is dropping}):
            population = StackedModules(factory, 3, 1, 2, seed=0)
            population._is_stacked = dict(decided)
            population.train()
            torch.manual_seed(0)
            population.scores(X)
            found.append([torch.rand(1), *population.values()])
        torch.testing.assert_close(*found)


@pytest.mark.parametrize("together", [False, True])
def test_tied_parameters_stay_tied(together):
    population = StackedModules(Tied, 3, 1, 2, seed=0)
    assert len(population.parameters()) == 3
    gradients(population, X, together)
    with torch.no_grad():
        for parameter in population.parameters():
            assert parameter.grad is not None
            parameter -= 0.1 * parameter.grad
    member = population.member(1)
    assert isinstance(member, Tied)
    assert member.encode.weight is member.decode.weight
    torch.testing.assert_close(population.scores(X)[1], member(X).squeeze(1))


def test_frozen_parameters_stay_frozen():
    def half_frozen(d, c):
        module = nn.Sequential(nn.Linear(d, 4), nn.Linear(4, c))
        module[0].requires_grad_(False)
        return module

    population = StackedModules(half_frozen, 3, 1, 2, seed=0)
    assert [list(p.shape) for p in population.parameters()] == [[2, 1, 4], [2, 1]]
    learns = [parameter.requires_grad for parameter in population.member(0).parameters()]
    assert learns == [False, False, True, True]
    some = population.of_members(torch.tensor([1]))
    assert len(some.parameters()) == 2


@pytest.mark.parametrize("together", [False, True])
def test_a_module_may_give_a_flat_column(together):
    population = StackedModules(Flat, 3, 1, 2, seed=0)
    population._is_stacked = {True: together}
    assert population.scores(torch.ones(4, 3)).shape == (2, 4)


def test_what_a_factory_makes_is_left_as_it_is():
    made = nn.Linear(3, 1)
    before = made.weight.detach().clone()
    population = StackedModules(lambda *_: made, 3, 1, 2, seed=0)
    for value in population.values():
        value.fill_(9.0)
    assert torch.equal(made.weight, before)


@pytest.mark.parametrize("name", MODULES)
def test_copies_of_a_module_all_start_equal_to_it(name):
    module = MODULES[name](3, 1).eval()
    before = {key: value.clone() for key, value in module.state_dict().items()}
    population = StackedModules.copies_of(module, 3, n_outputs=1)
    torch.testing.assert_close(population.scores(X), module(X).squeeze(1).expand(3, -1))
    population.train()
    population.scores(X).sum().backward()
    for value in population.values():
        value.fill_(9)
    assert not module.training
    assert all(torch.equal(module.state_dict()[key], value) for key, value in before.items())


def test_modules_of_another_kind_or_shape_are_refused():
    with pytest.raises(TypeError, match="factory must make"):
        StackedModules(lambda *_: None, 3, 1, 2, seed=0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"module must be an nn\.Module, got str"):
        StackedModules.copies_of("net", 2, 1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="must have a parameter that requires a gradient"):
        StackedModules.copies_of(nn.ReLU(), 2, 1)
    widths = iter([4, 5])
    with pytest.raises(ValueError, match=r"modules of one shape, got .*\(4, 3\).*\(5, 3\)"):
        StackedModules(lambda d, _: nn.Linear(d, next(widths)), 3, 1, 2, seed=0)


@pytest.mark.parametrize("together", [False, True])
def test_outputs_of_another_shape_are_refused(together):
    wide = StackedModules.copies_of(nn.Linear(3, 2), 2, n_outputs=1)
    wide._is_stacked = {True: together}
    with pytest.raises(ValueError, match=r"outputs of shape \[4, 1\], got \[4, 2\]"):
        wide.scores(torch.ones(4, 3))


def test_an_error_within_a_module_is_the_modules_own():
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        StackedModules.copies_of(nn.Linear(5, 1), 2, 1).scores(X)
