"""The label by a user's model, whose probabilities are inputs; the group by trees."""

import pytest
import torch

from apfex.models import (
    InitModel,
    JointModel,
    JointRows,
    LabelColumnsLearner,
    LabelColumnsModel,
    TreeSettings,
)
from apfex.models._joint_trees import TreeLearner


def rows(k, c, n_models, n=200):
    """One input that tells the group, then probabilities by each model."""
    torch.manual_seed(0)
    targets = torch.arange(n) % (k * c)
    folds = torch.arange(n) // (k * c) % 2
    feature = (targets // c).double().unsqueeze(1) + 0.1 * torch.randn(n, 1)
    p = torch.rand(n, n_models * c).double().unflatten(1, (n_models, c))
    p = (p / p.sum(2, keepdim=True)).flatten(1)
    return JointRows(torch.cat([feature, p], 1), targets, (k, c), folds)


def learn(given, n_models):
    trees = TreeLearner(TreeSettings.for_rows(200), ["q"], n_folds=2)
    steps = []
    learner = LabelColumnsLearner(trees, 1, n_models)
    models, out_of_fold = learner.fit(given, lambda: steps.append(1))
    assert len(steps) == learner.steps == len(models) == 2
    return models, out_of_fold.unflatten(1, given.shape)


@pytest.mark.parametrize("n_models", [1, 2])
@pytest.mark.parametrize(("k", "c"), [(1, 2), (2, 2), (3, 3)])
def test_the_label_is_the_models_and_the_group_is_learnt(k, c, n_models):
    given = rows(k, c, n_models)
    models, joint = learn(given, n_models)
    fold = given.folds % n_models
    own = given.x[:, 1:].unflatten(1, (n_models, c))[torch.arange(200), fold]
    torch.testing.assert_close(joint.sum(1), own)
    groups = joint.sum(2)
    assert (groups.argmax(1) == given.targets // c).double().mean() > 0.95
    torch.testing.assert_close(models[0](given.x).exp().sum(1), torch.ones(200).double())


def test_a_fold_reads_no_other_columns_than_its_own():
    given = rows(2, 2, 2)
    _, expected = learn(given, 2)
    for fold in (0, 1):
        start = 1 + 2 * (1 - fold)
        given.x[given.folds == fold, start : start + 2] = torch.nan
    _, found = learn(given, 2)
    assert torch.equal(found, expected)


def joint_of(c):
    return JointModel([LabelColumnsModel(0, None, 0, (1, c))], [1.0], (1, c))


def test_the_model_itself_decides_as_the_likelier_label_and_ties_for_the_first():
    p = torch.tensor([[0.5, 0.5], [0.4, 0.6], [1.0, 0.0]]).double()
    assert (InitModel(joint_of(2), 0)(p) > 0).flatten().tolist() == [False, True, False]
    three = torch.tensor([[0.4, 0.4, 0.2], [0.1, 0.2, 0.7]]).double()
    assert InitModel(joint_of(3), 0)(three).argmax(1).tolist() == [0, 2]
    groups = torch.tensor([0, 0])
    assert torch.equal(InitModel(joint_of(3), 0)(three, groups), InitModel(joint_of(3), 0)(three))


@pytest.mark.parametrize("c", [2, 3])
def test_its_own_decisions_come_first_where_there_are_some(c):
    torch.manual_seed(0)
    p, codes = torch.softmax(torch.randn(50, c).double(), 1), torch.arange(50) % c
    model = InitModel(joint_of(c), 0, decided=c)
    scores = model(torch.cat([p, codes.unsqueeze(1).double()], 1))
    assert torch.equal((scores[:, 0] > 0).long() if c == 2 else scores.argmax(1), codes)
