"""Trees that learn group and label: against XGBoost itself, and out of fold."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import xgboost
from sklearn.metrics import log_loss
from tests.models.rows import QUICK, make_joint_rows, torch_threads

from apfex.models import JointTrees, TreeLearner, TreeSettings, _joint_trees
from apfex.models._trees import fit_booster

SHAPES = [(2, 2), (1, 2), (4, 2), (2, 3), (3, 3)]


def make_learner(rows, settings=QUICK, types=None):
    return TreeLearner(settings, types or ["q"] * rows.x.shape[1], rows.n_folds)


def fit(rows, settings=QUICK, types=None):
    return make_learner(rows, settings, types).fit(rows, lambda: None)


def own_boosting(rows, x, types, target, n_classes, settings):
    """Probabilities [n, classes] of XGBoost for rows it has not seen, at the best number of rounds.

    The second result predicts other inputs with the ensemble of a fold.
    """
    objective = {"objective": "binary:logistic"}
    if n_classes > 2:
        objective = {"objective": "multi:softprob", "num_class": n_classes}
    weight, boosters, losses = rows.weight.numpy(), [], []

    def matrix(inputs, **more):
        return xgboost.DMatrix(inputs, feature_types=types, enable_categorical=True, **more)

    def predict(fold, inputs, rounds):
        found = boosters[fold].predict(matrix(inputs), iteration_range=(0, rounds))
        return found if n_classes > 2 else np.stack([1 - found, found], 1)

    for fold in range(rows.n_folds):
        seen, new = (part.numpy() for part in (rows.folds != fold, rows.folds == fold))
        data = matrix(x[seen], label=target[seen], weight=weight[seen])
        parameters = settings.parameters(**objective)
        boosters.append(xgboost.train(parameters, data, settings.n_estimators))
        losses.append(
            [
                log_loss(
                    target[new],
                    predict(fold, x[new], rounds),
                    labels=range(n_classes),
                    sample_weight=weight[new],
                )
                for rounds in range(1, settings.n_estimators + 1)
            ]
        )
    best = int(np.argmin(np.mean(losses, 0))) + 1
    return best, lambda fold, inputs: predict(fold, inputs, best)


def rounds_of(models, part):
    return {getattr(model, part).booster.num_boosted_rounds() for model in models}


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(("k", "c"), SHAPES)
def test_probabilities_are_those_of_the_label_times_those_of_the_group_given_it(k, c, weighted):
    rows = make_joint_rows(k=k, c=c, weighted=weighted)
    models, out_of_fold = fit(rows)
    x, labels, groups = rows.x.numpy(), (rows.targets % c).numpy(), (rows.targets // c).numpy()
    types = ["q"] * x.shape[1]
    rounds, of_label = own_boosting(rows, x, types, labels, c, QUICK)
    assert rounds_of(models, "label") == {rounds}
    group_rounds, of_group = 0, None
    if k > 1:
        with_label = np.c_[x, labels].astype(np.float32)
        types_with_label = [*types, "q" if c == 2 else "c"]
        quick = QUICK.for_groups()
        group_rounds, of_group = own_boosting(rows, with_label, types_with_label, groups, k, quick)
        assert rounds_of(models, "group") == {group_rounds}
    for fold, model in enumerate(models):
        label = of_label(fold, x)
        expected = np.empty((len(x), k, c))
        for y in range(c):
            with_label = np.c_[x, np.full(len(x), y)].astype(np.float32)
            group = np.ones((len(x), 1)) if of_group is None else of_group(fold, with_label)
            expected[:, :, y] = label[:, [y]] * group
        found = model(rows.x).exp()
        np.testing.assert_allclose(found, expected.reshape(len(x), -1), rtol=2e-3, atol=1e-4)
        torch.testing.assert_close(found.sum(1), torch.ones(len(x)))
        own_fold = rows.folds == fold
        torch.testing.assert_close(out_of_fold[own_fold], found[own_fold], rtol=0, atol=0)


def test_a_row_has_no_part_in_its_own_prediction(monkeypatch):
    # One round each: the number of rounds is chosen by all rows.
    monkeypatch.setattr(
        TreeSettings, "for_groups", lambda self: replace(self, colsample_bytree=1.0)
    )
    settings, rows = replace(QUICK, n_estimators=1), make_joint_rows()
    _, out_of_fold = fit(rows, settings)
    for shift in (1, 2, 3):
        changed = rows.targets.clone()
        changed[7] = (rows.targets[7] + shift) % 4
        _, other = fit(replace(rows, targets=changed), settings)
        torch.testing.assert_close(out_of_fold[7], other[7], rtol=0, atol=0)
        assert not torch.equal(out_of_fold[8], other[8])  # but in those of other folds
    weight = torch.where(rows.folds == rows.folds[7], 1e-3, 1.0)  # nor have those of its fold
    _, weighted = fit(replace(rows, sample_weight=weight), settings)
    own = rows.folds == rows.folds[7]
    torch.testing.assert_close(out_of_fold[own], weighted[own], rtol=0, atol=0)
    assert not torch.equal(out_of_fold[~own], weighted[~own])


def test_a_weight_of_two_is_the_row_twice():
    rows = make_joint_rows(n_folds=2, weighted=True)
    weight = rows.weight.long()
    again = torch.arange(len(rows.x)).repeat_interleave(weight)
    repeated = replace(
        rows,
        x=rows.x[again],
        targets=rows.targets[again],
        folds=rows.folds[again],
        sample_weight=None,
    )
    _, out_of_fold = fit(rows)
    _, expected = fit(repeated)
    torch.testing.assert_close(out_of_fold[again], expected, rtol=1e-3, atol=1e-4)
    _, plain = fit(replace(rows, sample_weight=None))
    assert not torch.allclose(out_of_fold, plain, rtol=1e-2, atol=1e-3)


def test_missing_values_and_codes_of_categories_are_split_as_such():
    generator = torch.Generator().manual_seed(0)
    code = torch.randint(20, (800,), generator=generator)
    number = torch.randn(800, generator=generator)
    is_missing = torch.rand(800, generator=generator) < 0.4
    number[is_missing] = torch.nan
    rows = make_joint_rows(800)
    rows = replace(
        rows,
        x=torch.stack([code.float(), number], 1),
        targets=2 * is_missing.long() + code % 2,
    )
    settings = TreeSettings(n_estimators=10, max_depth=1, learning_rate=0.5, colsample_bytree=1.0)
    right = []
    for types in (["c", "q"], ["q", "q"]):
        _, out_of_fold = fit(rows, settings, types)
        assert out_of_fold.isfinite().all()
        joint = out_of_fold.unflatten(1, (2, 2))
        group_is_right = (joint.sum(2)[:, 1] > 0.5) == is_missing
        assert group_is_right.float().mean() > 0.99
        right.append(float(((joint.sum(1)[:, 1] > 0.5) == (code % 2 == 1)).float().mean()))
    assert right[0] > 0.95 > 0.8 > right[1]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_it_reports_its_steps(k):
    steps, rows = [], make_joint_rows(k=k)
    learner = make_learner(rows)
    learner.fit(rows, lambda: steps.append(1))
    assert len(steps) == learner.steps == 6


def test_trees_are_the_same_on_any_number_of_threads():
    rows, found = make_joint_rows(), []
    for n in (1, 2):
        with torch_threads(n):
            found.append(fit(rows)[1])
    assert torch.equal(*found)


def test_a_fold_that_lacks_a_class_is_no_trouble():
    rows = make_joint_rows(60)
    targets = torch.where(rows.folds == 0, rows.targets % 2, rows.targets - rows.targets % 2)
    _, out_of_fold = fit(replace(rows, targets=targets))
    assert out_of_fold.isfinite().all()
    torch.testing.assert_close(out_of_fold.sum(1), torch.ones(60))


def test_probabilities_are_in_the_type_of_the_inputs():
    rows = make_joint_rows()
    model = fit(rows)[0][0]
    assert isinstance(model, JointTrees)
    assert model(rows.x.double()).dtype == torch.float64
    assert model(rows.x[:0]).shape == (0, 4)


def test_growing_stops_where_the_loss_of_other_rows_does():
    rows = make_joint_rows()
    noise = torch.randint(4, (len(rows.x),), generator=torch.Generator().manual_seed(0))
    patient = replace(QUICK, n_estimators=60, early_stopping_rounds=3)
    grown = []

    def count(settings, *rest):
        booster, losses = fit_booster(settings, *rest)
        grown.append(len(losses))
        return booster, losses

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_joint_trees, "fit_booster", count)
        models, _ = fit(replace(rows, targets=noise), patient)
    assert max(grown) < 30
    assert max(rounds_of(models, "label")) <= min(grown)
