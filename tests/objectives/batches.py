"""A batch, and every objective, for tests of objectives."""

from apfex.objectives import (
    CrossEntropy,
    DPLoss,
    FairnessLoss,
    SquaredError,
    TPRLoss,
)

N = 60


LOSSES = [
    CrossEntropy(),
    SquaredError(),
    FairnessLoss("dp"),
    FairnessLoss("tpr", relaxation="ccr", aggregate="max"),
    FairnessLoss("ppv", relaxation="identity", aggregate="smooth_max"),
    FairnessLoss("fpr", aggregate="mean", task_weight=0.0),
    DPLoss(beta=0.3),
    TPRLoss(form="masked"),
]


def two_groups(loss, groups):
    return groups % 2 if isinstance(loss, (DPLoss, TPRLoss)) else groups
