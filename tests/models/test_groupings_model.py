"""Several groupings of the same rows: one of them is what there was before, more are its sums."""

import numpy as np
import torch
from torch import nn

from apfex.models import (
    GroupingsModel,
    JointRows,
    OutOfFoldPredictions,
    TrainingSettings,
    TreeLearner,
    TreeSettings,
    mixture_gain,
    network_learners,
)
from apfex.models._joint_model import given_groups
from apfex.rules import RuleProblem, rule_scores

N, K, C = 400, 6, 2
CELLS = torch.tensor([[0, 2], [0, 3], [0, 4], [1, 2], [1, 3], [1, 4]])
"""Six cells: by two levels, and by three."""


def rows(*, several):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, 3, generator=generator)
    cells, y = torch.arange(N) % K, (x[:, 0] > 0).long()
    folds = torch.arange(N) // 7 % 2
    if several:
        return JointRows(x, (cells * C + y)[:, None], (K, C), folds, sizes=(K,))
    return JointRows(x, cells * C + y, (K, C), folds)


def dense(seed=0):
    """Probabilities [n, k, c] of cells, targets, and the same of their two groupings."""
    rng = np.random.default_rng(seed)
    q = torch.from_numpy(rng.dirichlet(np.ones(K * C), N)).view(N, K, C)
    cells, y = torch.from_numpy(rng.integers(0, K, N)), torch.from_numpy(rng.integers(0, C, N))
    of_groups = q.new_zeros(N, 5, C)
    for grouping in CELLS.T:
        of_groups.index_add_(1, grouping, q / 2)
    single = OutOfFoldPredictions(q, cells * C + y)
    return single, OutOfFoldPredictions(of_groups, CELLS[cells] * C + y[:, None])


def test_one_grouping_of_trees_is_the_joint_model_itself():
    learner = TreeLearner(TreeSettings.for_rows(N, n_estimators=5), "qqq", 2)
    (one, plain), (several, out) = (
        learner.fit(rows(several=flag), lambda: None) for flag in (False, True)
    )
    torch.testing.assert_close(plain, out)
    x = torch.randn(20, 3)
    torch.testing.assert_close(one[0](x), several[0](x))


def test_one_grouping_of_networks_is_the_joint_model_itself():
    (learner,) = network_learners((), TrainingSettings(epochs=3))
    plain, out = (learner.fit(rows(several=flag), lambda: None)[1] for flag in (False, True))
    torch.testing.assert_close(plain, out)


def test_every_grouping_has_the_same_share():
    found = GroupingsModel([nn.Linear(3, 1), nn.Linear(3, 4)], (2, 4))(torch.randn(7, 3)).exp()
    halves = torch.full((7,), 0.5)
    torch.testing.assert_close(found[:, :2].sum(1), halves)
    torch.testing.assert_close(found[:, 2:].sum(1), halves)


def test_learners_of_two_groupings_are_mixed_and_told_of_their_steps():
    cells = torch.arange(N) % K
    x = torch.randn(N, 3, generator=torch.Generator().manual_seed(0))
    x[:, 1] += CELLS[cells, 0]
    targets = CELLS[cells] * C + (x[:, :1] > 0)
    joint = JointRows(x, targets, (5, C), torch.arange(N) // 7 % 2, sizes=(2, 3))
    trees = TreeLearner(TreeSettings.for_rows(N, n_estimators=5), "qqq", 2)
    calls = []
    _, out = trees.fit(joint, lambda: calls.append(1))
    assert len(calls) == trees.steps
    torch.testing.assert_close(out.sum(1), torch.ones(N))
    linear = network_learners((), TrainingSettings(epochs=60, learning_rate=0.05))
    found = [out, *(learner.fit(joint, lambda: None)[1] for learner in linear)]
    assert mixture_gain(joint, found) > 0.05


def test_rules_on_groupings_are_rules_on_cells_whose_coefficients_are_means():
    single, several = dense()
    by_group = torch.randn(3, 1, 5, C, dtype=torch.float64)
    by_cell = by_group[:, :, CELLS].mean(3)
    torch.testing.assert_close(
        rule_scores(by_cell, single.probabilities), rule_scores(by_group, several.probabilities)
    )
    torch.testing.assert_close(single.label_shares(), several.label_shares())


def test_rates_of_groups_are_those_of_the_cells_in_them():
    single, several = dense()
    decisions = torch.rand(2, 1, N, dtype=torch.float64)
    parents = [CELLS[:, 0], CELLS[:, 1] - 2]
    # by what rows are, and nothing of what models predict
    by_cells = RuleProblem.of(single, ("dp",), parents, trusted_rows=0.0).counts(decisions)
    places = [torch.tensor([0, 1, -1, -1, -1]), torch.tensor([-1, -1, 0, 1, 2])]
    by_groups = RuleProblem.of(several, ("dp",), places, trusted_rows=0.0).counts(decisions)
    for cells, groups in zip(by_cells, by_groups, strict=True):
        torch.testing.assert_close(cells, 2 * groups)  # each grouping has half of every row


def test_error_and_slopes_of_rules_on_groupings_are_those_on_cells():
    single, several = dense()
    found = []
    for predictions, parents in (
        (single, [CELLS[:, 0]]),
        (several, [torch.tensor([0, 1, -1, -1, -1])]),
    ):
        problem = RuleProblem.of(predictions, ("dp",), parents, trusted_rows=0.0)
        found.append(problem.measure(problem.decide(problem.start.unsqueeze(0), 0.1)))
    torch.testing.assert_close(found[0].losses, found[1].losses)
    slope = found[1].gradients[0, 1]
    assert slope.abs().max() > 0  # and by finite differences:
    problem = RuleProblem.of(several, ("dp",), [torch.tensor([0, 1, -1, -1, -1])], trusted_rows=0.0)
    step = 1e-5 * slope
    ends = [
        problem.measure(problem.decide((problem.start + sign * step @ problem.basis)[None], 0.1))
        for sign in (1, -1)
    ]
    change = (ends[0].losses[0, 1] - ends[1].losses[0, 1]) / 2
    torch.testing.assert_close(change, step @ slope, rtol=1e-4, atol=0)


def test_few_rows_of_a_group_count_less_than_what_models_know_of_it():
    _, several = dense()
    memberships = several.memberships(trusted_rows=1e12)
    torch.testing.assert_close(memberships, several.probabilities.flatten(1))
    own = several.memberships(trusted_rows=0.0)
    assert torch.equal(own.sum(1), torch.ones(N).double())
    assert set(own.unique().tolist()) == {0.0, 0.5}


def test_a_cell_that_is_not_known_leaves_a_row_as_it_is():
    _, several = dense()
    q = several.probabilities
    codes = torch.cat([CELLS[torch.arange(N - 1) % K], torch.tensor([[-1, -1]])])
    known = given_groups(q, codes)
    assert torch.equal(known[-1], q[-1])
    torch.testing.assert_close(known[0].sum(1), torch.tensor([0.5, 0, 0.5, 0, 0]).double())
