import copy

import pytest
import torch
import torch.nn.functional as F
from tests.training.test_population import normed
from torch import nn

from apfex.objectives import FairnessLoss
from apfex.training import (
    Aims,
    StackedMLP,
    StackedModules,
    TrainingRows,
    TrainingSettings,
    train_population,
    weight_ladder,
)

SETTINGS = TrainingSettings(epochs=4, batch_size=40, learning_rate=1e-2)


def make_rows(n=200, c=2, weighted=False, groupings=1, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(3, (groupings, n), generator=generator)
    y = torch.randint(c, (n,), generator=generator)
    x = torch.randn(n, 3, generator=generator, dtype=dtype) + (y + codes[0]).unsqueeze(1)
    weight = torch.rand(n, generator=generator, dtype=dtype) + 0.5 if weighted else None
    return TrainingRows(x, y, codes, (3,) * groupings, weight)


def final_scores(population, rows):
    with torch.no_grad():
        return population.scores(rows.x)


POPULATIONS = {
    "mlp": lambda b, c: StackedMLP(3, c, (5,), b, seed=1),
    "linear": lambda b, c: StackedMLP(3, c, (), b, seed=1),
    "modules": lambda b, c: StackedModules(nn.Linear, 3, c, b, seed=1),
    "batch norm": lambda b, c: StackedModules(normed, 3, c, b, seed=1),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("name", POPULATIONS)
def test_trained_together_equals_trained_alone(name, c, weighted):
    """Members do not touch each other: the first alone learns what it learns among others."""
    rows, outputs = make_rows(c=c, weighted=weighted), 1 if c == 2 else c
    weights = torch.tensor([[0.7], [0.0], [3.0]])
    alone, among = POPULATIONS[name](1, outputs), POPULATIONS[name](3, outputs)
    train_population(alone, Aims(("dp",), weights[:1]), rows, SETTINGS)
    train_population(among, Aims(("dp",), weights), rows, SETTINGS)
    torch.testing.assert_close(
        final_scores(alone, rows)[0], final_scores(among, rows)[0], rtol=1e-3, atol=1e-4
    )


def test_stacked_equals_one_by_one():
    """The tensor program learns what plain modules learn that are trained member by member."""
    rows, aims = make_rows(), weight_ladder(("dp", "tpr"), 5)
    stacked = StackedMLP(3, 1, (5,), 5, seed=1)
    starts = iter([stacked.member(i) for i in range(5)])
    modules = StackedModules(lambda *_: next(starts), 3, 1, 5, seed=1)
    for population in (stacked, modules):
        train_population(population, aims, rows, SETTINGS)
    torch.testing.assert_close(
        final_scores(stacked, rows), final_scores(modules, rows), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_full_batch_follows_the_gradient_of_the_losses(c, weighted):
    """With one batch per epoch the running masses are those of the batch: compare with autograd."""
    rows = make_rows(c=c, weighted=weighted, dtype=torch.float64)
    settings = TrainingSettings(epochs=1, batch_size=200, learning_rate=1e-2, weight_decay=0.0)
    members = [nn.Linear(3, 1 if c == 2 else c).double() for _ in range(2)]
    starts = iter(copy.deepcopy(members))
    population = StackedModules(lambda *_: next(starts), 3, 1 if c == 2 else c, 2, seed=0)
    train_population(population, Aims(("dp",), torch.tensor([[0.0], [1.5]])), rows, settings)
    gap = FairnessLoss("dp", settings.step, task_weight=0.0, aggregate=settings.aggregate)
    for member, pressure in zip(members, (0.0, 1.5), strict=True):
        scores = member(rows.x).squeeze(-1) if c == 2 else member(rows.x)
        weight = torch.ones(200).double() if rows.sample_weight is None else rows.sample_weight
        if c == 2:
            task = F.binary_cross_entropy_with_logits(scores, rows.y.double(), reduction="none")
        else:
            task = F.cross_entropy(scores, rows.y, reduction="none")
        fair = gap(scores, rows.y, rows.codes[0], rows.sample_weight)
        ((task * weight).sum() / weight.sum() + pressure * fair).backward()
    expected = [parameter.grad for member in members for parameter in member.parameters()]
    found = [parameter.grad for parameter in population.parameters()]
    torch.testing.assert_close(found, expected)


def test_pressure_closes_the_gap():
    rows = make_rows(n=400)
    population = StackedMLP(3, 1, (8,), 2, seed=0)
    aims = Aims(("dp",), torch.tensor([[0.0], [3.0]]))
    settings = TrainingSettings(epochs=40, batch_size=100, learning_rate=1e-2)
    train_population(population, aims, rows, settings)
    shares = (final_scores(population, rows) > 0).float()
    by_group = torch.stack([shares[:, rows.codes[0] == g].mean(1) for g in range(3)])
    plain, fair = (by_group.amax(0) - by_group.amin(0)).tolist()
    assert fair < plain / 2


def test_the_same_seed_gives_the_same_population():
    rows, aims = make_rows(), weight_ladder(("dp",), 3)
    found = []
    for _ in range(2):
        population = StackedMLP(3, 1, (5,), 3, seed=4)
        train_population(population, aims, rows, SETTINGS)
        found.append(final_scores(population, rows))
    assert torch.equal(*found)
    other = StackedMLP(3, 1, (5,), 3, seed=4)
    train_population(other, aims, rows, TrainingSettings(4, 40, 1e-2, seed=1))
    assert not torch.equal(found[0], final_scores(other, rows))


def test_random_layers_follow_the_seed_and_leave_the_global_generator_alone():
    def dropping(d, c):
        return nn.Sequential(nn.Dropout(0.5), nn.Linear(d, c))

    rows, found = make_rows(), []
    for global_seed in (0, 1):
        torch.manual_seed(global_seed)
        state = torch.get_rng_state()
        population = StackedModules(dropping, 3, 1, 2, seed=0)
        train_population(population, weight_ladder(("dp",), 2), rows, SETTINGS)
        assert torch.equal(state, torch.get_rng_state())
        found.append(final_scores(population, rows))
    assert torch.equal(*found)


def test_batch_norm_learns_its_statistics_and_ends_in_evaluation_mode():
    rows, population = make_rows(), StackedModules(normed, 3, 1, 2, seed=0)
    train_population(population, weight_ladder(("dp",), 2), rows, SETTINGS)
    norm = population.member(0)[1]  # pyright: ignore[reportIndexIssue]
    assert norm.num_batches_tracked == 4 * 5
    assert not norm.training
    few, all_ = final_scores(population, rows.take(torch.arange(3))), final_scores(population, rows)
    torch.testing.assert_close(few, all_[:, :3])


def test_the_callback_sees_evaluation_mode_after_every_epoch():
    population, seen = StackedModules(normed, 3, 1, 2, seed=0), []

    def look(epoch):
        seen.append((epoch, population.member(0).training))

    train_population(population, weight_ladder(("dp",), 2), make_rows(), SETTINGS, look)
    assert seen == [(1, False), (2, False), (3, False), (4, False)]


def test_two_groupings_press_both():
    rows, population = make_rows(groupings=2), StackedMLP(3, 1, (5,), 2, seed=0)
    aims = Aims(("dp",), torch.tensor([[0.0, 0.0], [1.0, 1.0]]))
    train_population(population, aims, rows, SETTINGS)
    assert final_scores(population, rows).isfinite().all()


def test_no_groupings_means_plain_models():
    rows = make_rows()
    rows = TrainingRows(rows.x, rows.y, rows.codes[:0], ())
    population = StackedMLP(3, 1, (5,), 2, seed=0)
    train_population(population, Aims((), torch.zeros(2, 0)), rows, SETTINGS)
    assert final_scores(population, rows).isfinite().all()


def test_inputs_stay_untouched():
    rows = make_rows(weighted=True)
    before = copy.deepcopy(rows)
    train_population(StackedMLP(3, 1, (5,), 2, seed=0), weight_ladder(("dp",), 2), rows, SETTINGS)
    assert torch.equal(rows.x, before.x)
    assert torch.equal(rows.codes, before.codes)


def test_vanishing_weights_teach_nothing_rather_than_nan():
    rows = make_rows()
    weight = torch.zeros(200)
    weight[:40] = 1.0
    rows = TrainingRows(rows.x, rows.y, rows.codes, rows.n_groups, weight)
    population = StackedMLP(3, 1, (5,), 2, seed=0)
    settings = TrainingSettings(epochs=2, batch_size=2)
    train_population(population, weight_ladder(("dp",), 2), rows, settings)
    assert final_scores(population, rows).isfinite().all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"learning_rate": float("nan")}, "learning_rate must be positive"),
        ({"weight_decay": -1.0}, "weight_decay must be at least 0"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        TrainingSettings(**settings)


def test_aims_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"aims must have shape \[3, 1\].*got \[2, 1\]"):
        train_population(
            StackedMLP(3, 1, (), 3, seed=0), weight_ladder(("dp",), 2), make_rows(), SETTINGS
        )
