import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.objectives import pairwise_gap
from apfex.objectives._pairs import TEMPERATURE, WIDTH, Aggregate
from apfex.rates import RateSums
from apfex.relaxations import smooth_abs, smooth_max

AGGREGATES: list[Aggregate] = ["mean", "smooth_mean", "max", "smooth_max"]


def brute_force(rates: list[torch.Tensor], aggregate: str) -> torch.Tensor:
    """The definition, pair by pair."""
    pairs = [a - b for a, b in itertools.combinations(rates, 2)]
    if aggregate == "mean":
        return torch.stack([pair.abs() for pair in pairs]).mean()
    if aggregate == "smooth_mean":
        return torch.stack([smooth_abs(pair, WIDTH) for pair in pairs]).mean()
    stacked = torch.stack(rates)
    if aggregate == "max":
        return stacked.max() - stacked.min()
    return smooth_max(stacked, TEMPERATURE) + smooth_max(-stacked, TEMPERATURE)


def sums_of(rates: torch.Tensor, known: torch.Tensor | None = None) -> RateSums:
    below = torch.full_like(rates, 10.0)
    if known is not None:
        below = torch.where(known, below, 0.0)
    return RateSums(rates * below, below)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("k", [2, 3, 7, 32, 33, 60])
@pytest.mark.parametrize("spread", [1.0, 3e-3])
def test_value_and_gradient_are_those_of_the_definition(aggregate, k, spread):
    generator = torch.Generator().manual_seed(k)
    values = 0.4 + spread * (torch.rand(k, generator=generator, dtype=torch.float64) - 0.5)
    rates = values.clone().requires_grad_()
    expected = brute_force(list(rates), aggregate)
    (slope,) = torch.autograd.grad(expected, rates)
    ours = values.clone().requires_grad_()
    gap = pairwise_gap(sums_of(ours), aggregate)
    (our_slope,) = torch.autograd.grad(gap, ours)
    torch.testing.assert_close(gap, expected)
    torch.testing.assert_close(our_slope, slope, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("k", [6, 50])
def test_groups_below_the_mass_are_left_out(aggregate, k):
    rates = torch.rand(k, dtype=torch.float64)
    known = torch.arange(k) % 3 != 0
    expected = pairwise_gap(sums_of(rates[known]), aggregate)
    torch.testing.assert_close(pairwise_gap(sums_of(rates, known), aggregate), expected)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("known", [[False, False, False], [True, False, False]])
def test_without_a_pair_the_gap_and_its_gradient_are_zero(aggregate, known):
    rates = torch.rand(3, dtype=torch.float64, requires_grad=True)
    gap = pairwise_gap(sums_of(rates, torch.tensor(known)), aggregate)
    (slope,) = torch.autograd.grad(gap, rates)
    assert gap == 0
    assert (slope == 0).all()


@pytest.mark.parametrize("aggregate", ["smooth_mean", "smooth_max"])
@pytest.mark.parametrize("k", [4, 40])
def test_gradients_reach_numerators_and_denominators(aggregate, k):
    above = torch.rand(k, dtype=torch.float64, requires_grad=True)
    below = (1 + torch.rand(k, dtype=torch.float64)).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda a, b: pairwise_gap(RateSums(a, b), aggregate), (above, below), eps=1e-7, atol=1e-4
    )


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_leading_axes_are_independent(aggregate):
    rates = torch.rand(2, 3, 40, dtype=torch.float64)
    gaps = pairwise_gap(sums_of(rates), aggregate)
    for i, j in itertools.product(range(2), range(3)):
        torch.testing.assert_close(gaps[i, j], pairwise_gap(sums_of(rates[i, j]), aggregate))


@given(st.floats(0, 1), st.integers(2, 50))
@settings(deadline=None)
def test_parity_has_no_gap(rate, k):
    for aggregate in AGGREGATES:
        gap = pairwise_gap(sums_of(torch.full((k,), rate, dtype=torch.float64)), aggregate)
        assert abs(gap.item()) <= 1e-9
