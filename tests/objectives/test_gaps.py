import pytest
import torch

from apfex.objectives import Aggregate, gaps_of_counts
from apfex.objectives._gaps import soft_gaps
from apfex.rates import RATES, GroupIndex, RateName

NAMES: list[RateName] = list(RATES)
SMOOTH: list[Aggregate] = ["smooth_mean", "smooth_max"]
N = 24


def rows(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("aggregate", SMOOTH)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outsiders", [False, True])
def test_gradients_by_decisions(aggregate, weighted, outsiders):
    codes = torch.arange(N) % 3
    codes[:2] = -1 if outsiders else 0
    index, labels = GroupIndex.of(codes), torch.arange(N) // 3 % 2
    weight = rows(N, seed=1) if weighted else None
    assert torch.autograd.gradcheck(
        lambda s: soft_gaps(NAMES, s, labels, index, weight, aggregate, 1e-3),
        (rows(N).requires_grad_(),),
        eps=1e-7,
        atol=1e-4,
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_by_decisions_and_memberships_of_several_classes(weighted):
    y = torch.arange(N) % 3
    labels = (y == torch.arange(3)[:, None]).long()
    weight = rows(N, seed=1) if weighted else None

    def gaps(s: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        index = GroupIndex(None, h, 4)
        return soft_gaps(NAMES, s, labels, index, weight, "smooth_mean", 1e-3)

    decisions, memberships = rows(3, N).requires_grad_(), rows(N, 4, seed=2).requires_grad_()
    assert gaps(decisions, memberships).shape == (3, len(NAMES))
    assert torch.autograd.gradcheck(gaps, (decisions, memberships), eps=1e-7, atol=1e-4)


def test_classes_with_codes_as_with_memberships():
    y, codes = torch.arange(N) % 3, torch.arange(N) // 2 % 4
    labels = (y == torch.arange(3)[:, None]).long()
    decisions = rows(3, N).requires_grad_()
    gradients = []
    for index in (GroupIndex.of(codes), GroupIndex(None, torch.eye(4).double()[codes], 4)):
        gaps = soft_gaps(NAMES, decisions, labels, index, None, "smooth_mean", 1e-3)
        gradients.append(torch.autograd.grad(gaps.square().sum(), decisions)[0])
    torch.testing.assert_close(*gradients)


def test_members_of_a_population_are_independent():
    codes, labels = torch.arange(N) % 3, torch.arange(N) // 3 % 2
    index, decisions = GroupIndex.of(codes), rows(5, N)
    together = soft_gaps(NAMES, decisions, labels, index, None, "smooth_mean", 1e-3)
    assert together.shape == (5, len(NAMES))
    for member, gaps in zip(decisions, together, strict=True):
        alone = soft_gaps(NAMES, member, labels, index, None, "smooth_mean", 1e-3)
        torch.testing.assert_close(gaps, alone)


def test_a_member_that_diverged_does_not_spoil_the_others():
    masses = torch.rand(3, 4, 4, dtype=torch.float64) + 0.1
    expected, slopes = gaps_of_counts(masses, ("dp", "tpr"), "rms")
    broken = masses.clone()
    broken[1, 2, 0] = torch.nan
    gaps, broken_slopes = gaps_of_counts(broken, ("dp", "tpr"), "rms")
    assert gaps[1].isnan().all()
    torch.testing.assert_close(gaps[[0, 2]], expected[[0, 2]])
    torch.testing.assert_close(broken_slopes[[0, 2]], slopes[[0, 2]])
