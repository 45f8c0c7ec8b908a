"""Cell models say what they would say of a row that they have not seen."""

from dataclasses import replace

import pytest
import torch

from apfex.models import (
    CellModel,
    CellRows,
    OfColumns,
    RuleModel,
    TrainingSettings,
    fit_cells,
    network_kinds,
)
from apfex.models._joint_model import _best_shares

TRAINING = TrainingSettings(epochs=60, learning_rate=2e-2, weight_decay=0.1)


def make_rows(n=240, seed=0, crossed=False):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, generator=generator)
    labels = (x[:, 0] * x[:, 1] > 0) if crossed else (x[:, 0] > 0)
    groups = torch.randint(2, (n,), generator=generator)
    return CellRows(x, groups * 2 + labels.long(), (2, 2), torch.arange(n) % 4)


def test_a_row_has_no_part_in_its_own_prediction():
    # Of one kind only: the share between two kinds is chosen by all rows.
    rows, kinds = make_rows(), network_kinds((), TrainingSettings(epochs=5))
    changed = rows.cells.clone()
    changed[7] = (rows.cells[7] + 1) % 4
    parts = [fit_cells(part, kinds)[1] for part in (rows, replace(rows, cells=changed))]
    torch.testing.assert_close(parts[0][7], parts[1][7], rtol=0, atol=0)
    assert not torch.equal(parts[0][8], parts[1][8])  # but in those of other folds
    weights = torch.where(rows.folds == rows.folds[7], 1e-3, 1.0)  # nor have those of its fold
    weighted = fit_cells(replace(rows, sample_weight=weights), kinds)[1]
    torch.testing.assert_close(parts[0][7], weighted[7])


def test_probabilities_are_a_mean_over_the_networks():
    rows = make_rows()
    x = rows.x
    model, unseen = fit_cells(rows, network_kinds((8,), TRAINING))
    torch.testing.assert_close(model(x).sum((1, 2)), torch.ones(240))
    torch.testing.assert_close(unseen.sum((1, 2)), torch.ones(240))
    assert sum(model.weights) == pytest.approx(1)
    parts = zip(model.weights, model.models, strict=True)
    total = sum(weight * torch.softmax(network(x), 1) for weight, network in parts)
    torch.testing.assert_close(model(x).flatten(1), total)


def test_networks_are_used_where_linear_models_know_nothing():
    rows = make_rows(n=1200, crossed=True)
    model, unseen = fit_cells(rows, network_kinds((32,), TRAINING))
    right = (unseen[:, :, 1].sum(1) > 0.5) == (rows.cells % 2 == 1)
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
    rows = CellRows(x, cells, (2, 2), torch.arange(60) % 4)
    model, _ = fit_cells(rows, network_kinds((64,), training))
    pairs = zip(model.weights, model.models, strict=True)
    assert sum(w for w, network in pairs if len([*network.children()]) > 1) < 0.3


def test_a_kind_that_diverges_is_left_out():
    cells = torch.arange(6) % 4
    linear = torch.full((6, 4), 0.25)
    networks = torch.full((6, 4), torch.nan)
    assert _best_shares([linear, networks], cells, torch.ones(6)) == [1.0, 0.0]
    assert _best_shares([networks, linear], cells, torch.ones(6)) == [0.0, 1.0]


def test_kinds_may_look_at_inputs_of_their_own():
    rows = make_rows()
    wider = replace(rows, x=torch.cat([torch.full((240, 2), torch.nan), rows.x], 1))
    kinds = network_kinds((), TrainingSettings(epochs=5))
    model, unseen = fit_cells(rows, kinds)
    same, same_unseen = fit_cells(wider, [OfColumns(kind, 2, 5) for kind in kinds])
    torch.testing.assert_close(unseen, same_unseen, rtol=0, atol=0)
    torch.testing.assert_close(model(rows.x), same(wider.x), rtol=0, atol=0)


def test_every_kind_tells_of_its_steps():
    kinds, told = network_kinds((4,), TrainingSettings(epochs=3)), []
    fit_cells(make_rows(), kinds, lambda: told.append(1))
    assert len(told) == sum(kind.steps for kind in kinds) == 6


@pytest.mark.parametrize("c", [2, 3])
def test_a_rule_model_decides_as_its_rule(c):
    cells = CellModel([torch.nn.Linear(3, 2 * c)], [1.0], (2, c))
    rule = torch.randn(1 if c == 2 else c, 2, c)
    x = torch.randn(50, 3)
    scores = torch.einsum("nkc,jkc->nj", cells(x), rule)
    logits = RuleModel(cells, rule)(x)
    if c == 2:
        assert ((logits > 0) == (scores > 0)).all()
    else:
        assert (logits.argmax(1) == scores.argmax(1)).all()
