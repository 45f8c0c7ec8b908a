"""What every population promises."""

import copy

import pytest
import torch
from tests.models.populations import POPULATIONS

X = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))


def scores(population, x=X):
    population.train(False)
    with torch.no_grad():
        return population.scores(x).clone()


@pytest.mark.parametrize("c", [1, 3])
@pytest.mark.parametrize("name", POPULATIONS)
def test_members_say_what_the_population_says(name, c):
    population = POPULATIONS[name](4, c)
    together = scores(population)
    assert together.shape == ((4, 7) if c == 1 else (4, 7, 3))
    for i in range(4):
        alone = population.member(i).eval()(X)
        torch.testing.assert_close(together[i], alone.squeeze(-1) if c == 1 else alone)


@pytest.mark.parametrize("name", POPULATIONS)
def test_a_member_starts_the_same_in_a_population_of_any_size(name):
    small, large = (scores(POPULATIONS[name](b, 1)) for b in (2, 5))
    torch.testing.assert_close(small, large[:2])
    assert not torch.allclose(large[0], large[1])


@pytest.mark.parametrize("name", POPULATIONS)
def test_a_member_shares_nothing_with_the_population(name):
    population = POPULATIONS[name](2, 1)
    before = scores(population)
    with torch.no_grad():
        for parameter in population.member(0).parameters():
            parameter.fill_(9.0)
    torch.testing.assert_close(scores(population), before)


@pytest.mark.parametrize("name", POPULATIONS)
def test_some_of_the_members_have_values_of_their_own(name):
    population = POPULATIONS[name](4, 1)
    before = scores(population)
    some = population.of_members(torch.tensor([3, 1]))
    assert some.n_members == 2
    torch.testing.assert_close(scores(some), before[[3, 1]])
    for value in some.values():
        value.fill_(9)
    torch.testing.assert_close(scores(population), before)


@pytest.mark.parametrize("name", POPULATIONS)
def test_a_copy_of_a_population_is_another(name):
    population = POPULATIONS[name](2, 1)
    before, copied = scores(population), copy.deepcopy(population)
    for value in population.values():
        value.fill_(9)
    torch.testing.assert_close(scores(copied), before)


@pytest.mark.parametrize("name", POPULATIONS)
def test_values_have_a_member_axis_and_say_all_that_changes(name):
    population, other = POPULATIONS[name](3, 1), POPULATIONS[name](3, 1)
    population.train()
    population.scores(X)  # statistics of batch norm
    for parameter in population.parameters():
        parameter.data += 1
    for new, old in zip(population.values(), other.values(), strict=True):
        assert new.shape[0] == 3
        old.copy_(new)
    torch.testing.assert_close(scores(other), scores(population))


@pytest.mark.parametrize("name", POPULATIONS)
def test_starting_draws_nothing_from_the_global_generator(name):
    state = torch.get_rng_state()
    POPULATIONS[name](3, 1)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("name", POPULATIONS)
def test_no_rows_have_no_scores(name):
    assert scores(POPULATIONS[name](2, 1), X[:0]).shape == (2, 0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", [name for name in POPULATIONS if name != "secretive"])
def test_a_device_gives_the_same_scores(name):
    population = POPULATIONS[name](3, 1)
    before = scores(population)
    population.to(torch.device("cuda"))
    torch.testing.assert_close(scores(population, X.cuda()).cpu(), before, rtol=1e-4, atol=1e-4)
    assert next(population.member(0).parameters()).is_cuda
