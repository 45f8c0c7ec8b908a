"""Models of group and label together, cross-fitted: what decision rules are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import final

import torch
from torch import Tensor, nn

from apfex.training._aims import Aims
from apfex.training._mlp import StackedMLP
from apfex.training._rows import TrainingRows
from apfex.training._rules import given_groups
from apfex.training._train import TrainingSettings, train_population

_SHARPNESS = 50.0
"""Of the bend that keeps scores of several classes positive, and in their order."""
_SHARES = 11
"""Mixtures of two kinds of models that are tried."""


@final
class CellModel(nn.Module):
    """Probabilities of each group and label given the inputs: a mean over networks.

    Parameters
    ----------
    networks : sequence of modules with k * c outputs
    weights : sequence of float
        Of the networks' probabilities; they sum to one.
    shape : pair of int
        k and c.

    Examples
    --------
    >>> model = CellModel([nn.Linear(3, 4)], [1.0], (2, 2))
    >>> model(torch.zeros(5, 3)).shape
    torch.Size([5, 2, 2])
    """

    def __init__(
        self, networks: Sequence[nn.Module], weights: Sequence[float], shape: tuple[int, int]
    ) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.weights = tuple(weights)
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        """Probabilities [n, k, c]."""
        parts = zip(self.weights, self.networks, strict=True)
        total = sum(weight * torch.softmax(network(x), 1) for weight, network in parts)
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
            return torch.logit((1 + scores) / 2, eps=1e-6)
        return torch.nn.functional.softplus(scores, beta=_SHARPNESS).log()


@final
@dataclass(frozen=True)
class CellSettings:
    """How cell models are trained.

    Attributes
    ----------
    hidden : tuple of int
        Widths of the networks' hidden layers; empty for linear models only.
    folds : int
        Networks of each kind; each is trained without one fold of the rows.
    training : TrainingSettings
    linear_decay : float
        Rows whose worth the weight decay of the linear models has: that over the number of rows,
        at most one.

    Examples
    --------
    >>> CellSettings(hidden=(16,)).folds
    4
    """

    hidden: tuple[int, ...] = (64,)
    folds: int = 4
    training: TrainingSettings = field(default_factory=TrainingSettings)
    linear_decay: float = 1_000.0


def fit_cells(
    x: Tensor,
    cells: Tensor,
    shape: tuple[int, int],
    folds: Tensor,
    settings: CellSettings,
    sample_weight: Tensor | None = None,
    on_epoch: Callable[[int], None] | None = None,
) -> tuple[CellModel, Tensor]:
    """Train a cell model, and say what it predicts for rows that it has not seen.

    Parameters
    ----------
    x : Tensor of shape [n, d]
    cells : int64 Tensor of shape [n]
        ``group * c + label``.
    shape : pair of int
        k and c.
    folds : int64 Tensor of shape [n]
        From 0 to ``settings.folds`` - 1.
    settings : CellSettings
    sample_weight : Tensor of shape [n], optional
    on_epoch : callable, optional
        Called with the number of epochs done; linear models come first.

    Returns
    -------
    model : CellModel
        All networks together.
    unseen : Tensor of shape [n, k, c]
        For each row the prediction of those that were trained without its fold.

    Notes
    -----
    Two kinds of models are trained, linear ones and networks, each as one stacked population. They
    are mixed in the proportion that predicts unseen rows best: small tables have no use for
    networks, and large ones none for linear models.

    Examples
    --------
    >>> x, cells = torch.randn(40, 3), torch.arange(40) % 4
    >>> settings = CellSettings(training=TrainingSettings(epochs=2))
    >>> model, unseen = fit_cells(x, cells, (2, 2), torch.arange(40) % 4, settings)
    >>> unseen.shape
    torch.Size([40, 2, 2])
    """
    kinds = [(), settings.hidden] if settings.hidden else [()]
    weight = torch.ones(len(x)).to(x) if sample_weight is None else sample_weight.to(x)
    numbers = torch.arange(settings.folds, device=x.device)
    learnt = weight * (folds != numbers.unsqueeze(1))  # [b, n]
    rows = TrainingRows(x, cells, cells.new_empty(0, len(x)), (), learnt)
    populations = [_train(hidden, rows, shape, settings, on_epoch) for hidden in kinds]
    unseen = torch.stack([_unseen(population, x, folds) for population in populations])
    shares = _best_shares(unseen, cells, weight)
    networks, weights = [], []
    for population, share in zip(populations, shares, strict=True):
        if share > 0:
            networks += [population.member(fold) for fold in range(settings.folds)]
            weights += [share / settings.folds] * settings.folds
    kept = [share * part for share, part in zip(shares, unseen, strict=True) if share > 0]
    mixed = torch.stack(kept).sum(0)
    return CellModel(networks, weights, shape), mixed.unflatten(1, shape)


def _train(
    hidden: tuple[int, ...],
    rows: TrainingRows,
    shape: tuple[int, int],
    settings: CellSettings,
    on_epoch: Callable[[int], None] | None,
) -> StackedMLP:
    training = settings.training
    if not hidden:
        decay = min(1.0, settings.linear_decay / len(rows.y))
        training = replace(training, weight_decay=decay)
    n_cells = shape[0] * shape[1]
    made = StackedMLP(rows.x.shape[1], n_cells, hidden, settings.folds, training.seed)
    population = made.to(rows.x.device)
    aims = Aims((), rows.x.new_zeros(settings.folds, 0))

    def after(epoch: int) -> None:
        if on_epoch is not None:
            on_epoch(epoch)

    train_population(population, aims, rows, training, after)
    return population


def _unseen(population: StackedMLP, x: Tensor, folds: Tensor) -> Tensor:
    """Probabilities [n, k c] by the member that has not seen the row."""
    with torch.no_grad():
        parts = zip(x.split(2**14), folds.split(2**14), strict=True)
        chosen = [
            population.scores(rows)[fold, torch.arange(len(rows), device=x.device)]
            for rows, fold in parts
        ]
    return torch.softmax(torch.cat(chosen), 1)


def _best_shares(unseen: Tensor, cells: Tensor, weight: Tensor) -> list[float]:
    """Shares of the kinds [s, n, k c] with the least log loss on unseen rows."""
    if len(unseen) == 1:
        return [1.0]
    own = unseen.gather(2, cells.expand(len(unseen), -1).unsqueeze(2)).squeeze(2)  # [2, n]
    own = own.nan_to_num(0.0)  # a kind that has diverged knows nothing
    grid = torch.linspace(0, 1, _SHARES).to(own)
    mixed = torch.lerp(own[:1], own[1:], grid.unsqueeze(1)).clamp_min(1e-12)
    share = float(grid[(mixed.log() @ weight).argmax()])
    return [1 - share, share]
