"""Where members are sent: bounds as they are swept, and how aims are spread."""

import itertools
import math

import pytest
import torch

from apfex.models import Aims, spread_aims
from apfex.rates import RateName

inf = math.inf


def bounds_by_hand(aims: Aims, plain: list[float], done: float):
    """The definition, number by number: the tightest of a share of the plain gaps and a gap."""
    found = []
    for member in range(aims.n_members):
        found.append([inf] * len(plain))
        for given in (aims.relative, aims.absolute):
            start, end = ([inf] * len(plain),) * 2 if given is None else given[:, member].tolist()
            unit = max([plain[j] for j in range(len(plain)) if start[j] < inf], default=0.0)
            for j in range(len(plain)):
                if start[j] < inf:
                    now = (1 - done) * start[j] + done * end[j]
                    now = now * unit if given is aims.relative else now
                    found[-1][j] = min(found[-1][j], now)
    return found


@pytest.mark.parametrize("kinds", ["relative", "absolute", "both", "none"])
def test_bounds_are_swept_and_the_tightest_holds(kinds):
    generator = torch.Generator().manual_seed(0)
    drawn = torch.rand(2, 2, 12, 3, generator=generator)
    drawn[:, :, torch.rand(12, 3, generator=generator) < 0.4] = inf
    drawn[1, :, torch.rand(12, 3, generator=generator) < 0.4] = inf
    relative = drawn[0] if kinds in ("relative", "both") else None
    absolute = drawn[1] if kinds in ("absolute", "both") else None
    aims = Aims(("dp", "tpr", "fpr"), torch.zeros(12, 3), relative, absolute)
    for plain, done in itertools.product(([0.3, 0.1, 0.2], [0.0, 0.4, 0.1]), (0.0, 0.3, 1.0)):
        expected = bounds_by_hand(aims, plain, done)
        torch.testing.assert_close(aims.bounds(torch.tensor(plain), done), torch.tensor(expected))
    by_hand = bounds_by_hand(aims, [0.3, 0.1, 0.2], 0.5)
    has_one = [member for member, row in enumerate(by_hand) if min(row) < inf]
    assert aims.bounded.tolist() == has_one


SPREADS = [
    {"rates": ("dp",), "n_members": 9},
    {"rates": ("dp", "tpr"), "n_members": 26, "n_groupings": 2, "limits": [0.05, inf]},
    {"rates": ("dp", "tpr", "fpr"), "n_members": 30, "criteria": [["dp"], ["tpr", "fpr"]]},
]


def spread(rates, n_groupings=1, criteria=None, **options):
    """Aims, with an axis for the groupings, and the gaps of each criterion."""
    aims = spread_aims(rates, n_groupings=n_groupings, criteria=criteria, **options)
    assert aims.relative is not None
    assert aims.absolute is not None
    parts = [
        given.unflatten(-1, (n_groupings, len(rates)))
        for given in (aims.weights, aims.relative, aims.absolute)
    ]
    about = [[rates.index(rate) for rate in own] for own in criteria or [[r] for r in rates]]
    return aims, *parts, about


@pytest.mark.parametrize("options", SPREADS, ids=str)
def test_aims_are_alike_in_all_groupings_and_either_weights_or_bounds(options):
    aims, weights, relative, absolute, about = spread(**options)
    for part in (weights, relative, absolute):
        assert (part == part[..., :1, :]).all()
    assert (weights[0] == 0).all()
    assert 0 not in aims.bounded
    assert (aims.weights[aims.bounded] == 0).all()
    assert 1 / 4 <= len(aims.bounded) / options["n_members"] <= 2 / 5
    assert aims.weights.max() <= 8
    for own in about:
        assert (weights[..., own] == weights[..., own[:1]]).all()  # shared by its gaps


@pytest.mark.parametrize("options", SPREADS, ids=str)
def test_members_with_bounds_sweep_from_no_gap_to_the_plain_one(options):
    """Of each criterion by itself, and of all at once where there are several."""
    _, _, relative, _, about = spread(**options)
    swept, every = [], list(range(relative.shape[-1]))
    for own in about if len(about) == 1 else [*about, every]:
        others = [j for j in every if j not in own]
        expected = torch.tensor([j in own for j in every])
        mine = (relative[0, :, 0].isfinite() == expected).all(1)
        begin, end = relative[:, mine, 0][..., own]
        n = int(mine.sum())
        swept.append(n)
        expected = torch.arange(n + 1).unsqueeze(1).expand(-1, len(own)) / n
        torch.testing.assert_close(begin, expected[:-1])
        torch.testing.assert_close(end, expected[1:])
        assert relative[:, mine][..., others].isinf().all()
    assert sum(swept) == relative[0].isfinite().any(-1).any(-1).sum()
    assert len(set(swept)) == 1


def test_two_members_sweep_past_the_limits_that_are_asked_for():
    *_, absolute, _ = spread(("dp", "tpr"), n_members=20, limits=[0.1, inf])
    assert absolute[:, :-2].isinf().all()
    shares = [[0.11, 0.065], [0.065, 0.02]]  # of each, at the beginning and at the end
    torch.testing.assert_close(absolute[:, -2:, 0, 0].T, torch.tensor(shares))
    assert absolute[..., 1].isinf().all()


@pytest.mark.parametrize(("n_members", "n_limited"), [(2, 0), (3, 0), (4, 1), (7, 1), (8, 2)])
def test_a_small_population_has_a_member_for_the_limits_from_four_on(n_members, n_limited):
    *_, absolute, _ = spread(("dp", "tpr"), n_members=n_members, limits=[0.1, 0.2])
    limited = absolute[0, :, 0].isfinite().all(1)
    assert limited.tolist() == [False] * (n_members - n_limited) + [True] * n_limited
    if n_limited:  # in turn, over the whole sweep
        torch.testing.assert_close(absolute[0, limited, 0, 0][0], torch.tensor(0.11))
        torch.testing.assert_close(absolute[1, limited, 0, 0][-1], torch.tensor(0.02))


@pytest.mark.parametrize("r", [2, 3])
def test_weights_are_draws_from_the_faces_of_the_simplex(r):
    """By the share of the error and of each criterion: even along a face, alike within it."""
    rates = ("dp", "tpr", "fpr")[:r]
    weights = spread_aims(rates, n_members=600).weights
    n_positive = (weights > 0).sum(1)
    shares = 1 / (1 + weights.double().sum(1))
    for gap in range(r):
        alone = (n_positive == 1) & (weights[:, gap] > 0) & (weights[:, gap] < 8)
        steps = shares[alone].sort().values.diff()
        torch.testing.assert_close(steps, steps[:1].expand_as(steps), rtol=1e-3, atol=1e-5)
    inside = weights[n_positive == r].double()
    assert len(inside) > 100
    parts = torch.cat([torch.ones(len(inside), 1), inside], 1)
    means = (parts / parts.sum(1, keepdim=True)).mean(0)
    torch.testing.assert_close(means, torch.full_like(means, 1 / (1 + r)), rtol=0, atol=0.02)


def test_the_gaps_of_a_criterion_share_its_weight():
    odds: list[list[RateName]] = [["dp"], ["tpr", "fpr"]]
    shared = spread_aims(("dp", "tpr", "fpr"), n_members=30, criteria=odds).weights
    single = spread_aims(("dp", "tpr"), n_members=30).weights
    together = torch.stack([shared[:, 0], shared[:, 1] + shared[:, 2]], 1)
    torch.testing.assert_close(together, single)
