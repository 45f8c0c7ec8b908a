import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.objectives._pairs import TEMPERATURE, WIDTH, Aggregate, gap_and_slopes
from apfex.relaxations import smooth_abs, smooth_max

AGGREGATES: list[Aggregate] = ["mean", "smooth_mean", "max", "smooth_max", "rms"]


def brute_force(rates: list[torch.Tensor], aggregate: str) -> torch.Tensor:
    """The definition, pair by pair."""
    pairs = [a - b for a, b in itertools.combinations(rates, 2)]
    if aggregate == "mean":
        return torch.stack([pair.abs() for pair in pairs]).mean()
    if aggregate == "smooth_mean":
        return torch.stack([smooth_abs(pair, WIDTH) for pair in pairs]).mean()
    stacked = torch.stack(rates)
    if aggregate == "rms":
        return ((stacked - stacked.mean()) ** 2).mean().sqrt()
    if aggregate == "max":
        return stacked.max() - stacked.min()
    return smooth_max(stacked, TEMPERATURE) + smooth_max(-stacked, TEMPERATURE)


def backends(above: torch.Tensor, below: torch.Tensor) -> list[tuple[Any, Any]]:
    """The same arrays as numpy sees them on a CPU, and as torch does on a GPU."""
    return [(above.numpy(), below.numpy()), (above, below)]


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("k", [2, 3, 7, 32, 33, 60])
@pytest.mark.parametrize("spread", [1.0, 3e-3])
def test_value_and_slopes_are_those_of_the_definition(aggregate, k, spread):
    generator = torch.Generator().manual_seed(k)
    values = 0.4 + spread * (torch.rand(k, generator=generator, dtype=torch.float64) - 0.5)
    below = (1 + torch.rand(k, generator=generator, dtype=torch.float64)).requires_grad_()
    above = (values * below.detach()).requires_grad_()
    expected = brute_force(list(above / below), aggregate)
    slopes = torch.autograd.grad(expected, (above, below))
    for arrays in backends(above.detach(), below.detach()):
        gap, *ours = map(torch.as_tensor, gap_and_slopes(*arrays, aggregate, 1e-3))
        torch.testing.assert_close(gap, expected.detach(), atol=2e-6, rtol=1e-6)
        for mine, theirs in zip(ours, slopes, strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("k", [3, 6, 40])
def test_where_rates_tie_the_slopes_are_subgradients_and_shared(aggregate, k):
    """All forms are convex: no change of the rates ends below the tangent."""
    generator = torch.Generator().manual_seed(k)
    ones = torch.ones(k, dtype=torch.float64)
    for values in (torch.tensor([0.2, 0.8]), torch.tensor([0.1, 0.5, 0.9]), torch.tensor([0.5])):
        tied = values[torch.arange(k) % len(values)].double()
        others = torch.rand(50, k, generator=generator, dtype=torch.float64)
        others[:10] = tied + 0.1 * (tied == tied.max()) * torch.arange(1, 11).view(-1, 1)
        for arrays, elsewhere in zip(
            backends(tied, ones), backends(others, ones.expand(50, k)), strict=True
        ):
            gap, slope, _ = map(torch.as_tensor, gap_and_slopes(*arrays, aggregate, 1e-3))
            reached = torch.as_tensor(gap_and_slopes(*elsewhere, aggregate, 1e-3)[0])
            assert (reached >= gap + (others - tied) @ slope - 1e-5).all()
            if aggregate != "mean":
                for rate in values:
                    assert slope[tied == rate.double()].std(correction=0) < 1e-9


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("k", [6, 50])
def test_groups_below_the_mass_are_left_out(aggregate, k):
    rates = torch.rand(k, dtype=torch.float64)
    known = torch.arange(k) % 3 != 0
    below = torch.where(known, 1.0, 1e-4).double()
    for all_of_them, kept in zip(
        backends(rates * below, below), backends(rates[known], below[known]), strict=True
    ):
        gap, by_above, by_below = gap_and_slopes(*all_of_them, aggregate, 1e-3)
        expected, *slopes = gap_and_slopes(*kept, aggregate, 1e-3)
        assert float(gap) == pytest.approx(float(expected))
        for mine, theirs in zip((by_above, by_below), slopes, strict=True):
            torch.testing.assert_close(torch.as_tensor(mine)[known], torch.as_tensor(theirs))
            assert (torch.as_tensor(mine)[~known] == 0).all()


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("known", [0, 1])
@pytest.mark.parametrize("k", [3, 40])
def test_without_a_pair_the_gap_is_not_estimable_and_its_slopes_are_zero(aggregate, known, k):
    below = (torch.arange(k) < known).double()
    for arrays in backends(torch.rand(k).double() * below, below):
        gap, *slopes = gap_and_slopes(*arrays, aggregate, 1e-3)
        assert float(gap) == torch.inf
        assert all((torch.as_tensor(part) == 0).all() for part in slopes)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("k", [4, 40])
def test_leading_axes_are_independent(aggregate, k):
    rates, below = torch.rand(2, 3, k, dtype=torch.float64), torch.ones(2, 3, k).double()
    for arrays in backends(rates, below):
        together = [torch.as_tensor(part) for part in gap_and_slopes(*arrays, aggregate, 1e-3)]
        for i, j in itertools.product(range(2), range(3)):
            alone = gap_and_slopes(arrays[0][i, j], arrays[1][i, j], aggregate, 1e-3)
            for whole, part in zip(together, alone, strict=True):
                torch.testing.assert_close(whole[i, j], torch.as_tensor(part))


@given(st.floats(0, 1), st.integers(2, 50))
@settings(deadline=None)
def test_parity_has_no_gap(rate, k):
    rates = torch.full((k,), rate, dtype=torch.float64)
    for aggregate in AGGREGATES:
        gap, *_ = gap_and_slopes(rates.numpy(), torch.ones(k).double().numpy(), aggregate, 1e-3)
        assert abs(float(gap)) <= 1e-9
