"""Strategies that boost trees: their weights, the bounds, and what comes of them."""

from dataclasses import dataclass, replace

import pytest
import torch
from tests.models.rows import QUICK, make_rows

from apfex.constraints import Constraint
from apfex.models import StrategyGradient, Trees, boost_members
from apfex.objectives import CrossEntropy, FairnessLoss
from apfex.strategies import ConeProjection, Decision, EqualWeights, SmoothTchebycheff

TASK = CrossEntropy()
DP, TPR = (FairnessLoss(rate, task_weight=0.0) for rate in ("dp", "tpr"))
FLOOR = 0.05


@dataclass(frozen=True)
class TaskOnly:
    """All weight on the first objective."""

    def decide(self, view):
        weights = torch.zeros_like(view.losses)
        weights[0] = 1
        return Decision(weights)


def losses_of(rows):
    return lambda scores: [loss(scores, rows.y, rows.codes[0]) for loss in (TASK, DP, TPR)]


def gradient(loss, scores):
    at = scores.clone().requires_grad_()
    return torch.autograd.grad(loss(at), at)[0]


def make_scores(rows, b=1, n_classes=2, seed=0):
    shape = (b, len(rows.y)) if n_classes == 2 else (b, len(rows.y), n_classes)
    scores = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    lean = 1.0 * (rows.codes[0] == 0)
    return scores + (lean if n_classes == 2 else lean.unsqueeze(1) * torch.arange(n_classes))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_fixed_weights_sum_the_scaled_gradients_in_units_of_the_task(n_classes):
    rows = make_rows(n_classes=n_classes)
    losses, scores = losses_of(rows), make_scores(rows, 2, n_classes)
    combined = StrategyGradient(losses, [EqualWeights(), EqualWeights()])
    largest = torch.full((2, 3), FLOOR)
    for _ in range(3):  # within the first window scales are the largest losses so far
        found = combined(scores)
        for member, own in enumerate(scores):
            values = torch.stack([v.detach() for v in losses(own)])
            largest[member] = torch.maximum(largest[member], values)
            scales = largest[member]
            parts = [gradient(lambda s, j=j: losses(s)[j], own) / scales[j] for j in range(3)]
            expected = torch.stack(parts).mean(0) * scales[0]
            torch.testing.assert_close(found[member], expected, rtol=1e-4, atol=1e-7)
        scores = scores * 1.3


def test_all_weight_on_the_task_is_its_slope():
    rows = make_rows()
    scores = make_scores(rows, 1)
    expected = gradient(lambda s: TASK(s, rows.y), scores[0])
    found = StrategyGradient(losses_of(rows), [TaskOnly()])(scores)
    torch.testing.assert_close(found[0], expected, rtol=1e-5, atol=1e-8)


def test_a_violated_bound_changes_the_gradient_and_one_that_holds_does_not():
    rows = make_rows()
    # Scores that lean to a group less than the labels do, so that the task widens the gap.
    scores = 0.1 * make_scores(rows)

    def gap(s):
        return DP(s, rows.y, rows.codes[0])

    def slope(bound, gain):
        bounds = [lambda s: [Constraint(gap(s), bound, gain=gain)]]
        return StrategyGradient(losses_of(rows), [TaskOnly()], bounds)(scores)[0]

    across, task = gradient(gap, scores[0]), gradient(lambda s: TASK(s, rows.y), scores[0])
    free = StrategyGradient(losses_of(rows), [TaskOnly()])(scores)[0]
    torch.testing.assert_close(slope(1.0, 1.0), free, rtol=0, atol=0)
    assert float(free @ across) < 0  # against the slope the gap would rise
    gentle, firm = slope(0.0, 1e-6), slope(0.0, 1.0)
    assert float(gentle @ across) > -1e-9
    assert float(gentle @ task) > 0  # the task still improves
    assert gap(scores[0] - 1e-2 * firm / firm.norm()) < gap(scores[0]) - 1e-5


def test_from_a_base_model_cone_projection_lowers_the_gap():
    rows = make_rows(n=600)
    rows = replace(rows, x=torch.cat([rows.x, rows.codes.T], 1))
    types = ["q"] * 5
    base = Trees.fit(rows, rows, 2, QUICK, types)

    def losses(scores):
        return [TASK(scores, rows.y), DP(scores, rows.y, rows.codes[0])]

    combined = StrategyGradient(losses, [ConeProjection(), TaskOnly()])
    found = boost_members(base, rows, combined, 2, QUICK, types)
    start, fair, plain = (
        [float(loss) for loss in losses(scores)]
        for scores in (base(rows.x).squeeze(1), *found.scores)
    )
    assert fair[1] < start[1]
    assert fair[1] < plain[1]
    assert plain[0] < start[0]
    assert fair[0] < start[0] + 1e-3  # the cone harms no objective


def test_every_member_has_a_history():
    class Recording:
        def __init__(self, strategy):
            self.strategy, self.seen = strategy, []

        def decide(self, view):
            self.seen.append((view.history.step, view.history.n_windows))
            return self.strategy.decide(view)

    rows, scores = make_rows(), make_scores(make_rows(), 2)
    members = [Recording(EqualWeights()), Recording(SmoothTchebycheff())]
    combined = StrategyGradient(losses_of(rows), members, window=2)
    for _ in range(4):
        combined(scores)
    assert [member.seen for member in members] == [[(0, 0), (1, 0), (2, 1), (3, 1)]] * 2


def test_scores_are_left_alone_and_a_member_is_the_same_in_company():
    rows = make_rows()
    scores, losses = make_scores(rows, 3), losses_of(rows)
    before = scores.clone()
    together = StrategyGradient(losses, [ConeProjection() for _ in range(3)])(scores)
    assert torch.equal(scores, before)
    for member in range(3):
        alone = StrategyGradient(losses, [ConeProjection()])(scores[[member]])
        torch.testing.assert_close(alone[0], together[member])


def test_the_number_of_members_must_agree():
    rows = make_rows()
    combined = StrategyGradient(losses_of(rows), [EqualWeights()] * 2)
    with pytest.raises(ValueError, match=r"scores must be of 2 members, one for each .* got 3"):
        combined(make_scores(rows, 3))
    with pytest.raises(ValueError, match=r"constraints must be one for each of the 2 .* got 1"):
        StrategyGradient(losses_of(rows), [EqualWeights()] * 2, [lambda _: []])
