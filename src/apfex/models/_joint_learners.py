"""Trees that learn group and label together: the label first, then the group given the label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from torch import Tensor, nn

from apfex.models._grow import grow
from apfex.models._joint_model import CellRows
from apfex.models._trees import Trees, TreeSettings, quantise, side_by_side, unbinned

if TYPE_CHECKING:
    from xgboost import Booster, DMatrix


@final
class TreeCells(nn.Module):
    """Log-probabilities of each group and label: those of the label, plus the group's given it.

    Parameters
    ----------
    label : Trees
        One margin, or c for several classes.
    group : Trees or None
        One margin, or k for more than two groups, from the inputs and the label; None for a
        single group.
    shape : pair of int
        k and c.

    Examples
    --------
    >>> rows = CellRows(torch.randn(40, 2), torch.arange(40) % 4, (2, 2), torch.arange(40) % 2)
    >>> models, _ = TreeKind(TreeSettings.for_rows(40), "qq", 2).fit(rows, lambda: None)
    >>> models[0](rows.x).exp().sum(1).round(decimals=4).unique()
    tensor([1.])
    """

    def __init__(self, label: Trees, group: Trees | None, shape: tuple[int, int]) -> None:
        super().__init__()
        self.label, self.group, self.shape = label, group, shape

    def forward(self, x: Tensor) -> Tensor:
        """Shape [n, k * c]."""
        labels = _log_shares(self.label(x))
        if self.group is None:
            return labels
        told = (_beside(x, x.new_full((len(x),), y)) for y in range(self.shape[1]))
        groups = [_log_shares(self.group(inputs)) for inputs in told]
        return (labels.unsqueeze(1) + torch.stack(groups, 2)).flatten(1)


@final
@dataclass(frozen=True)
class TreeKind:
    """Boosted trees as a kind of cell model.

    The number of rounds is that with the least loss on unseen rows, the same for all folds.

    Attributes
    ----------
    settings : TreeSettings
        Of the trees of the label; those of the group are fewer.
    feature_types : sequence of str
        "q" or "c" for each input: a quantity, or a category's code.
    n_folds : int

    Examples
    --------
    >>> rows = CellRows(torch.randn(80, 3), torch.arange(80) % 4, (2, 2), torch.arange(80) % 2)
    >>> kind = TreeKind(TreeSettings.for_rows(80), ("q", "q", "q"), n_folds=2)
    >>> models, unseen = kind.fit(rows, lambda: None)
    >>> unseen.shape
    torch.Size([80, 4])
    """

    settings: TreeSettings
    feature_types: Sequence[str]
    n_folds: int

    @property
    def steps(self) -> int:
        """Ensembles: of the label, then of the group."""
        return 2 * self.n_folds

    def fit(self, rows: CellRows, on_step: Callable[[], None]) -> tuple[list[nn.Module], Tensor]:
        """Trees for each fold, and probabilities [n, k * c] by those that have not seen it."""
        (k, c), x = rows.shape, rows.x
        labels, groups = rows.cells % c, rows.cells // c
        told = _beside(x, labels.to(x))
        types = [*self.feature_types, "q" if c == 2 else "c"]
        of_label = self._boost(rows, x, self.feature_types, labels, c, self.settings, on_step)
        of_group: Sequence[Trees | None] = [None] * rows.n_folds
        if k > 1:
            settings = self.settings.of_groups()
            of_group = self._boost(rows, told, types, groups, k, settings, on_step)
        else:
            for _ in of_group:
                on_step()
        models: list[nn.Module] = [
            TreeCells(label, group, rows.shape)
            for label, group in zip(of_label, of_group, strict=True)
        ]
        unseen = torch.empty(len(x), k * c, dtype=x.dtype, device=x.device)
        for fold, model in enumerate(models):
            held = rows.folds == fold
            unseen[held] = model(x[held]).exp()
        return models, unseen

    def _boost(
        self,
        rows: CellRows,
        x: Tensor,
        types: Sequence[str],
        target: Tensor,
        n_classes: int,
        settings: TreeSettings,
        on_step: Callable[[], None],
    ) -> list[Trees]:
        """An ensemble for each fold, cut where unseen rows are predicted best."""
        inputs, known, folds = (part.cpu().numpy() for part in (x, target, rows.folds))
        weight = rows.weight.cpu().numpy()

        def matrix(make: Callable[..., DMatrix], part: np.ndarray) -> DMatrix:
            return make(inputs[part], types, label=known[part], weight=weight[part])

        def learn(fold: int) -> tuple[Booster, list[float]]:
            data, check = matrix(quantise, folds != fold), matrix(unbinned, folds == fold)
            return grow(settings, n_classes, data, check)

        boosters, losses = [], []
        for booster, loss in side_by_side(learn, range(rows.n_folds)):
            boosters.append(booster)
            losses.append(loss)
            on_step()
        rounds = int(np.mean(losses, axis=0).argmin()) + 1
        return [Trees(booster[:rounds]) for booster in boosters]


def _log_shares(margins: Tensor) -> Tensor:
    """Log-probabilities [n, c] by c margins, or by one of the second of two."""
    if margins.shape[1] == 1:
        margins = torch.cat([torch.zeros_like(margins), margins], 1)
    return torch.log_softmax(margins, 1)


def _beside(x: Tensor, column: Tensor) -> Tensor:
    return torch.cat([x, column.unsqueeze(1)], 1)
