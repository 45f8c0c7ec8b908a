"""Solvers and strategies keep their promises on random Gramians of every awkward kind.

A Gramian in float64 does not tell an angle of less than about 1e-8 from none, nor a direction that
is shorter than that share of its parts from zero. So promises hold to rounding (``STRICT``) where
no gradient is nearly a sum of others and the direction is longer, and else to ``BLURRED``.
"""

import pytest
import torch
from tests.generators import gramian_of, many_awkward_jacobians
from tests.strategies.test_contract import NEVER_HARMS, ON_SIMPLEX, STRATEGIES, view_of

from apfex.solvers import kkt_residual, min_norm, nonnegative_qp
from apfex.strategies import CAGrad

STRICT, BLURRED = 1e-12, 1e-7
SIZES = list(range(2, 11))
EACH = 100_000 // len(SIZES) + 1
MANY = {11: 4_000, 16: 3_000, 32: 1_500, 64: 500}
"""Objectives beyond ten, and how many draws of them."""
more = pytest.mark.parametrize(
    ("m", "count"),
    [(16, 300), (64, 30)]
    + [pytest.param(m, count, marks=pytest.mark.slow) for m, count in MANY.items()],
)
tier = pytest.mark.parametrize(
    ("m", "count"),
    [(m, 100) for m in (2, 3, 5, 6, 10)]
    + [pytest.param(m, EACH, marks=pytest.mark.slow) for m in SIZES],
)


@tier
def test_min_norm_meets_its_kkt_conditions(m, count):
    gramians = gramian_of(many_awkward_jacobians(m, count))
    weights = min_norm(gramians)
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(count).double(), rtol=0, atol=1e-14)
    assert (kkt_residual(gramians, weights) <= 1).all()


@tier
def test_one_by_one_the_kkt_conditions_hold_as_well(m, count):
    gramians = gramian_of(many_awkward_jacobians(m, count, seed=1))[: min(count, 1000)]
    weights = torch.stack([min_norm(gramian) for gramian in gramians])
    assert (kkt_residual(gramians, weights) <= 1).all()


@more
def test_the_shortest_combination_of_many_objectives(m, count):
    gramians = gramian_of(many_awkward_jacobians(m, count))
    together, one_by_one = gramians, gramians[:: max(1, count // 200)]
    for found, weights in (
        (together, min_norm(together)),
        (one_by_one, torch.stack([min_norm(one) for one in one_by_one])),
    ):
        assert (weights >= 0).all()
        assert (kkt_residual(found, weights) <= 1).all()


@tier
def test_nonnegative_programmes_meet_their_kkt_conditions(m, count):
    """The least of ``|sum u_i g_i - t|`` for unit vectors g, and a t in their span."""
    rows = many_awkward_jacobians(m, count, seed=2)
    rows = torch.nn.functional.normalize(rows, dim=-1, eps=1e-300)
    matrices = gramian_of(rows)
    generator = torch.Generator().manual_seed(m)
    shares = torch.randn(count, m, generator=generator, dtype=torch.float64)
    linears = (matrices @ shares.unsqueeze(-1)).squeeze(-1)
    u = nonnegative_qp(matrices, linears)
    assert (u >= 0).all()
    assert u.isfinite().all()
    slope = (matrices @ u.unsqueeze(-1)).squeeze(-1) - linears
    size = u.sum(-1, keepdim=True) + shares.abs().sum(-1, keepdim=True)
    allowed = torch.where(is_clear(matrices, u), STRICT, BLURRED) * size
    assert (slope >= -allowed).all()
    assert ((u * slope).abs() <= u * allowed).all()


@tier
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_the_contract_of_every_strategy(strategy, m, count):
    if isinstance(strategy, CAGrad):
        count = min(count, 1000)  # it solves 60 problems for each
    view = view_of(many_awkward_jacobians(m, count, seed=3))
    weights = strategy.decide(view).weights
    assert weights.shape == (count, m)
    assert weights.isfinite().all()
    assert (weights >= 0).all()
    if strategy in ON_SIMPLEX:
        torch.testing.assert_close(weights.sum(-1), torch.ones(count).double(), rtol=0, atol=1e-9)
    if strategy in NEVER_HARMS:
        gramian, lengths = view.gramian, view.norms
        products = (gramian @ weights.unsqueeze(-1)).squeeze(-1)
        parts = (weights * lengths).sum(-1, keepdim=True)
        share = torch.where(is_clear(gramian, weights), STRICT, BLURRED)
        assert (products >= -share * lengths * parts - 1e-300).all()


def is_clear(gramian, weights):
    """Whether no gradient is nearly a sum of others, nor the direction nearly zero; [n, 1]."""
    lengths = gramian.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt()
    safe = torch.where(lengths > 0, lengths, 1.0)
    cosines = (gramian / safe.unsqueeze(-1) / safe.unsqueeze(-2)).triu(1)
    parts = (weights * lengths).sum(-1)
    reached = (weights * (gramian @ weights.unsqueeze(-1)).squeeze(-1)).sum(-1)
    eigenvalues = torch.linalg.eigvalsh(cosines + cosines.mT + torch.eye(weights.shape[-1]))
    return ((eigenvalues[:, 0] > 1e-6) & (reached > 1e-8 * parts**2)).unsqueeze(-1)


def test_a_generator_of_awkward_gramians_has_every_kind():
    lengths, cosines = [], []
    for m in SIZES:
        gramians = gramian_of(many_awkward_jacobians(m, 500))
        lengths.append(gramians.diagonal(dim1=-2, dim2=-1).sqrt())
        safe = lengths[-1].clamp(min=1e-300)
        cosines.append((gramians / safe.unsqueeze(-1) / safe.unsqueeze(-2)).triu(1).flatten())
    for every in lengths:
        assert (every == 0).any()
        assert ((every.amax(-1) > 1e15 * every.amin(-1)) & (every.amin(-1) > 0)).any()
        assert ((every < 1e-20) & (every > 0)).any()
    for every in cosines:
        assert (every > 1 - 1e-15).any()
        assert (every < -1 + 1e-15).any()
        assert ((every < -1 + 1e-4) & (every > -1 + 1e-12)).any()
