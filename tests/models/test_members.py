"""Members by strategies: losses and slopes, phases, bounds, stopping, and what the trace tells."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.models.test_training import final_scores, make_rows

from apfex.models import (
    Aims,
    MemberGradient,
    MemberSchedule,
    StackedMLP,
    TrainingRows,
    TrainingSettings,
    spread_aims,
    train_population,
)
from apfex.models._member_losses import MemberLosses
from apfex.objectives import FairnessLoss
from apfex.relaxations import identity_step, tanh_step
from apfex.strategies import AdaptiveSwitch, Decision, EqualWeights
from apfex.strategies._named import STRATEGIES

SWITCH = (AdaptiveSwitch(),)
CLASSES = pytest.mark.parametrize("c", [2, 3], ids=["two classes", "three classes"])


def make_scores(rows, b, c, seed=3):
    shape = (b, len(rows.y)) if c == 2 else (b, len(rows.y), c)
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def members(aims, rounds=10, strategies=SWITCH, step=identity_step):
    return MemberGradient(aims, strategies, MemberSchedule.of(rounds), 1, step, "rms")


class OnlyGaps:
    """All weight for the gaps, none for the error."""

    def decide(self, view):
        weights = torch.ones_like(view.losses)
        weights[..., 0] = 0
        return Decision(weights)


@CLASSES
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("step", [identity_step, tanh_step])
def test_losses_and_slopes_are_those_of_autograd(c, weighted, step):
    rows = make_rows(c=c, weighted=weighted, groupings=2, dtype=torch.float64)
    scores = make_scores(rows, 2, c)
    found = MemberLosses(("dp", "tpr"), 2, 1, step, "rms").measure(scores, rows)
    weight = rows.weights() / rows.weights().sum()
    for member in range(2):
        own = scores[member].clone().requires_grad_()
        labels = rows.y.double() if c == 2 else rows.y
        entropy = F.binary_cross_entropy_with_logits if c == 2 else F.cross_entropy
        losses = [(entropy(own, labels, reduction="none") * weight).sum()]
        for codes in rows.codes:
            for rate in ("dp", "tpr"):
                gap = FairnessLoss(rate, step, task_weight=0.0, aggregate="rms")
                losses.append(gap(own, rows.y, codes, rows.sample_weight))
        torch.testing.assert_close(found.losses[member], torch.stack(losses).detach())
        for k, loss in enumerate(losses):
            (expected,) = torch.autograd.grad(loss, own, retain_graph=True)
            slope = (found.slopes[member, k] * found.shares[0]).view_as(own)
            torch.testing.assert_close(slope, expected)


@CLASSES
def test_memberships_of_one_are_groups(c):
    rows = make_rows(c=c, dtype=torch.float64)
    shares = F.one_hot(rows.codes[0], 3).double()
    soft = TrainingRows(rows.x, rows.y, rows.codes[:0], (3,), memberships=(shares,))
    scores = make_scores(rows, 2, c)
    some = torch.arange(50)
    for part in (slice(None), some):
        found = [
            MemberLosses(("dp", "tpr"), 1, 1, identity_step, "rms", measures_hard=True).measure(
                scores[:, part], one if part == slice(None) else one.take(some)
            )
            for one in (rows, soft)
        ]
        for name in ("losses", "slopes", "gaps"):
            torch.testing.assert_close(*(getattr(one, name) for one in found))


@CLASSES
def test_hard_gaps_are_the_largest_of_any_pair_and_class_and_remember_batches(c):
    rows = dataclasses.replace(make_rows(c=c, dtype=torch.float64), sample_weight=None)
    scores, half = make_scores(rows, 2, c), torch.arange(100)
    losses = MemberLosses(("dp", "tpr"), 1, 2, identity_step, "rms", measures_hard=True)
    losses.measure(scores[:, half], rows.take(half))
    found = losses.measure(scores[:, half + 100], rows.take(half + 100)).gaps
    weight = torch.tensor([1.0, 2.0]).double().repeat_interleave(100)  # the last counts twice
    classes = [1] if c == 2 else range(c)
    for member, own in enumerate(scores):
        decided = (own > 0).long() if c == 2 else own.argmax(1)
        for place, rate in enumerate(("dp", "tpr")):
            gaps = []
            for j in classes:
                counted = weight * (rows.y == j) if rate == "tpr" else weight
                rates = [
                    (counted * (decided == j))[group].sum() / counted[group].sum()
                    for group in (rows.codes[0] == g for g in range(3))
                ]
                gaps.append(max(rates) - min(rates))
            assert found is not None
            torch.testing.assert_close(found[member, place], max(gaps))


def test_rows_that_belong_in_part_are_learnt_from():
    rows = make_rows(dtype=torch.float64)
    generator = torch.Generator().manual_seed(1)
    shares = torch.rand(200, 2, generator=generator, dtype=torch.float64)
    shares = shares / shares.sum(1, keepdim=True)
    soft = dataclasses.replace(rows, codes=rows.codes[:0], n_groups=(2,), memberships=(shares,))
    scores = make_scores(rows, 1, 2)
    found = MemberLosses(("dp",), 1, 1, identity_step, "rms").measure(scores, soft)
    own = scores[0].clone().requires_grad_()
    gap = FairnessLoss("dp", identity_step, task_weight=0.0, aggregate="rms")(own, rows.y, shares)
    gap.backward()
    torch.testing.assert_close(found.losses[0, 1], gap.detach())
    assert own.grad is not None
    torch.testing.assert_close(found.slopes[0, 1] * found.shares[0], own.grad)


def test_weight_two_is_the_row_twice_in_the_gramian():
    rows = dataclasses.replace(make_rows(n=60, dtype=torch.float64), sample_weight=None)
    weight = torch.arange(60) % 2 + 1
    again = torch.arange(60).repeat_interleave(weight)
    scores = make_scores(rows, 2, 2)
    found = [
        MemberLosses(("dp",), 1, 1, identity_step, "rms").measure(*given).gramian
        for given in (
            (scores, dataclasses.replace(rows, sample_weight=weight.double())),
            (scores[:, again], rows.take(again)),
        )
    ]
    torch.testing.assert_close(*found)


def test_first_aims_then_strategies():
    rows, aims = make_rows(dtype=torch.float64), Aims(("dp",), torch.tensor([[0.0], [2.0]]))
    scores = make_scores(rows, 2, 2)
    driven = members(aims, strategies=[OnlyGaps()])
    measured = MemberLosses(("dp",), 1, 1, identity_step, "rms").measure(scores, rows)
    towards = measured.gradient(torch.tensor([[1.0, 0.0], [1.0, 2.0]]))
    gaps_only = measured.gradient(torch.tensor([[1.0, 0.0], [0.0, 4.0]]))  # the plain one stays so
    for done in range(10):
        expected = towards if done < MemberSchedule.of(10).arrive else gaps_only
        torch.testing.assert_close(driven(scores, rows), expected)
    frame = driven.trace.to_frame()
    assert frame.query("member == 1")["strategy"].tolist() == ["aim"] * 6 + ["OnlyGaps"] * 4
    assert frame["step"].to_numpy().max() == 9


@pytest.mark.parametrize("epochs", [1, 2, 3, 5, 12, 24, 67])
def test_phases_fill_the_time(epochs):
    schedule = MemberSchedule.of(epochs)
    assert schedule.rounds == schedule.looks[-1] == epochs
    assert schedule.arrive >= max(1, epochs // 2)
    assert len(schedule.looks) == 1 + schedule.windows <= 5


@CLASSES
@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_trains_networks(name, c):
    rows = make_rows(c=c, weighted=True)
    population = StackedMLP(3, 1 if c == 2 else c, (5,), 6, seed=1)
    settings = TrainingSettings(epochs=10, batch_size=100, learning_rate=1e-2)
    aims = spread_aims(("dp", "tpr"), 6)
    trace = train_population(population, rows, settings, aims=aims, strategies=[STRATEGIES[name]()])
    assert final_scores(population, rows).isfinite().all()
    assert trace is not None
    frame = trace.to_frame()
    assert len(frame) == 60  # a row for each epoch and member
    assert set(frame.query("step < 12")["strategy"]) == {"aim"}
    exploring = frame.query("step >= 12")
    assert set(exploring.query("member == 0")["strategy"]) == {"aim"}  # nothing to choose from
    # MGDA gives all to a gap that is not aimed at: its gradient is 0, and the aim decides
    least = 2 if name == "mgda" else 1
    choosing = [member for member in range(6) if (aims.weights[member] > 0).sum() >= least]
    assert len(choosing) >= 2
    assert "aim" not in set(exploring[exploring["member"].isin(choosing)]["strategy"])
    assert frame[["loss0", "loss1", "weight2", "direction_norm", "omega"]].notna().to_numpy().all()


def test_members_learn_alone_what_they_learn_in_company_with_strategies_and_bounds():
    rows = make_rows()
    settings = TrainingSettings(epochs=10, batch_size=50, learning_rate=1e-2)
    bounds = torch.full((2, 3, 1), torch.inf)
    bounds[:, 0] = 0.05
    aims = Aims(("dp",), torch.tensor([[0.5], [0.0], [2.0]]), None, bounds)
    scores = []
    for kept in (torch.tensor([0]), torch.arange(3)):
        population = StackedMLP(3, 1, (5,), 3, seed=1).of_members(kept)
        train_population(
            population,
            rows,
            settings,
            aims=aims.of_members(kept),
            strategies=[AdaptiveSwitch()],
        )
        scores.append(final_scores(population, rows)[0])
    torch.testing.assert_close(*scores, rtol=1e-3, atol=1e-4)


def biased_rows(c, n=600):
    """Labels that lean to a group; inputs that tell merit and group apart."""
    generator = torch.Generator().manual_seed(0)
    codes, merit = (
        torch.randint(2, (1, n), generator=generator),
        torch.randn(n, generator=generator),
    )
    noise = torch.randn(2, n, generator=generator)
    cuts = torch.tensor([0.6] if c == 2 else [0.0, 1.1])
    y = torch.bucketize(merit + 1.2 * codes[0] + 0.3 * noise[0], cuts)
    return TrainingRows(torch.stack([merit, codes[0] + 0.2 * noise[1]], 1), y, codes, (2,))


@CLASSES
def test_a_bound_is_kept_where_the_plain_member_breaks_it(c):
    """The last decides within its bound, and still far better than a constant."""
    rows, bound = biased_rows(c), 0.1
    absolute = torch.full((2, 2, 1), torch.inf)
    absolute[:, 1] = bound
    aims = Aims(("dp",), torch.zeros(2, 1), None, absolute)
    population = StackedMLP(2, 1 if c == 2 else c, (8,), 2, seed=0)
    settings = TrainingSettings(epochs=30, batch_size=100, learning_rate=2e-2)
    trace = train_population(population, rows, settings, aims=aims)
    scores = final_scores(population, rows)
    hard = MemberLosses(("dp",), 1, 1, identity_step, "rms", measures_hard=True)
    gaps = hard.measure(scores, rows).gaps
    assert gaps is not None
    assert gaps[0] > 2 * bound
    assert gaps[1] < 1.1 * bound
    decided = (scores > 0).long() if c == 2 else scores.argmax(2)
    right = (decided == rows.y).float().mean(1)
    assert right[1] > rows.y.bincount().max() / 600 + 0.1
    assert trace is not None
    frame = trace.to_frame()
    assert set(frame.query("member == 0")["weight1"]) == {0.0}
    assert frame.query("member == 1")["weight1"].to_numpy().max() > 0  # what the bound adds is told
    assert frame.query("member == 1")["slack"].to_numpy().max() > 0
    assert np.isnan(frame.query("member == 0")["slack"].to_numpy()).all()


def test_who_has_stopped_is_not_told_of_and_the_others_go_on_as_before():
    rows = make_rows()
    settings = TrainingSettings(epochs=10, batch_size=100, learning_rate=1e-2, patience=1)
    aims, traces, scores = spread_aims(("dp",), 6), [], []
    for best in ([10] * 6, [10, 2, 10, 2, 10, 10]):
        population = StackedMLP(3, 1, (5,), 6, seed=1)
        trace = train_population(
            population,
            rows,
            settings,
            aims=aims,
            strategies=[AdaptiveSwitch()],
            on_epoch=lambda epoch, best=best: torch.tensor([abs(epoch - b) for b in best]),
        )
        assert trace is not None
        traces.append(trace.to_frame())
        scores.append(final_scores(population, rows))
    everyone, some = (frame.pivot(index="step", columns="member") for frame in traces)
    for member in (0, 2, 4, 5):
        torch.testing.assert_close(scores[0][member], scores[1][member], rtol=1e-3, atol=1e-4)
        columns = [("loss1", member), ("weight1", member)]
        assert (everyone[columns] - some[columns]).abs().to_numpy().max() < 1e-3
    assert some["loss0"][1].notna().tolist() == [True] * 3 + [False] * 7


def test_a_member_that_diverges_leaves_the_others_alone():
    rows, found = make_rows(dtype=torch.float64), []
    aims = spread_aims(("dp",), 8, limits=[0.1])
    for spoilt in (False, True):
        driven, scores = members(aims), make_scores(rows, 8, 2)
        if spoilt:
            scores[[3, 7]] = torch.nan
        found.append(torch.stack([driven(scores, rows) for _ in range(10)]))
    sound = [0, 1, 2, 4, 5, 6]
    torch.testing.assert_close(found[0][:, sound], found[1][:, sound])


def test_without_aims_there_is_nothing_to_tell():
    population = StackedMLP(3, 1, (5,), 2, seed=1)
    assert train_population(population, make_rows(), TrainingSettings(epochs=1)) is None


def test_equal_weights_keep_to_the_aims():
    rows, aims = make_rows(dtype=torch.float64), Aims(("dp",), torch.tensor([[0.0], [2.0]]))
    driven, scores = members(aims, strategies=[EqualWeights()]), make_scores(rows, 2, 2)
    first, *others = [driven(scores, rows) for _ in range(10)]
    for other in others:
        torch.testing.assert_close(other, first)
