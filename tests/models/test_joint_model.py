"""Joint models predict each row by models that did not learn from it."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from apfex.models import (
    ColumnsLearner,
    ColumnsModel,
    JointModel,
    JointRows,
    JointTrees,
    TrainingSettings,
    TreeLearner,
    TreeSettings,
    _mixture,
    fit_joint_model,
    mixture_gain,
    network_learners,
)

TRAINING = TrainingSettings(epochs=60, learning_rate=2e-2, weight_decay=0.1)


def make_rows(n=240, seed=0, crossed=False):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, generator=generator)
    labels = (x[:, 0] * x[:, 1] > 0) if crossed else (x[:, 0] > 0)
    groups = torch.randint(2, (n,), generator=generator)
    return JointRows(x, groups * 2 + labels.long(), (2, 2), torch.arange(n) % 4)


def test_a_row_has_no_part_in_its_own_prediction(monkeypatch):
    # Of one learner only: the share between two learners is chosen by all rows. And without the
    # calibration, whose few figures come from rows of other folds, but by models that saw this one.
    monkeypatch.setattr(_mixture, "calibrate_out_of_fold", lambda joint, *_: (None, joint))
    rows, learners = make_rows(), network_learners((), TrainingSettings(epochs=5))
    changed = rows.targets.clone()
    changed[7] = (rows.targets[7] + 1) % 4
    parts = [fit_joint_model(part, learners)[1] for part in (rows, replace(rows, targets=changed))]
    torch.testing.assert_close(parts[0][7], parts[1][7], rtol=0, atol=0)
    assert not torch.equal(parts[0][8], parts[1][8])  # but in those of other folds
    weights = torch.where(rows.folds == rows.folds[7], 1e-3, 1.0)  # nor have those of its fold
    weighted = fit_joint_model(replace(rows, sample_weight=weights), learners)[1]
    torch.testing.assert_close(parts[0][7], weighted[7])


def test_probabilities_are_a_mean_over_the_networks():
    rows = make_rows()
    x = rows.x
    model, out_of_fold = fit_joint_model(rows, network_learners((8,), TRAINING))
    torch.testing.assert_close(model(x).sum((1, 2)), torch.ones(240))
    torch.testing.assert_close(out_of_fold.sum((1, 2)), torch.ones(240))
    assert sum(model.weights) == pytest.approx(1)
    parts = zip(model.weights, model.models, strict=True)
    total = sum(weight * torch.softmax(network(x), 1) for weight, network in parts)
    model.calibration = None
    torch.testing.assert_close(model(x).flatten(1), total)


def test_linear_models_take_one_product_each_with_its_own_inputs_and_place():
    torch.manual_seed(0)
    models = [
        nn.Linear(6, 4),
        nn.Sequential(nn.Linear(6, 4)),
        nn.Sequential(nn.Linear(6, 4), nn.Tanh()),
        ColumnsModel(nn.Sequential(nn.Linear(2, 4)), 1, 3),
        ColumnsModel(nn.Linear(2, 4), 1, 3),
        ColumnsModel(nn.Linear(2, 4), 2, 4),
        ColumnsModel(nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 4)), 2, 4),
        nn.Linear(6, 4),
    ]
    model = JointModel(models, [0.05, 0.1, 0.15, 0.2, 0.3, 0.1, 0.06, 0.04], (2, 2)).double()
    x = torch.randn(50, 6, dtype=torch.float64)
    parts = zip(model.weights, model.models, strict=True)
    alone = sum(weight * torch.softmax(part(x), 1) for weight, part in parts)
    torch.testing.assert_close(model(x).flatten(1), alone)


def test_networks_are_used_where_linear_models_know_nothing():
    rows = make_rows(n=1200, crossed=True)
    model, out_of_fold = fit_joint_model(rows, network_learners((32,), TRAINING))
    right = (out_of_fold[:, :, 1].sum(1) > 0.5) == (rows.targets % 2 == 1)
    assert right.float().mean() > 0.9
    share = sum(
        w for w, n in zip(model.weights, model.models, strict=True) if len([*n.children()]) > 1
    )
    assert share > 0.8


def test_linear_models_are_used_where_networks_overfit():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 40, generator=generator)
    cells = torch.randint(4, (60,), generator=generator)
    training = TrainingSettings(epochs=200, learning_rate=2e-2)
    rows = JointRows(x, cells, (2, 2), torch.arange(60) % 4)
    model, _ = fit_joint_model(rows, network_learners((64,), training))
    pairs = zip(model.weights, model.models, strict=True)
    assert sum(w for w, network in pairs if len([*network.children()]) > 1) < 0.3


@dataclass(frozen=True)
class Constant:
    """A learner with the same probabilities for every row."""

    probability: float
    steps: int = 0

    def fit(self, rows, on_step, checkpoint=None) -> tuple[list[torch.nn.Module], torch.Tensor]:  # noqa: ARG002
        return [torch.nn.Linear(3, 4)], torch.full((len(rows.x), 4), self.probability)


def test_a_learner_that_diverges_is_left_out():
    good, diverged = Constant(0.25), Constant(torch.nan)
    for learners in ([good, diverged], [diverged, good]):
        model, out_of_fold = fit_joint_model(make_rows(), learners)
        assert model.weights == (1.0,)
        assert out_of_fold.isfinite().all()
        torch.testing.assert_close(out_of_fold[:, 0], out_of_fold[:, 1])  # as good knows no group


def test_learners_may_have_inputs_of_their_own():
    rows = make_rows()
    wider = replace(rows, x=torch.cat([torch.full((240, 2), torch.nan), rows.x], 1))
    learners = network_learners((), TrainingSettings(epochs=5))
    model, out_of_fold = fit_joint_model(rows, learners)
    same, same_out_of_fold = fit_joint_model(
        wider, [ColumnsLearner(learner, 2, 5) for learner in learners]
    )
    torch.testing.assert_close(out_of_fold, same_out_of_fold, rtol=0, atol=0)
    torch.testing.assert_close(model(rows.x), same(wider.x), rtol=0, atol=0)


def test_every_learner_reports_its_steps():
    learners, steps = network_learners((4,), TrainingSettings(epochs=3)), []
    fit_joint_model(make_rows(), learners, lambda: steps.append(1))
    assert len(steps) == sum(learner.steps for learner in learners) == 6


class TestMixture:
    def test_the_gain_is_what_others_save_beside_the_first(self):
        rows = make_rows(n=600, crossed=True)
        learners = network_learners((32,), TRAINING)
        linear, network = (learner.fit(rows, lambda: None)[1] for learner in learners)
        assert mixture_gain(rows, [linear, network]) > 0.1
        assert mixture_gain(rows, [network]) == 0

    def test_shares_are_told_by_kind(self):
        rows = make_rows()
        learners = [
            ColumnsLearner(network_learners((), TRAINING)[0], 0, 3),
            ColumnsLearner(TreeLearner(TreeSettings.for_rows(240), ["q"] * 3, 4), 0, 3),
        ]
        model, _ = fit_joint_model(rows, learners)
        told = model.mixture()
        assert told.keys() <= {"linear", "boosting"}
        assert sum(told.values()) == pytest.approx(1)
        trees = [m for m in model.models if isinstance(m.model, JointTrees)]
        assert ("boosting" in told) == bool(trees)
