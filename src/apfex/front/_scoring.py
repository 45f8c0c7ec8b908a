"""Scoring: what a wrong decision costs, by which points are ranked and rules are fitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from apfex.front._rows import ValidationRows
from apfex.metrics import class_recalls

Scorer = Callable[[np.ndarray, np.ndarray, np.ndarray | None], float]
"""Of labels, decisions and weights of the rows; greater is better."""


@final
@dataclass(frozen=True, eq=False)
class Scoring:
    """What points are ranked by: a loss of decisions, smaller is better.

    Attributes
    ----------
    name : str
        "error", "balanced_error", "cost", or "1 - " and the name of a scorer.
    costs : array of shape [c, c] or None
        What it costs to decide for the class of a column where the label is that of the row.
    selection_rate : float or None
        Share of all rows that get the favorable label at every point.
    class_weight : array of shape [c] or None
        How much an error on a row of each label counts when rules are fitted; points are ranked
        without it.
    scorer : callable or None

    Examples
    --------
    >>> Scoring("cost", costs=np.array([[0.0, 1.0], [5.0, 0.0]])).name
    'cost'
    """

    name: str = "error"
    costs: np.ndarray | None = None
    selection_rate: float | None = None
    class_weight: np.ndarray | None = None
    scorer: Scorer | None = None

    def losses(self, decisions: Tensor, rows: ValidationRows) -> Tensor:
        """Losses [b] of decisions [b, n] on the validation rows, float64."""
        device = decisions.device
        y = torch.from_numpy(rows.y).to(device)
        weight = torch.from_numpy(rows.weight).to(device)
        if self.scorer is not None:
            decided = decisions.cpu().numpy()
            scores = [self.scorer(rows.y, one, rows.sample_weight) for one in decided]
            return 1 - torch.tensor(scores, dtype=torch.float64, device=device)
        if self.costs is not None:
            costs = torch.from_numpy(self.costs).to(device)
            return costs[y.expand_as(decisions), decisions] @ (weight / weight.sum())
        if self.name == "balanced_error":  # a class of a single row is in the training part
            return 1 - class_recalls(decisions, y, rows.n_classes, weight).nanmean(1)
        return 1 - (decisions == y).double() @ (weight / weight.sum())

    def losses_of(self, tables: np.ndarray) -> Tensor:
        """Losses [b] of tables [b, c, c]: sums of weights by label and decision."""
        total = tables.sum((1, 2))
        if self.scorer is not None:
            y, decided = (places.ravel() for places in np.indices(tables.shape[1:]))
            found = [1 - self._score(y, decided, table.ravel()) for table in tables]
        elif self.costs is not None:
            found = (tables * self.costs).sum((1, 2)) / total
        else:
            hits = np.diagonal(tables, axis1=1, axis2=2)
            found = 1 - hits.sum(1) / total
            if self.name == "balanced_error":
                labels = tables.sum(2)
                with np.errstate(invalid="ignore"):
                    found = 1 - np.nanmean(np.where(labels > 0, hits / labels, np.nan), 1)
        return torch.tensor(np.asarray(found), dtype=torch.float64)

    def _score(self, y: np.ndarray, decided: np.ndarray, weight: np.ndarray) -> float:
        """The scorer's value of cells with weights; those without rows are left out."""
        assert self.scorer is not None
        there = weight > 0
        return self.scorer(y[there], decided[there], weight[there])

    def row_losses(self, decisions: Tensor, rows: ValidationRows) -> Tensor | None:
        """What each decision [b, n] is worth, so that the loss is their weighted mean.

        None for a scorer, whose value is no mean over rows.
        """
        if self.scorer is not None:
            return None
        y = torch.from_numpy(rows.y).to(decisions.device)
        if self.costs is not None:
            return torch.from_numpy(self.costs).to(y.device)[y, decisions]
        wrong = (decisions != y).double()
        if self.name != "balanced_error":
            return wrong
        weight = torch.from_numpy(rows.weight).to(y.device)
        shares = torch.bincount(y, weight, rows.n_classes) / weight.sum()
        return wrong / (shares * (shares > 0).sum()).clamp_min(1e-12)[y]

    def without_inputs(self, losses: Tensor, favorable: int) -> tuple[float, int | None]:
        """Loss of the best decision that looks at nobody, one class for all rows, and the class.

        With a fixed selection rate: that of choosing so many rows at random, and None. ``losses``
        [c] are those of deciding for each class alone.
        """
        c = len(losses)
        if self.selection_rate is None:
            return float(losses.min()), int(losses.argmin())
        shares = torch.full((c,), 1 - self.selection_rate, dtype=torch.float64)
        shares[favorable] = self.selection_rate
        return float(losses @ shares), None

    def costs_of(self, label_shares: Tensor) -> Tensor | None:
        """Costs [c, c] that rules are fitted by, for labels of these shares [c]; None: errors.

        They are scaled so that deciding as badly as one can costs 1 on average.
        """
        c = len(label_shares)
        if self.costs is not None:
            costs = torch.from_numpy(self.costs).to(label_shares)
            costs = costs - costs.amin(1, keepdim=True)
            return costs / (label_shares @ costs.amax(1)).clamp_min(1e-12)
        weight = self.label_weights(label_shares)
        return None if weight is None else weight[:, None] * (1 - torch.eye(c).to(label_shares))

    def label_weights(self, label_shares: Tensor) -> Tensor | None:
        """How much an error on each label [c] counts, 1 on average over labels of these shares."""
        if self.name == "balanced_error":  # classes count alike, so rows of a rare one count more
            return 1 / (len(label_shares) * label_shares.clamp_min(1e-6))
        if self.class_weight is None:
            return None
        given = torch.from_numpy(self.class_weight).to(label_shares)
        return given / (label_shares @ given).clamp_min(1e-12)


def scorer_of(name: str, n_classes: int, favorable: int) -> Scorer:
    """One of scikit-learn's scorers, of decisions as codes of classes.

    Of two classes the favorable one is the label 1, whatever it is called.

    Examples
    --------
    >>> y, decided = np.array([0, 0, 1]), np.array([0, 0, 0])
    >>> [scorer_of("recall", 2, favorable)(y, decided, None) for favorable in (0, 1)]
    [1.0, 0.0]
    """
    from sklearn.metrics import get_scorer

    scorer, classes = get_scorer(name), np.arange(n_classes)

    def score(y: np.ndarray, decided: np.ndarray, weight: np.ndarray | None) -> float:
        given: dict[str, Any] = {} if weight is None else {"sample_weight": weight}
        if n_classes == 2:
            y, decided = ((codes == favorable).astype(int) for codes in (y, decided))
        return float(scorer(_Decided(classes), decided, y, **given))

    return score


@final
class _Decided:
    """A classifier whose decisions are known: its inputs are their codes."""

    _estimator_type = "classifier"

    def __init__(self, classes: np.ndarray) -> None:
        self.classes_ = classes

    def fit(self, *_: Any) -> _Decided:
        """Nothing is left to learn."""
        return self

    def predict(self, codes: np.ndarray) -> np.ndarray:
        return self.classes_[codes]

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags("classifier", TargetTags(required=True), None, ClassifierTags())
