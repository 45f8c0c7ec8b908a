import dataclasses

import pytest
import torch
from tests.models.populations import POPULATIONS
from tests.models.test_training import final_scores, make_rows

from apfex.models import Aims, StackedMLP, TrainingSettings, train_population

SETTINGS = TrainingSettings(epochs=8, batch_size=40, learning_rate=1e-2, patience=2)
WEIGHTS = Aims(("dp",), torch.tensor([[0.0], [0.5], [1.0], [2.0]]))
NAMES = ["mlp", "linear mlp", "perceptron", "batch norm", "dropout", "tied"]


def scripted(best_epochs, seen=None):
    """Losses that fall until each member's best epoch, and rise from there."""

    def report(epoch):
        if seen is not None:
            seen.append(epoch)
        return torch.tensor([abs(epoch - best) for best in best_epochs], dtype=torch.float32)

    return report


def train(name, rows, settings, on_epoch):
    population = POPULATIONS[name](4, 1)
    evaluations = []

    def evaluate(epoch):
        evaluations.append(final_scores(population, rows).clone())
        return on_epoch(epoch)

    train_population(population, rows, settings, aims=WEIGHTS, on_epoch=evaluate)
    return population, evaluations


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_members_end_at_their_best_epoch_and_the_others_learn_on_as_before(name, weighted):
    rows = make_rows()
    if weighted:
        generator = torch.Generator().manual_seed(2)
        weight = (torch.rand(4, 200, generator=generator) > 0.3).float()
        rows = dataclasses.replace(rows, sample_weight=weight)
    free = dataclasses.replace(SETTINGS, patience=None)
    _, without = train(name, rows, free, lambda _: None)
    best = [3, 7, 1, 5]
    population, evaluations = train(name, rows, SETTINGS, scripted(best))
    for member, epoch in enumerate(best):
        for e in range(min(epoch + 2, 8)):
            torch.testing.assert_close(
                evaluations[e][member], without[e][member], rtol=1e-3, atol=1e-4
            )
        for e in range(epoch + 2, 8):
            assert torch.equal(evaluations[e][member], evaluations[-1][member])
        expected = without[epoch - 1][member]
        found = final_scores(population, rows)[member]
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
        alone = population.member(member).eval()(rows.x).squeeze(-1)
        torch.testing.assert_close(found, alone)


def test_training_ends_when_all_have_stopped():
    seen = []
    train_population(
        StackedMLP(3, 1, (), 4, 0),
        make_rows(),
        SETTINGS,
        aims=WEIGHTS,
        on_epoch=scripted([2] * 4, seen),
    )
    assert seen == [1, 2, 3, 4]


def test_who_has_stopped_is_no_longer_computed(monkeypatch):
    sizes, scores = [], StackedMLP.scores

    def counted(population, x):
        sizes.append(population.n_members)
        return scores(population, x)

    monkeypatch.setattr(StackedMLP, "scores", counted)
    train_population(
        StackedMLP(3, 1, (5,), 4, 0),
        make_rows(),
        SETTINGS,
        aims=WEIGHTS,
        on_epoch=scripted([1, 1, 8, 3]),
    )
    assert sizes[::5] == [4, 4, 4, 2, 2, 1, 1, 1]


def test_without_patience_losses_are_not_read():
    rows, free = make_rows(), dataclasses.replace(SETTINGS, patience=None)
    (one, _), (other, _) = (
        train("mlp", rows, free, report) for report in (scripted([1] * 4), lambda _: None)
    )
    assert torch.equal(final_scores(one, rows), final_scores(other, rows))


def test_an_epoch_without_losses_is_no_evaluation():
    seen, report = [], scripted([1] * 4)

    def every_second(epoch):
        seen.append(epoch)
        return report(epoch) if epoch % 2 else None

    train_population(
        StackedMLP(3, 1, (), 4, 0), make_rows(), SETTINGS, aims=WEIGHTS, on_epoch=every_second
    )
    assert seen == [1, 2, 3, 4, 5]


def test_without_evaluations_members_keep_the_last_values():
    rows = make_rows()
    free = dataclasses.replace(SETTINGS, patience=None)
    (one, _), (other, _) = (train("mlp", rows, s, lambda _: None) for s in (SETTINGS, free))
    assert torch.equal(final_scores(one, rows), final_scores(other, rows))


def test_nan_is_no_improvement_and_an_equal_loss_neither():
    """The third member alone goes on to the end; the others return to their first epoch."""
    nan = torch.nan
    losses = [
        [nan, 1.0, 1.0, 0.0],
        [nan, 1.0, 0.9, nan],
        [0.0, 1.0, nan, 0.1],
        [0.0, 0.0, 0.8, 0.0],
    ]
    rows = make_rows()
    short = dataclasses.replace(SETTINGS, epochs=4)
    population, found = train("mlp", rows, short, lambda epoch: torch.tensor(losses[epoch - 1]))
    expected = torch.stack([found[epoch][i] for i, epoch in enumerate([0, 0, 3, 0])])
    assert torch.equal(final_scores(population, rows), expected)


def test_losses_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"one loss per member \(4\), got shape \[3\]"):
        train_population(
            StackedMLP(3, 1, (), 4, 0),
            make_rows(),
            SETTINGS,
            aims=WEIGHTS,
            on_epoch=lambda _: torch.zeros(3),
        )


def test_patience_needs_losses():
    with pytest.raises(ValueError, match="on_epoch must return losses for patience=2, got None"):
        train_population(StackedMLP(3, 1, (), 4, 0), make_rows(), SETTINGS, aims=WEIGHTS)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", [*NAMES, "convolution", "branching", "counting"])
def test_on_a_device_members_learn_the_same(name):
    """Own weights, stopping and all; only dropout draws other numbers there."""
    rows, found = make_rows(), []
    rows = dataclasses.replace(rows, sample_weight=(torch.rand(4, 200) > 0.3).float())
    for device in ("cpu", "cuda", "cuda"):
        there = {f.name: getattr(rows, f.name) for f in dataclasses.fields(rows)}
        there = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in there.items()}
        population = POPULATIONS[name](4, 1).to(torch.device(device))
        train_population(
            population,
            dataclasses.replace(rows, **there),
            SETTINGS,
            aims=WEIGHTS,
            on_epoch=scripted([3, 8, 1, 5]),
        )
        found.append(final_scores(population, dataclasses.replace(rows, **there)).cpu())
    assert torch.equal(found[1], found[2])
    if name != "dropout":
        torch.testing.assert_close(found[0], found[1], rtol=1e-2, atol=1e-2)
