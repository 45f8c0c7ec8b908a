"""What objectives refuse: batches, groups and settings."""

from typing import get_args

import pytest
import torch
from tests.objectives.batches import LOSSES, N

from apfex.objectives import (
    Aggregate,
    CrossEntropy,
    DPLoss,
    FairnessLoss,
    MulticlassCCRLoss,
    Objectives,
    TPRLoss,
)
from apfex.objectives._batch import check_batch


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, y, g: (s[:0], y[:0], g[:0]), "scores must have at least one row"),
        (lambda s, y, g: (s, y[:-1], g), r"y must have shape \[60\]"),
        (lambda s, y, g: (s.view(3, 4, 5), y, g), "scores must be logits of shape"),
        (lambda s, y, g: (s, y + 1, g), "y must hold labels from 0 to 1, got values from 1 to 2"),
        (lambda s, y, g: (s, y.double() * torch.nan, g), "y must hold labels"),
        (lambda s, y, g: (s, y, g, torch.ones(3)), r"sample_weight must have shape \[60\]"),
        (lambda s, y, g: (s, y, g, -torch.ones(N)), "sample_weight must be finite, non-negative"),
        (lambda s, y, g: (s, y, g, torch.zeros(N)), "sample_weight must be finite, non-negative"),
    ],
)
def test_bad_batches_are_refused(loss, change, message, batch):
    with pytest.raises(ValueError, match=message):
        loss(*change(*batch[:3]))


@pytest.mark.parametrize("loss", [FairnessLoss(), DPLoss(), TPRLoss()], ids=str)
def test_bad_groups_are_refused(loss, batch):
    scores, y, groups, _ = batch
    with pytest.raises(ValueError, match=r"groups must have one entry per row \(60\), got 59"):
        loss(scores, y, groups[:-1])
    with pytest.raises(ValueError, match=r"codes from 0 up, or -1 for none, got -4"):
        loss(scores, y, groups - 4)
    with pytest.raises(ValueError, match="integer codes of shape"):
        loss(scores, y, groups.double())
    with pytest.raises(TypeError, match="groups must be Groups"):
        loss(scores, y, groups.tolist())
    with pytest.raises(TypeError, match="groups must be given"):
        Objectives([loss])(scores, y)


def test_two_group_losses_refuse_more(batch):
    scores, y, groups, _ = batch
    with pytest.raises(ValueError, match="groups must be two for DPLoss, got 4; use FairnessLoss"):
        DPLoss()(scores, y, groups)
    with pytest.raises(ValueError, match=r"scores must have shape \[n\] for TPRLoss"):
        TPRLoss()(torch.randn(N, 3), y, groups % 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FairnessLoss("dpp"), "rate must be one of .* got 'dpp'"),  # type: ignore[arg-type]
        (lambda: FairnessLoss(aggregate="sum"), "aggregate must be one of"),  # type: ignore[arg-type]
        (lambda: FairnessLoss(relaxation="step"), "relaxation must be one of"),  # type: ignore[arg-type]
        (lambda: FairnessLoss(task_weight=-1), "task_weight must be at least 0, got -1"),
        (lambda: FairnessLoss(min_count=0), "min_count must be positive"),
        (lambda: DPLoss(beta=-1), "beta must be at least 0"),
        (lambda: DPLoss(form="hard"), "form must be one of"),  # type: ignore[arg-type]
        (lambda: TPRLoss(steepness=0), "steepness must be positive"),
        (lambda: MulticlassCCRLoss("fpr"), "rate must be 'dp' or 'tpr'"),  # type: ignore[arg-type]
        (lambda: MulticlassCCRLoss(threshold=float("nan")), "threshold must be finite, got nan"),
        (lambda: Objectives([]), "members must hold at least one objective"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_second_derivatives_are_refused(batch):
    scores, y, groups, _ = batch
    scores.requires_grad_()
    value = FairnessLoss("dp")(scores, y, groups)
    with pytest.raises(RuntimeError, match="differentiated once only"):
        torch.autograd.grad(value, scores, create_graph=True)


def test_labels_between_classes_and_other_types_are_refused(batch):
    scores, y, groups, _ = batch
    with pytest.raises(ValueError, match="y must hold whole numbers"):
        CrossEntropy()(scores, torch.full((N,), 0.5))
    for name, arguments in {
        "y": (scores, y.numpy(), groups),
        "scores": (scores.tolist(), y, groups),
        "sample_weight": (scores, y, groups, [1.0] * N),
    }.items():
        with pytest.raises(TypeError, match=f"{name} must be a tensor, got"):
            FairnessLoss()(*arguments)  # type: ignore[arg-type]


def test_members_that_are_no_objectives_are_refused():
    with pytest.raises(TypeError, match=r"members\[1\] must be an objective"):
        Objectives([CrossEntropy(), lambda *_: torch.zeros(())])  # type: ignore[list-item]
    assert len(Objectives(loss for loss in (CrossEntropy(), FairnessLoss()))) == 2  # type: ignore[arg-type]


def test_a_worker_may_have_no_rows_of_a_weighted_batch():
    none = torch.zeros(0)
    assert len(check_batch(none, none.long(), none, is_part=True).scores) == 0


@pytest.mark.parametrize("n_classes", [1, 3])
def test_weights_that_are_learned_are_refused_by_gaps_and_serve_means(n_classes):
    torch.manual_seed(0)
    scores, y, groups = torch.randn(12, n_classes), torch.arange(12) % 2, torch.arange(12) % 3
    weight = torch.rand(12, requires_grad=True)
    match = r"sample_weight must not need a gradient.*sample_weight\.detach\(\)"
    for loss in (FairnessLoss("dp"), Objectives([CrossEntropy(), FairnessLoss("tpr")])):
        with pytest.raises(ValueError, match=match):
            loss(scores.requires_grad_(), y, groups, weight)
        loss(scores, y, groups, weight.detach())
        with torch.no_grad():
            loss(scores, y, groups, weight)
    (gradient,) = torch.autograd.grad(CrossEntropy()(scores, y, groups, weight), weight)
    assert bool(gradient.any())


@pytest.mark.parametrize("n_classes", [1, 3])
@pytest.mark.parametrize("aggregate", get_args(Aggregate))
def test_a_batch_of_rows_in_no_group_has_no_gap(n_classes, aggregate):
    scores = torch.randn(4, n_classes).requires_grad_()
    loss = FairnessLoss("dp", task_weight=0.0, aggregate=aggregate)
    value = loss(scores, torch.tensor([0, 1, 0, 1]), torch.full((4,), -1))
    assert value.item() == 0
    (gradient,) = torch.autograd.grad(value, scores)
    assert not gradient.any()
