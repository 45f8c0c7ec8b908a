"""One step of MAMO by hand, Adam against torch's, and members that do not touch each other."""

from dataclasses import replace

import pytest
import torch

from apfex.solvers import min_norm
from apfex.strategies import EqualWeights
from apfex_reproduction.baselines._frank_wolfe import one_step_min_norm
from apfex_reproduction.baselines._losses import LossList, Term
from apfex_reproduction.baselines._networks import Inputs
from apfex_reproduction.baselines._population import Adam
from apfex_reproduction.baselines._train import Budget, Learner, Lesson, train
from apfex_reproduction.baselines._weigh import Plan

BUDGET = Budget(2, 64, 1e-2, (6, 4), 0.2, seed=5)
DP, TPR = Term("dp", 0), Term("tpr", 0)


def lesson(n=192):
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(2, (1, n), generator=generator)
    x = torch.randn(n, 5, generator=generator)
    y = (x[:, 0] + codes[0] + torch.randn(n, generator=generator) > 0.5).long()
    return Lesson(x, y, codes, (2,), None)


def run(plans, budget=BUDGET):
    """Parameters of all members at the end."""
    made = Learner(plans, lesson(), budget)
    train([made], [lambda *_: None])
    return torch.stack([made.parameters(member) for member in range(len(plans))])


def learner(plan, budget=BUDGET):
    """One member, away from the start, where all losses are nearly constant."""
    generator = torch.Generator().manual_seed(2)
    start = Learner([plan], lesson(), budget).parameters(0)
    start = start + torch.randn(start.shape, generator=generator)
    made = Learner([plan], lesson(), budget, start)
    return made, made.populations[0]


def test_adam_is_that_of_torch():
    generator = torch.Generator().manual_seed(0)
    own = torch.randn(2, 7, generator=generator)
    theirs = torch.nn.Parameter(own.clone())
    adam, expected = Adam(own, 0.03), torch.optim.Adam([theirs], lr=0.03)
    for _ in range(5):
        gradient = torch.randn(2, 7, generator=generator)
        adam.step(gradient)
        theirs.grad = gradient
        expected.step()
    torch.testing.assert_close(own, theirs.detach())


def test_a_step_of_two_losses_has_the_closed_form():
    """Scaled gradients g1, g2: weight of the first is g2.(g2 - g1) / |g1 - g2|^2, within [0, 1]."""
    one, population = learner(Plan((DP,), min_norm), replace(BUDGET, epochs=1, batch_size=192))
    ((step, rows),) = one.batches.of(1)
    one.differentiate(step, rows)
    g1, g2 = population.gradients[0].clone()
    share = float((g2 @ (g2 - g1) / (g1 - g2).square().sum()).clamp(0, 1))
    assert 0.01 < share < 0.99
    expected = population.networks.values.clone()
    Adam(expected, BUDGET.learning_rate).step((share * g1 + (1 - share) * g2).unsqueeze(0))
    train([one], [lambda *_: None])
    torch.testing.assert_close(population.networks.values, expected)


@pytest.mark.parametrize(("batch_size", "expected"), [(None, 10), (192, 10), (999, 10), (64, 3)])
def test_a_window_is_an_epoch_or_ten_full_batches(batch_size, expected):
    one, _ = learner(Plan((DP,), strategy=EqualWeights()), replace(BUDGET, batch_size=batch_size))
    assert one.batches.window == expected


def test_scales_are_mean_losses_at_the_start_with_dropout_on():
    one, population = learner(Plan((DP, TPR), min_norm))
    listed, seen = LossList([(DP, TPR)]), []
    for step, rows in one.batches.of(0):
        inputs, batch, masks = one.take(step, rows)
        seen.append(
            listed.evaluate(population.networks.forward(inputs, masks).scores, batch).values
        )
    assert len(seen) == 3
    torch.testing.assert_close(population.scales, torch.stack(seen).mean(0))
    inputs, batch, _ = one.take(0, torch.arange(192), dropout=False)
    without = listed.evaluate(population.networks.forward(inputs).scores, batch).values
    assert not torch.allclose(population.scales, without, rtol=1e-4)


def test_published_weights_are_one_frank_wolfe_step_from_equal_ones():
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        g = torch.randn(4, 6, generator=generator, dtype=torch.float64)
        gramian = g @ g.T
        found = one_step_min_norm(gramian)
        mean = g.mean(0)
        corner = int((g @ mean).argmin())
        line = torch.linspace(0, 1, 20001, dtype=torch.float64).unsqueeze(1)
        best = line[((1 - line) * mean + line * g[corner]).square().sum(1).argmin()]
        expected = (1 - best) * torch.full((4,), 0.25, dtype=torch.float64)
        expected[corner] += best[0]
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
        exact = min_norm(gramian)
        assert found @ gramian @ found >= exact @ gramian @ exact - 1e-12


def test_published_weights_of_two_gradients_are_exact_and_of_more_are_not():
    generator = torch.Generator().manual_seed(1)
    two, five = (torch.randn(m, 6, generator=generator) for m in (2, 5))
    torch.testing.assert_close(one_step_min_norm(two @ two.T), min_norm(two @ two.T))
    assert not torch.allclose(one_step_min_norm(five @ five.T), min_norm(five @ five.T), atol=0.01)


def test_published_losses_have_dropout_of_their_own():
    values = []
    for own in (False, True):
        one, population = learner(Plan((DP, DP), min_norm, own_passes=own, scales="none"))
        one.differentiate(1, torch.arange(64))
        values.append(population.losses[0])
    shared, apart = values
    assert shared[1] == shared[2]
    assert apart[1] != apart[2]
    assert shared[0] == apart[0]


@pytest.mark.parametrize("own_passes", [False, True])
def test_a_member_alone_learns_the_same(own_passes):
    masked = Term("dp", 0, "masked")
    plans = [
        Plan(),
        Plan((DP,), min_norm),
        Plan((DP, TPR), min_norm),
        Plan((masked, TPR), one_step_min_norm, own_passes=own_passes),
    ]
    longer = replace(BUDGET, epochs=6)
    together = run(plans, longer)
    for member, plan in enumerate(plans):
        alone = run([plan], longer)[0]
        torch.testing.assert_close(together[member], alone, atol=1e-4, rtol=1e-3)
    assert not torch.allclose(together[0], together[1], atol=1e-2)


def test_the_same_seed_is_the_same_run_and_another_is_not():
    plan = [Plan((DP,), min_norm)]
    assert torch.equal(run(plan), run(plan))
    assert not torch.allclose(run(plan), run(plan, replace(BUDGET, seed=6)), atol=1e-3)


def test_training_lowers_the_task_loss_and_keeps_the_gap_below_the_plain_one():
    budget = Budget(30, 64, 1e-2, (6, 4), 0.0, seed=5)
    made = Learner([Plan(), Plan((DP,), min_norm)], lesson(), budget)
    train([made], [lambda *_: None])
    scores = made.scores([Inputs.of(lesson().x)]).unsqueeze(0)
    batch = lesson().take(torch.arange(192))
    plain, fair = LossList([(DP,), (DP,)]).evaluate(scores, batch).values
    assert plain[0] < fair[0] < 0.67
    assert fair[1] < 0.8 * plain[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, r"epochs must be an integer of at least 1, got 0\."),
        ({"batch_size": -1}, "batch_size must be an integer of at least 1, got -1"),
        ({"learning_rate": 0.0}, "learning_rate must be positive, got 0"),
        ({"dropout": 1.0}, r"dropout must be at least 0 and below 1, got 1\.0"),
        ({"hidden": (0,)}, r"hidden must hold positive integers, got \[0\]"),
    ],
)
def test_settings_out_of_range_are_refused(changes, message):
    settings = {
        "epochs": 1,
        "batch_size": 2,
        "learning_rate": 0.1,
        "hidden": (3,),
        "dropout": 0.0,
        "seed": 0,
    }
    with pytest.raises(ValueError, match=message):
        Budget(**{**settings, **changes})
