"""Boosting along a given gradient: XGBoost's own trees where it is that of its loss."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
import xgboost
from tests.models.rows import (
    QUICK,
    Zero,
    cross_entropy_gradient,
    make_rows,
    torch_threads,
)

from apfex.models import (
    Aims,
    BoostedModel,
    MemberGradient,
    MemberSchedule,
    TrainingRows,
    Trees,
    TreeSettings,
    boost_members,
)
from apfex.relaxations import tanh_step
from apfex.strategies import AdaptiveSwitch

TYPES = ["q"] * 4
CLASSES = pytest.mark.parametrize("n_classes", [2, 3], ids=["two classes", "three classes"])


def make_base(n_classes):
    return Zero(1 if n_classes == 2 else n_classes)


def penalized(rows, weights):
    """Members with different weights of the gap in demographic parity."""
    aims, schedule = Aims(("dp",), torch.tensor(weights)[:, None]), MemberSchedule.of(8)
    gradient = MemberGradient(aims, [AdaptiveSwitch()], schedule, 1, tanh_step, "rms")
    return lambda scores: gradient(scores, rows)


def own_boosting(rows, n_classes, settings):
    objective = {"objective": "binary:logistic", "base_score": 0.5}
    if n_classes > 2:
        objective = {"objective": "multi:softprob", "num_class": n_classes, "base_score": 0.0}
    weight = None if rows.sample_weight is None else rows.sample_weight.numpy()
    data = xgboost.QuantileDMatrix(rows.x.numpy(), rows.y.numpy(), weight=weight)
    booster = xgboost.train(settings.parameters(**objective), data, settings.n_estimators)
    return booster.predict(data, output_margin=True)


class Keeper:
    """The states of a boosting in memory, which is stopped after one of them."""

    def __init__(self, stop):
        self.states, self.stop = {}, stop

    def read(self, name, take):
        return take(self.states[name]) if name in self.states else None

    def write(self, name, state):
        # as from a file: what a booster remembers beside its trees is gone
        trees = [Trees.from_json(one.to_json()) for one in state["trees"]]
        self.states[name] = state | {"trees": trees}
        if state["rounds"] == self.stop:
            raise KeyboardInterrupt

    def is_due(self, *, finished):
        return not finished


@CLASSES
@pytest.mark.parametrize("drawn", [1.0, 0.5])
@pytest.mark.parametrize("stop", [5, 15])
def test_boosting_goes_on_to_the_same_bits(n_classes, drawn, stop):
    rows = make_rows(n_classes=n_classes)
    settings = replace(QUICK, n_estimators=18, colsample_bytree=drawn, subsample=drawn)

    def boosted(**given):
        looks, weights = [], [0.0, 1.0, 3.0]
        found = boost_members(
            make_base(n_classes),
            rows,
            penalized(rows, weights),
            3,
            settings,
            TYPES,
            validation=rows.x[:9],
            on_round=lambda members: looks.append([members.scores, members.validation_scores]),
            **given,
        )
        return [Trees(booster).to_json() for booster in found.boosters], looks

    whole, seen = boosted()
    keeper = Keeper(stop)
    with pytest.raises(KeyboardInterrupt):
        boosted(checkpoint=keeper)
    keeper.stop = None
    grown = []
    with pytest.MonkeyPatch.context() as patched:
        boost = xgboost.Booster.boost
        patched.setattr(
            xgboost.Booster, "boost", lambda *a, **k: (grown.append(1), boost(*a, **k))[1]
        )
        trees, again = boosted(checkpoint=keeper)
    assert len(grown) == 3 * (18 - stop)
    assert trees == whole
    assert len(again) == len(seen)
    for one, other in zip(again, seen, strict=True):
        assert all(map(torch.equal, one, other))


@CLASSES
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_the_gradient_of_the_cross_entropy_gives_xgboosts_own_trees(n_classes, weighted):
    rows = make_rows(n_classes=n_classes, weighted=weighted)
    settings = replace(QUICK, seed=3, colsample_bytree=1.0)  # columns are drawn anew as we go on
    gradient = cross_entropy_gradient(rows)
    found = boost_members(make_base(n_classes), rows, gradient, 1, settings, TYPES)
    expected = own_boosting(rows, n_classes, settings)
    assert expected.std() > 0.1
    np.testing.assert_allclose(found.scores[0], expected, rtol=1e-4, atol=1e-5)


@CLASSES
def test_a_weight_of_two_is_the_row_twice(n_classes):
    rows = make_rows(n_classes=n_classes, weighted=True)
    again = torch.arange(300).repeat_interleave(rows.weights().long())
    twice = replace(rows.take(again), sample_weight=None)
    scores = [
        boost_members(
            make_base(n_classes), part, cross_entropy_gradient(part), 1, QUICK, TYPES
        ).scores
        for part in (rows, twice)
    ]
    torch.testing.assert_close(scores[0][:, again], scores[1], rtol=1e-4, atol=1e-5)


@CLASSES
def test_members_as_modules_say_what_their_scores_say_after_every_round(n_classes):
    rows, other = (make_rows(n_classes=n_classes, seed=seed) for seed in (0, 1))
    base = Trees.fit(rows, other, n_classes, QUICK, TYPES)
    seen = []

    def stop(members):
        seen.append(members)
        return torch.tensor([True, len(seen) < 4, False])

    final = boost_members(
        base,
        rows,
        penalized(rows, [0.0, 1.0, 3.0]),
        3,
        QUICK,
        TYPES,
        validation=other.x,
        on_round=stop,
    )
    assert len(seen) == QUICK.n_estimators + 1
    assert final.rounds.tolist() == [QUICK.n_estimators, 3, 0]
    assert final is seen[-1]
    for done, members in enumerate(seen):
        assert members.rounds.tolist() == [done, min(done, 3), 0]
        for member in range(3):
            module = members.member(member)
            pairs = ((rows.x, members.scores), (other.x, members.validation_scores))
            for x, scores in pairs:
                expected = scores[member].reshape(len(x), -1)
                torch.testing.assert_close(module(x), expected, rtol=1e-5, atol=1e-5)
    assert final.member(2) is base
    assert isinstance(final.member(0), BoostedModel)


def test_a_member_that_has_stopped_is_the_one_that_never_went_further():
    rows, seen = make_rows(), []
    gradient = penalized(rows, [0.5, 2.0])

    def stop(members):
        seen.append(members)
        return torch.tensor([True, len(seen) != 4])  # and then would have it go on

    stopped = boost_members(Zero(), rows, gradient, 2, QUICK, TYPES, on_round=stop)
    short = boost_members(
        Zero(), rows, penalized(rows, [0.5, 2.0]), 2, replace(QUICK, n_estimators=3), TYPES
    )
    assert torch.equal(stopped.scores[1], short.scores[1])
    assert not torch.equal(stopped.scores[0], short.scores[0])
    # Who has stopped does not come back.
    assert stopped.rounds.tolist() == [QUICK.n_estimators, 3]


def test_all_members_may_stop_at_once():
    rows, seen = make_rows(), []

    def stop(members):
        seen.append(members)
        return torch.tensor([False, False])

    found = boost_members(Zero(), rows, penalized(rows, [0.0, 1.0]), 2, QUICK, TYPES, on_round=stop)
    assert len(seen) == 1
    assert found.rounds.tolist() == [0, 0]
    assert torch.equal(found.scores, torch.zeros(2, 300))


def test_without_validation_rows_there_are_no_scores_of_them():
    rows = make_rows()
    found = boost_members(Zero(), rows, cross_entropy_gradient(rows), 2, QUICK, TYPES)
    assert found.validation_scores.shape == (2, 0)


def test_a_member_alone_grows_as_in_company():
    rows, weights = make_rows(), [0.0, 0.5, 3.0]
    together = boost_members(Zero(), rows, penalized(rows, weights), 3, QUICK, TYPES)
    for member, weight in enumerate(weights):
        alone = boost_members(
            Zero(), rows, penalized(rows, [weight]), 1, replace(QUICK, seed=member), TYPES
        )
        torch.testing.assert_close(alone.scores[0], together.scores[member], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(together.scores[0], together.scores[1], atol=1e-2)


def test_members_are_the_same_on_any_number_of_threads():
    rows, found = make_rows(), []
    for n in (1, 2, 3):
        with torch_threads(n):
            found.append(boost_members(Zero(), rows, cross_entropy_gradient(rows), 4, QUICK, TYPES))
    assert torch.equal(found[0].scores, found[1].scores)
    assert torch.equal(found[0].scores, found[2].scores)
    assert not torch.equal(found[0].scores[0], found[0].scores[1])  # seeds differ


def test_the_base_model_is_where_members_start():
    rows = make_rows()
    base, seen = torch.nn.Linear(4, 1), []
    before = base.weight.clone()
    boost_members(base, rows, cross_entropy_gradient(rows), 2, QUICK, TYPES, on_round=seen.append)
    with torch.no_grad():
        torch.testing.assert_close(seen[0].scores, base(rows.x).T.expand(2, -1))
    torch.testing.assert_close(base.weight, before)
    losses = [
        torch.nn.functional.binary_cross_entropy_with_logits(one.scores[0], rows.y.float())
        for one in seen
    ]
    assert all(later < earlier for earlier, later in pairwise(losses))


@pytest.mark.parametrize("seed", range(4))
def test_levels_that_no_training_row_has_are_scored_as_by_the_module(seed):
    generator = torch.Generator().manual_seed(seed)
    code = torch.tensor([0, 1, 3, 4, 6])[torch.randint(5, (300,), generator=generator)]
    y = torch.randint(2, (7,), generator=generator)[code]
    x = torch.stack([code.float(), torch.randn(300, generator=generator)], 1)
    rows = TrainingRows(x, y, torch.zeros(0, 300, dtype=torch.int64), ())
    new = torch.cartesian_prod(
        torch.tensor([*range(9), torch.nan]), torch.tensor([-1.0, 1.0, torch.nan])
    )
    settings = TreeSettings(n_estimators=5, max_depth=3, colsample_bytree=1.0)
    found = boost_members(
        Zero(), rows, cross_entropy_gradient(rows), 1, settings, ["c", "q"], validation=new
    )
    torch.testing.assert_close(found.validation_scores[0], found.member(0)(new).squeeze(1))


@CLASSES
@pytest.mark.parametrize("sign", [1, -1])
def test_monotone_constraints_hold_for_every_member(n_classes, sign):
    rows = make_rows(n_classes=n_classes)
    settings = replace(QUICK, colsample_bytree=1.0, n_estimators=15)
    sweep = rows.x[:40].repeat_interleave(25, 0)
    sweep[:, 0] = torch.linspace(-12, 12, 25).repeat(40)

    def rises(constraints):
        chosen = replace(settings, monotone_constraints=constraints)
        found = boost_members(
            make_base(n_classes), rows, penalized(rows, [0.0, 1.0, 3.0]), 3, chosen, TYPES
        )
        scores = [found.member(member)(sweep).unflatten(0, (40, 25)) for member in range(3)]
        return sign * torch.stack(scores).diff(dim=2)

    free, bound = rises(()), rises((sign, 0, 0, 0))
    assert (free < -0.01).flatten(1).any(1).all()  # each member would go the other way
    assert (bound >= -1e-6).all()
    assert (bound > 0.01).any()
