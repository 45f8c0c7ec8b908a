import copy
import dataclasses

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.populations import POPULATIONS, dropping, normed
from torch import nn

from apfex.models import (
    Adam,
    Aims,
    StackedMLP,
    StackedModules,
    TrainingRows,
    TrainingSettings,
    spread_aims,
    train_population,
)
from apfex.objectives import FairnessLoss

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


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("name", POPULATIONS)
def test_trained_together_equals_trained_alone(name, c, weighted):
    """Members do not touch each other: the first alone learns what it learns among others."""
    rows, outputs = make_rows(c=c, weighted=weighted), 1 if c == 2 else c
    weights = torch.tensor([[0.7], [0.0], [3.0]])
    alone, among = POPULATIONS[name](1, outputs), POPULATIONS[name](3, outputs)
    train_population(alone, rows, SETTINGS, aims=Aims(("dp",), weights[:1]))
    train_population(among, rows, SETTINGS, aims=Aims(("dp",), weights))
    torch.testing.assert_close(
        final_scores(alone, rows)[0], final_scores(among, rows)[0], rtol=1e-3, atol=1e-4
    )


def test_stacked_equals_one_by_one():
    """The tensor program learns what plain modules learn that are trained member by member."""
    rows, weights = make_rows(), spread_aims(("dp", "tpr"), 5)
    stacked = StackedMLP(3, 1, (5,), 5, seed=1)
    starts = iter([stacked.member(i) for i in range(5)])
    modules = StackedModules(lambda *_: next(starts), 3, 1, 5, seed=1)
    for population in (stacked, modules):
        train_population(population, rows, SETTINGS, aims=weights)
    torch.testing.assert_close(
        final_scores(stacked, rows), final_scores(modules, rows), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_full_batch_follows_the_gradient_of_the_losses(c, weighted, monkeypatch):
    """With one batch per epoch the running counts are those of the batch: compare with autograd."""
    followed = []
    monkeypatch.setattr(Adam, "step", lambda _, gradients, rate: followed.extend(gradients))  # noqa: ARG005
    rows = make_rows(c=c, weighted=weighted, dtype=torch.float64)
    settings = TrainingSettings(epochs=1, batch_size=200, learning_rate=1e-2, weight_decay=0.0)
    members = [nn.Linear(3, 1 if c == 2 else c).double() for _ in range(2)]
    starts = iter(copy.deepcopy(members))
    population = StackedModules(lambda *_: next(starts), 3, 1 if c == 2 else c, 2, seed=0)
    train_population(population, rows, settings, aims=Aims(("dp",), torch.tensor([[0.0], [1.5]])))
    gap = FairnessLoss("dp", settings.step, task_weight=0.0, aggregate=settings.aggregate)
    for member, gap_weight in zip(members, (0.0, 1.5), strict=True):
        scores = member(rows.x).squeeze(-1) if c == 2 else member(rows.x)
        weight = torch.ones(200).double() if rows.sample_weight is None else rows.sample_weight
        if c == 2:
            task = F.binary_cross_entropy_with_logits(scores, rows.y.double(), reduction="none")
        else:
            task = F.cross_entropy(scores, rows.y, reduction="none")
        fair = gap(scores, rows.y, rows.codes[0], rows.sample_weight)
        ((task * weight).sum() / weight.sum() + gap_weight * fair).backward()
    for i, member in enumerate(members):
        found = [gradient[i] for gradient in followed]
        torch.testing.assert_close(found, [parameter.grad for parameter in member.parameters()])


def test_plain_models_learn_as_by_torch_with_a_cosine():
    """All rows in each batch, so that their order does not matter."""
    rows = make_rows(dtype=torch.float64)
    module = nn.Linear(3, 1).double()
    population = StackedModules.copies_of(module, 2, 1)
    settings = TrainingSettings(epochs=6, batch_size=200, learning_rate=0.1, weight_decay=0.2)
    train_population(population, rows, settings, aims=Aims(("dp",), torch.zeros(2, 1)))
    oracle = torch.optim.AdamW(module.parameters(), lr=0.1, weight_decay=0.2, foreach=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(oracle, 6)
    for _ in range(6):
        oracle.zero_grad()
        F.binary_cross_entropy_with_logits(module(rows.x).squeeze(1), rows.y.double()).backward()
        oracle.step()
        schedule.step()
    found = final_scores(population, rows)
    torch.testing.assert_close(found, module(rows.x).detach().T.expand(2, -1))


def test_a_weight_closes_the_gap():
    rows = make_rows(n=400)
    population = StackedMLP(3, 1, (8,), 2, seed=0)
    weights = Aims(("dp",), torch.tensor([[0.0], [3.0]]))
    settings = TrainingSettings(epochs=40, batch_size=100, learning_rate=1e-2)
    train_population(population, rows, settings, aims=weights)
    shares = (final_scores(population, rows) > 0).float()
    by_group = torch.stack([shares[:, rows.codes[0] == g].mean(1) for g in range(3)])
    plain, fair = (by_group.amax(0) - by_group.amin(0)).tolist()
    assert fair < plain / 2


def test_the_same_seed_gives_the_same_population():
    rows, weights = make_rows(), spread_aims(("dp",), 3)
    found = []
    for _ in range(2):
        population = StackedMLP(3, 1, (5,), 3, seed=4)
        train_population(population, rows, SETTINGS, aims=weights)
        found.append(final_scores(population, rows))
    assert torch.equal(*found)
    other = StackedMLP(3, 1, (5,), 3, seed=4)
    train_population(other, rows, TrainingSettings(4, 40, 1e-2, seed=1), aims=weights)
    assert not torch.equal(found[0], final_scores(other, rows))


def test_random_layers_follow_the_seed_and_leave_the_global_generator_alone():
    rows, found = make_rows(), []
    for global_seed in (0, 1):
        torch.manual_seed(global_seed)
        state = torch.get_rng_state()
        population = StackedModules(dropping, 3, 1, 2, seed=0)
        train_population(population, rows, SETTINGS, aims=spread_aims(("dp",), 2))
        assert torch.equal(state, torch.get_rng_state())
        found.append(final_scores(population, rows))
    assert torch.equal(*found)


def test_batch_norm_learns_its_statistics_and_ends_in_evaluation_mode():
    rows, population = make_rows(), StackedModules(normed, 3, 1, 2, seed=0)
    train_population(population, rows, SETTINGS, aims=spread_aims(("dp",), 2))
    norm = population.member(0)[1]  # pyright: ignore[reportIndexIssue]
    assert norm.num_batches_tracked == 4 * 5
    assert not norm.training
    few, all_ = final_scores(population, rows.take(torch.arange(3))), final_scores(population, rows)
    torch.testing.assert_close(few, all_[:, :3])


def test_the_callback_sees_evaluation_mode_after_every_epoch():
    population, seen = StackedModules(normed, 3, 1, 2, seed=0), []

    def evaluate(epoch):
        seen.append((epoch, population.member(0).training))

    train_population(
        population, make_rows(), SETTINGS, aims=spread_aims(("dp",), 2), on_epoch=evaluate
    )
    assert seen == [(1, False), (2, False), (3, False), (4, False)]


def test_two_groupings_count_both():
    rows, population = make_rows(groupings=2), StackedMLP(3, 1, (5,), 2, seed=0)
    weights = Aims(("dp",), torch.tensor([[0.0, 0.0], [1.0, 1.0]]))
    train_population(population, rows, SETTINGS, aims=weights)
    assert final_scores(population, rows).isfinite().all()


def test_no_groupings_means_plain_models():
    rows = make_rows()
    rows = TrainingRows(rows.x, rows.y, rows.codes[:0], ())
    population = StackedMLP(3, 1, (5,), 2, seed=0)
    train_population(population, rows, SETTINGS, aims=Aims((), torch.zeros(2, 0)))
    assert final_scores(population, rows).isfinite().all()


def test_inputs_stay_untouched():
    rows = make_rows(weighted=True)
    before = copy.deepcopy(rows)
    train_population(
        StackedMLP(3, 1, (5,), 2, seed=0), rows, SETTINGS, aims=spread_aims(("dp",), 2)
    )
    assert torch.equal(rows.x, before.x)
    assert torch.equal(rows.codes, before.codes)


def test_vanishing_weights_teach_nothing_rather_than_nan():
    rows = make_rows()
    weight = torch.zeros(200)
    weight[:40] = 1.0
    rows = TrainingRows(rows.x, rows.y, rows.codes, rows.n_groups, weight)
    population = StackedMLP(3, 1, (5,), 2, seed=0)
    settings = TrainingSettings(epochs=2, batch_size=2)
    train_population(population, rows, settings, aims=spread_aims(("dp",), 2))
    assert final_scores(population, rows).isfinite().all()


def alone_with_own_weights(name, member, weight, rows, weights, settings=SETTINGS):
    """A population of one, trained with weights [n]."""
    c = 1 if int(rows.y.max()) == 1 else 3
    population = POPULATIONS[name](3, c).of_members(torch.tensor([member]))
    rows = dataclasses.replace(rows, sample_weight=weight)
    train_population(
        population, rows, settings, aims=Aims(weights.rates, weights.weights[[member]])
    )
    return final_scores(population, rows)[0]


@settings(deadline=None, max_examples=12)
@given(
    name=st.sampled_from(["mlp", "perceptron", "batch norm", "dropout"]),
    c=st.sampled_from([2, 3]),
    share=st.sampled_from([0.0, 0.2, 0.8]),
    seed=st.integers(0, 99),
)
def test_a_member_learns_from_its_own_weights_as_if_alone(name, c, share, seed):
    """Weight 0 with the given share; whole batches of a member may have no weight."""
    rows = make_rows(c=c, groupings=2)
    generator = torch.Generator().manual_seed(seed)
    weight = torch.rand(3, 200, generator=generator)
    weight = weight * (torch.rand(3, 200, generator=generator) >= share)
    weight[1, 3:] = 0
    weights = Aims(("dp", "tpr"), torch.rand(3, 4, generator=generator))
    population = POPULATIONS[name](3, 1 if c == 2 else c)
    short = TrainingSettings(epochs=2, batch_size=20, learning_rate=1e-2)
    train_population(
        population, dataclasses.replace(rows, sample_weight=weight), short, aims=weights
    )
    found = final_scores(population, rows)
    assert found.isfinite().all()
    for i in range(3):
        expected = alone_with_own_weights(name, i, weight[i], rows, weights, short)
        torch.testing.assert_close(found[i], expected, rtol=1e-3, atol=1e-4)


def test_a_row_of_weight_zero_is_never_seen():
    """Whatever stands in the rows that a member must not see, it learns the same."""
    rows = make_rows()
    weight = (torch.arange(200) % 4 != torch.arange(4).unsqueeze(1)).float()
    found = []
    for noise in (0.0, 5.0):
        hidden = weight[0] == 0
        x = torch.where(hidden.unsqueeze(1), rows.x + noise, rows.x)
        y = torch.where(hidden & (noise > 0), 1 - rows.y, rows.y)
        population = StackedMLP(3, 1, (5,), 4, seed=0)
        weights = Aims(("dp",), torch.ones(4, 1))
        train_population(
            population,
            TrainingRows(x, y, rows.codes, rows.n_groups, weight),
            SETTINGS,
            aims=weights,
        )
        found.append(final_scores(population, rows))
    torch.testing.assert_close(found[0][0], found[1][0])
    assert not torch.allclose(found[0][1], found[1][1])


def test_a_member_without_any_weight_learns_nothing():
    rows, population = make_rows(), StackedMLP(3, 1, (5,), 2, seed=0)
    start = final_scores(population, rows)
    weight = torch.stack([torch.zeros(200), torch.ones(200)])
    rows = dataclasses.replace(rows, sample_weight=weight)
    settings = dataclasses.replace(SETTINGS, weight_decay=0.0)
    train_population(population, rows, settings, aims=Aims(("dp",), torch.ones(2, 1)))
    assert torch.equal(final_scores(population, rows)[0], start[0])
    assert not torch.equal(final_scores(population, rows)[1], start[1])


@pytest.mark.parametrize("shape", [(3, 200), (199,), (1, 2, 200), (200, 2)])
def test_weights_of_another_shape_are_refused(shape):
    rows = dataclasses.replace(make_rows(), sample_weight=torch.ones(shape))
    with pytest.raises(ValueError, match=r"sample_weight must have shape \[200\].* or \[2, 200\]"):
        train_population(
            StackedMLP(3, 1, (), 2, seed=0), rows, SETTINGS, aims=spread_aims(("dp",), 2)
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"learning_rate": float("nan")}, "learning_rate must be positive"),
        ({"weight_decay": -1.0}, "weight_decay must be at least 0"),
        ({"patience": 0}, "patience must be at least 1 or None, got 0"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        TrainingSettings(**settings)


def test_aims_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"aims must have weights of shape \[3, 1\].*got \[2, 1\]"):
        train_population(
            StackedMLP(3, 1, (), 3, seed=0), make_rows(), SETTINGS, aims=spread_aims(("dp",), 2)
        )
