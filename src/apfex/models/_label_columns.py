"""Label probabilities of a user's model among the inputs, and the group learnt from the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor, nn

from apfex.models._checkpoint import NOWHERE, Checkpoint
from apfex.models._groupings_model import GroupingsModel
from apfex.models._joint_model import JointModel
from apfex.models._joint_trees import TreeLearner, log_groups_given_labels
from apfex.models._rows import JointRows
from apfex.models._trees import Trees

_LEAST = 1e-6
"""A probability of zero counts as this much: a forest is often sure, and sometimes wrong."""
_LEAST_MARGIN = 1e-6
"""Log-odds of a row that a model decides against the likelier label."""


@final
class LabelColumnsModel(nn.Module):
    """Log-probabilities of group and label: those of the label are inputs.

    Parameters
    ----------
    start : int
        The first of c inputs that are the probabilities of the label.
    group : Trees, GroupingsModel or None
        One margin, or k for more than two groups, from the other inputs and the label. None for a
        single group.
    n_features : int
        The group is told from the first inputs, as many as this.
    shape : pair of int
        k and c.
    kind : str
        Whose probabilities they are: the class of the user's model.

    Examples
    --------
    >>> x = torch.tensor([[0.3, 0.9, 0.1], [0.6, 0.2, 0.8]])
    >>> LabelColumnsModel(1, None, 1, (1, 2))(x).exp()
    tensor([[0.9000, 0.1000],
            [0.2000, 0.8000]])
    """

    def __init__(
        self,
        start: int,
        group: Trees | GroupingsModel | None,
        n_features: int,
        shape: tuple[int, int],
        kind: str = "model",
    ) -> None:
        super().__init__()
        self.kind = kind
        self.start, self.group, self.n_features, self.shape = start, group, n_features, shape

    def forward(self, x: Tensor) -> Tensor:
        """Return log-probabilities [n, k * c]."""
        c = self.shape[1]
        labels = x[:, self.start : self.start + c].clamp_min(_LEAST).log()
        if self.group is None:
            return labels
        groups = log_groups_given_labels(self.group, x[:, : self.n_features], c)
        return (labels.unsqueeze(1) + groups).flatten(1)


@final
@dataclass(frozen=True)
class LabelColumnsLearner:
    """The label by a user's model, whose probabilities are inputs; the group by boosted trees.

    Attributes
    ----------
    trees : TreeLearner
        Of the group, given the label.
    n_features : int
        The first inputs, which the trees see; after them come c probabilities for each model.
    n_models : int
        One for each fold, which did not learn from it; or one in all, which learnt from no row.
    kind : str
        Class of the user's model.

    Examples
    --------
    >>> from apfex.models import TreeSettings
    >>> x = torch.cat([torch.randn(40, 1), torch.full((40, 2), 0.5)], 1)
    >>> rows = JointRows(x, torch.arange(40) % 4, (2, 2), torch.arange(40) % 2)
    >>> trees = TreeLearner(TreeSettings.for_rows(40), "q", n_folds=2)
    >>> models, out_of_fold = LabelColumnsLearner(trees, n_features=1, n_models=1).fit(
    ...     rows, lambda: None
    ... )
    >>> out_of_fold.unflatten(1, (2, 2)).sum(1)[0]
    tensor([0.5000, 0.5000])
    """

    trees: TreeLearner
    n_features: int
    n_models: int
    kind: str = "model"

    @property
    def steps(self) -> int:
        """Number of ensembles of the group."""
        return self.trees.n_folds

    def fit(
        self, rows: JointRows, on_step: Callable[[], None], checkpoint: Checkpoint = NOWHERE
    ) -> tuple[list[nn.Module], Tensor]:
        """Grow trees of the group for each fold; return models and out-of-fold probabilities."""
        (k, c), x = rows.shape, rows.x
        own = replace(rows, x=x[:, : self.n_features])
        models: list[nn.Module] = []
        out_of_fold = torch.empty(len(x), k * c, dtype=x.dtype, device=x.device)
        for fold, group in enumerate(self.trees.fit_groups(own, on_step, checkpoint)):
            start = self.n_features + c * (fold % self.n_models)
            models.append(LabelColumnsModel(start, group, self.n_features, rows.shape, self.kind))
            chosen = rows.folds == fold
            out_of_fold[chosen] = models[-1](x[chosen]).exp()
        return models, out_of_fold


@final
class InitModel(nn.Module):
    """The user's own model as it decides, without a rule.

    Parameters
    ----------
    joint : JointModel
        Made with the model; it has calibrated probabilities.
    start : int
        The first of c inputs that are the model's probabilities of the label.
    decided : int or None
        The input that is the code of the model's decision, where that is not always the likelier
        label.

    Examples
    --------
    >>> joint = JointModel([LabelColumnsModel(0, None, 0, (1, 2))], [1.0], (1, 2))
    >>> p = torch.tensor([[0.25, 0.75], [0.75, 0.25], [0.5, 0.5]])
    >>> InitModel(joint, 0)(p).squeeze(1) > 0
    tensor([ True, False, False])
    """

    def __init__(self, joint: JointModel, start: int, decided: int | None = None) -> None:
        super().__init__()
        self.joint, self.start, self.decided = joint, start, decided

    def forward(self, x: Tensor, groups: Tensor | None = None) -> Tensor:
        """Return log-odds [n, 1], or logits [n, c], that decide as the model; groups are unused."""
        del groups
        c = self.joint.shape[1]
        logits = x[:, self.start : self.start + c].clamp_min(_LEAST).log()
        if self.decided is not None:
            logits = _raise(logits, x[:, self.decided].long())
        return logits[:, 1:] - logits[:, :1] if c == 2 else logits

    def label_probabilities(self, x: Tensor, groups: Tensor | None = None) -> Tensor:
        """Return calibrated probabilities of the label [n, c]."""
        del groups
        return self.joint(x).sum(1)


def _raise(logits: Tensor, codes: Tensor) -> Tensor:
    """Logits whose largest is that of the code, barely so where it was not."""
    own = torch.zeros_like(logits).scatter_(1, codes.unsqueeze(1), 1.0).bool()
    highest = logits.masked_fill(own, -torch.inf).amax(1, keepdim=True)
    return torch.where(own & (logits <= highest), highest + _LEAST_MARGIN, logits)
