"""Losses written out are those of the objectives, in value and in gradient."""

import pytest
import torch

from apfex.objectives import CrossEntropy, DPLoss, FairnessLoss, TPRLoss
from apfex.rates import GroupIndex
from apfex_reproduction.baselines._losses import LossBatch, Losses, LossList, Term

FORMS = {
    Term("dp", 0, "plain"): DPLoss(),
    Term("tpr", 1, "plain"): TPRLoss(),
    Term("dp", 1, "masked"): DPLoss(form="masked"),
    Term("tpr", 0, "masked"): TPRLoss(form="masked"),
    Term("dp", 0, "pairs"): FairnessLoss("dp"),
    Term("tpr", 2, "pairs"): FairnessLoss("tpr"),
    Term("dp", 2, "pairs", "ccr"): FairnessLoss("dp", relaxation="ccr"),
    Term("tpr", 0, "pairs", "identity", 0.0): FairnessLoss(
        "tpr", relaxation="identity", task_weight=0.0
    ),
}


def evaluate(terms, scores, rows):
    """Values [..., m] and slopes [..., m, n], of members that all have the same terms."""
    flat = scores.reshape(1, -1, scores.shape[-1])
    found = LossList([terms] * flat.shape[1]).evaluate(flat, rows)
    shape = (*scores.shape[:-1], 1 + len(terms))
    return Losses(found.values.view(shape), found.slopes.view(*shape, -1))


def batch(weighted, n=80, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = (torch.rand(n, generator=generator) < 0.4).long()
    codes = [torch.randint(k, (n,), generator=generator) for k in (2, 2, 5)]
    weight = torch.rand(n, generator=generator, dtype=torch.float64) + 0.1 if weighted else None
    indexes = [GroupIndex(code, None, k) for code, k in zip(codes, (2, 2, 5), strict=True)]
    scores = 2 * torch.randn(3, 2, n, generator=generator, dtype=torch.float64)
    return scores, codes, LossBatch(y, indexes, weight)


@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_slopes_are_those_of_the_objectives(weighted):
    scores, codes, rows = batch(weighted)
    found = evaluate(list(FORMS), scores, rows)
    assert found.values.shape == (3, 2, 1 + len(FORMS))
    for number, loss in enumerate([CrossEntropy(), *FORMS.values()]):
        attribute = list(FORMS)[number - 1].attribute if number else 0
        for place in ((0, 0), (2, 1)):
            own = scores[place].clone().requires_grad_()
            value = loss(own, rows.y, codes[attribute], rows.sample_weight)
            (slope,) = torch.autograd.grad(value, own)
            torch.testing.assert_close(found.values[place][number], value.detach())
            torch.testing.assert_close(found.slopes[place][number], slope)


def test_a_group_that_is_absent_makes_no_gap():
    scores, _, rows = batch(False)
    alone = LossBatch(rows.y, [GroupIndex(torch.zeros_like(rows.y), None, 2)], None)
    found = evaluate([Term("dp", 0)], scores, alone)
    square = ((torch.sigmoid(scores) - rows.y) ** 2).mean(-1)
    torch.testing.assert_close(found.values[..., 1], 0.1 * square)
    assert found.slopes.isfinite().all()


def test_the_published_form_has_no_gap_and_no_slope_where_nobody_is_selected():
    scores, _, rows = batch(False)
    low = -scores.abs() - 0.1
    masked, plain = (evaluate([Term("dp", 0, form)], low, rows) for form in ("masked", "plain"))
    p = torch.sigmoid(low)
    task = 0.1 * 2 * (p - rows.y) * p * (1 - p) / len(rows.y)
    torch.testing.assert_close(masked.slopes[..., 1, :], task)
    assert not torch.allclose(plain.slopes[..., 1, :], task)


def test_members_have_losses_of_their_own_and_may_look_at_scores_of_their_own():
    scores, _, rows = batch(False)
    terms = [list(FORMS)[0:2], list(FORMS)[3:5], list(FORMS)[5:7]]
    shared = LossList(terms).evaluate(scores[:, 0].unsqueeze(0), rows)
    passes = scores.transpose(0, 1)[[0, 1, 0]]  # [m, b, n]
    apart = LossList(terms, own_scores=True).evaluate(passes, rows)
    for member, own in enumerate(terms):
        first, second = (evaluate(own, scores[member, place], rows) for place in (0, 1))
        torch.testing.assert_close(shared.values[member], first.values)
        torch.testing.assert_close(shared.slopes[member], first.slopes)
        expected = torch.stack([first.values[0], second.values[1], first.values[2]])
        torch.testing.assert_close(apart.values[member], expected)
        torch.testing.assert_close(apart.slopes[member, 1], second.slopes[1])
