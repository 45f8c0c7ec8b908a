"""Models of group and label together, cross-fitted: what decision rules are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, final

import torch
from torch import Tensor, nn

from apfex.models._decision_rules import given_groups

_SHARES = 11
"""Mixtures of two kinds of models that are tried."""


@final
class CellModel(nn.Module):
    """Probabilities of each group and label given the inputs: a mean over models.

    Parameters
    ----------
    models : sequence of modules with k * c logits as outputs
    weights : sequence of float
        Of the models' probabilities; they sum to one.
    shape : pair of int
        k and c.

    Examples
    --------
    >>> model = CellModel([nn.Linear(3, 4)], [1.0], (2, 2))
    >>> model(torch.zeros(5, 3)).shape
    torch.Size([5, 2, 2])
    """

    def __init__(
        self, models: Sequence[nn.Module], weights: Sequence[float], shape: tuple[int, int]
    ) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)
        self.weights = tuple(weights)
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        """Probabilities [n, k, c]."""
        parts = zip(self.weights, self.models, strict=True)
        total = sum(weight * torch.softmax(model(x), 1) for weight, model in parts)
        return torch.as_tensor(total).unflatten(1, self.shape)


@final
class RuleModel(nn.Module):
    """A rule on top of a cell model, with logits as its output.

    Parameters
    ----------
    cells : CellModel
    rule : Tensor of shape [1, k, c], or [c, k, c]
        One with coefficients beyond one is scaled down, so that no score leaves [-1, 1].

    Examples
    --------
    >>> cells = CellModel([nn.Linear(3, 4)], [1.0], (2, 2))
    >>> model = RuleModel(cells, torch.tensor([[[-1.0, 1.0], [-1.0, 1.0]]]))
    >>> x = torch.randn(5, 3)
    >>> torch.allclose(torch.sigmoid(model(x)).squeeze(1), cells(x)[:, :, 1].sum(1))
    True
    """

    SHARPNESS: ClassVar[float] = 50.0
    """Of the bend that keeps scores of several classes positive, and in their order."""
    SMALLEST: ClassVar[float] = 1e-6
    """Probability, and distance from 1, below which logits of two classes do not go."""
    rule: Tensor

    def __init__(self, cells: CellModel, rule: Tensor) -> None:
        super().__init__()
        self.cells = cells
        self.register_buffer("rule", rule / rule.abs().max().clamp_min(1.0))

    def forward(self, x: Tensor, groups: Tensor | None = None) -> Tensor:
        """Logits [n, 1], or [n, c]: the signs, or the order, are those of the rule's scores.

        With ``groups`` [n], the groups of the rows, which a rule with thresholds per group needs;
        -1 where unknown.
        """
        probabilities = self.cells(x)
        if groups is not None:
            probabilities = given_groups(probabilities, groups)
        scores = probabilities.flatten(1) @ self.rule.flatten(1).T
        if scores.shape[1] == 1:
            return torch.logit((1 + scores) / 2, eps=self.SMALLEST)
        return torch.nn.functional.softplus(scores, beta=self.SHARPNESS).log()


@final
@dataclass(frozen=True, eq=False)
class CellRows:
    """Rows to learn the probabilities of group and label from.

    Attributes
    ----------
    x : Tensor of shape [n, d]
    cells : int64 Tensor of shape [n]
        ``group * c + label``.
    shape : pair of int
        k and c.
    folds : int64 Tensor of shape [n]
        From 0 on; a model is trained for each, without its rows.
    sample_weight : Tensor of shape [n], optional

    Examples
    --------
    >>> CellRows(torch.zeros(4, 3), torch.arange(4), (2, 2), torch.tensor([0, 1, 1, 0])).n_folds
    2
    """

    x: Tensor
    cells: Tensor
    shape: tuple[int, int]
    folds: Tensor
    sample_weight: Tensor | None = None

    @property
    def n_folds(self) -> int:
        """Models of each kind."""
        return int(self.folds.max()) + 1

    @property
    def weight(self) -> Tensor:
        """Weight of each row, or ones."""
        return torch.ones_like(self.x[:, 0]) if self.sample_weight is None else self.sample_weight


class CellKind(Protocol):
    """A kind of model that learns group and label together."""

    @property
    def steps(self) -> int:
        """Parts into which its training is told."""
        ...

    def fit(self, rows: CellRows, on_step: Callable[[], None]) -> tuple[list[nn.Module], Tensor]:
        """A model with k * c logits for each fold, and what they say of rows that are new to them.

        The latter are probabilities [n, k * c]; ``on_step`` is called for each part that is done.
        """
        ...


@final
@dataclass(frozen=True)
class OfColumns:
    """A kind that looks at some of the inputs only.

    Attributes
    ----------
    kind : CellKind
    start, stop : int
        From which input on, and before which.

    Examples
    --------
    >>> from apfex.models import TrainingSettings, network_kinds
    >>> rows = CellRows(torch.randn(40, 3), torch.arange(40) % 4, (2, 2), torch.arange(40) % 2)
    >>> (kind,) = network_kinds((), TrainingSettings(epochs=2))
    >>> models, _ = OfColumns(kind, 1, 3).fit(rows, lambda: None)
    >>> models[0](rows.x).shape
    torch.Size([40, 4])
    """

    kind: CellKind
    start: int
    stop: int

    @property
    def steps(self) -> int:
        """Those of the kind."""
        return self.kind.steps

    def fit(self, rows: CellRows, on_step: Callable[[], None]) -> tuple[list[nn.Module], Tensor]:
        """Fit the kind to its inputs."""
        own = replace(rows, x=rows.x[:, self.start : self.stop])
        models, unseen = self.kind.fit(own, on_step)
        return [ColumnsModel(model, self.start, self.stop) for model in models], unseen


@final
class ColumnsModel(nn.Module):
    """A model that looks at some of the inputs only.

    Parameters
    ----------
    model : module
    start, stop : int
        From which input on, and before which.

    Examples
    --------
    >>> ColumnsModel(nn.Linear(2, 4), 1, 3)(torch.zeros(5, 3)).shape
    torch.Size([5, 4])
    """

    def __init__(self, model: nn.Module, start: int, stop: int) -> None:
        super().__init__()
        self.model, self.start, self.stop = model, start, stop

    def forward(self, x: Tensor) -> Tensor:
        """What the model says of its inputs."""
        return self.model(x[:, self.start : self.stop])


def fit_cells(
    rows: CellRows, kinds: Sequence[CellKind], on_step: Callable[[], None] = lambda: None
) -> tuple[CellModel, Tensor]:
    """Train a cell model, and say what it predicts for rows that it has not seen.

    Parameters
    ----------
    rows : CellRows
    kinds : sequence of CellKind
        :func:`network_kinds`, for instance.
    on_step : callable, optional
        Called for each of the steps of each kind, one kind after the other.

    Returns
    -------
    model : CellModel
        All models together.
    unseen : Tensor of shape [n, k, c]
        For each row the prediction of those that were trained without its fold.

    Notes
    -----
    The kinds are mixed in the proportion that predicts unseen rows best: small tables have no use
    for networks, and large ones none for linear models.

    Examples
    --------
    >>> from apfex.models import TrainingSettings, network_kinds
    >>> rows = CellRows(torch.randn(40, 3), torch.arange(40) % 4, (2, 2), torch.arange(40) % 4)
    >>> model, unseen = fit_cells(rows, network_kinds((8,), TrainingSettings(epochs=2)))
    >>> unseen.shape
    torch.Size([40, 2, 2])
    """
    fitted = [kind.fit(rows, on_step) for kind in kinds]
    unseen = [probabilities for _, probabilities in fitted]
    shares = _best_shares(unseen, rows.cells, rows.weight)
    models, weights = [], []
    for (found, _), share in zip(fitted, shares, strict=True):
        if share > 0:
            models += found
            weights += [share / len(found)] * len(found)
    kept = [share * part for share, part in zip(shares, unseen, strict=True) if share > 0]
    mixed = torch.stack(kept).sum(0)
    return CellModel(models, weights, rows.shape), mixed.unflatten(1, rows.shape)


def _best_shares(unseen: Sequence[Tensor], cells: Tensor, weight: Tensor) -> list[float]:
    """Shares of the kinds [n, k c] with the least log loss on unseen rows, found one by one."""
    own = [part.gather(1, cells.unsqueeze(1)).squeeze(1) for part in unseen]
    own = [part.nan_to_num(0.0) for part in own]  # a kind that has diverged knows nothing
    grid = torch.linspace(0, 1, _SHARES).to(own[0])
    shares, so_far = [1.0], own[0]
    for part in own[1:]:
        mixed = torch.lerp(so_far, part, grid.unsqueeze(1))
        best = int((mixed.clamp_min(1e-12).log() @ weight.to(mixed)).argmax())
        share, so_far = float(grid[best]), mixed[best]
        shares = [*(other * (1 - share) for other in shares), share]
    return shares
