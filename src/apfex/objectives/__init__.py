"""Objectives: what is minimised, each a scalar of scores, labels and groups.

Every objective is called as ``loss(scores, y, groups, sample_weight=None)``: ``scores`` are
logits of shape [n] (binary) or [n, c], ``y`` labels 0 to c - 1, ``groups`` codes [n], memberships
[n, k] or :class:`~apfex.groups.Groups`.
"""

from apfex.objectives._base import Objective
from apfex.objectives._ccr import MulticlassCCRLoss
from apfex.objectives._fairness import FairnessLoss
from apfex.objectives._fused import known_gradients
from apfex.objectives._gaps import gaps_of_counts
from apfex.objectives._joint import Objectives
from apfex.objectives._padh import DPLoss, TPRLoss
from apfex.objectives._pairs import Aggregate
from apfex.objectives._task import CrossEntropy, SquaredError

__all__ = [
    "CrossEntropy",
    "DPLoss",
    "FairnessLoss",
    "MulticlassCCRLoss",
    "Objective",
    "Objectives",
    "SquaredError",
    "TPRLoss",
]
