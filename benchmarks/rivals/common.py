"""What all methods share: the data they see, the points they return, and the small network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import Tensor, nn

from apfex.objectives import FairnessLoss

BATCH = 1024
GAPS = ("dp", "tpr")


@dataclass(frozen=True)
class Recipe:
    """How the network that rivals share is made and trained, by the size of the table."""

    hidden: int
    rate: float
    decay: float
    epochs: int
    batches: int

    @staticmethod
    def of(n: int) -> Recipe:
        """On large tables as our own networks; on small ones slower, where those would overfit."""
        batches = max(1, round(n / BATCH))
        if n >= 10_000:
            return Recipe(64, 2e-2, 1e-1, min(24, max(12, round(800 / batches))), batches)
        return Recipe(32, 5e-3, 1e-2, max(12, -(-200 // batches)), batches)


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one part of the split.

    ``x`` are the encoded inputs (float32, [n, d]), the encoder fitted on training rows; ``table``
    and ``sensitive`` are the same rows as loaded, for a method that encodes by itself. No column
    of ``x`` or ``table`` is sensitive, but in a table with attributes; ``group`` are codes of the
    crossing, from 0 to ``n_groups`` - 1. ``feature_types`` tell for each column of ``x`` whether it
    is a quantity, "q", or codes of categories, "c"; not given, all are quantities.
    """

    x: NDArray[np.float32]
    y: NDArray[np.int64]
    group: NDArray[np.int64]
    n_groups: int
    table: pd.DataFrame
    sensitive: pd.DataFrame
    encoding: str
    feature_types: Sequence[str] = ()

    def __post_init__(self) -> None:
        types = tuple(self.feature_types) or ("q",) * self.x.shape[1]
        if len(types) != self.x.shape[1] or not {"q", "c"} >= set(types):
            raise ValueError(
                f"feature_types must hold 'q' or 'c' for each of the {self.x.shape[1]} columns of "
                f"x, got {list(self.feature_types)}."
            )
        object.__setattr__(self, "feature_types", types)

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class Point:
    """Hard decisions (0 or 1) of one model on validation and on test rows.

    ``name`` is unique within a run, and tells which setting made the model. On tables with folds,
    points of the same name are pooled over the folds.
    """

    name: str
    validation: NDArray[Any]
    test: NDArray[Any]


Method = Callable[[Part, Part, Part, int], list[Point]]
MakeModel = Callable[[Part, int], Any]
"""Takes training rows and a seed; makes a classifier as scikit-learn has them."""


def needs_attribute(method: Method) -> Method:
    """Mark a method that reads the sensitive attribute of the rows it decides on."""
    method.needs_attribute = True  # type: ignore[attr-defined]
    return method


def takes(*encodings: str) -> Callable[[Method], Method]:
    """Mark a method with the encodings it runs on, where they are not the usual ones."""

    def mark(method: Method) -> Method:
        method.encodings = encodings  # type: ignore[attr-defined]
        return method

    return mark


def encodings_of(method: Method) -> tuple[str, ...]:
    """Encodings that a method runs on; codes of categories mean nothing to most."""
    return getattr(method, "encodings", ("plain", "tree"))


Step = Callable[[nn.Module, Tensor, Tensor, Tensor], None]
"""Takes network, scores, labels and group codes of a batch; leaves gradients in the network."""


def train_network(train: Part, seed: int, step: Step) -> nn.Module:
    """Train the network that all rivals share: one hidden layer, AdamW with a cosine."""
    torch.manual_seed(seed)
    recipe = Recipe.of(len(train))
    network = nn.Sequential(
        nn.Linear(train.x.shape[1], recipe.hidden),
        nn.ReLU(),
        nn.Linear(recipe.hidden, 1),
        nn.Flatten(0),
    )
    x, y, group = map(torch.from_numpy, (train.x, train.y, train.group))
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=recipe.decay, fused=True)
    steps = recipe.epochs * recipe.batches
    rates = iter(0.5 * recipe.rate * (1 + np.cos(np.linspace(0, np.pi, steps + 1))))
    for _ in range(recipe.epochs):
        for rows in torch.randperm(len(y)).tensor_split(recipe.batches):
            optimizer.param_groups[0]["lr"] = float(next(rates))
            optimizer.zero_grad()
            step(network, network(x[rows]), y[rows], group[rows])
            optimizer.step()
    return network


def cross_entropy(scores: Tensor, y: Tensor) -> Tensor:
    return nn.functional.binary_cross_entropy_with_logits(scores, y.to(scores.dtype))


def gap_loss(rate: str) -> FairnessLoss:
    """Mean difference over pairs of groups of a batch's rates, in probabilities."""
    return FairnessLoss(rate, relaxation="identity", task_weight=0.0, aggregate="mean")


def plain_step(_network: nn.Module, scores: Tensor, y: Tensor, _group: Tensor) -> None:
    cross_entropy(scores, y).backward()


def scores_of(network: nn.Module, part: Part) -> NDArray[np.float64]:
    with torch.no_grad():
        return network(torch.from_numpy(part.x)).double().numpy()


def network_point(name: str, network: nn.Module, validation: Part, test: Part) -> Point:
    decided = [scores_of(network, part) > 0 for part in (validation, test)]
    return Point(name, *decided)


def network_points(
    train: Part, validation: Part, test: Part, seed: int, steps: Sequence[tuple[str, Step]]
) -> list[Point]:
    """One trained network for each step, and a plain one."""
    return [
        network_point(name, train_network(train, seed, step), validation, test)
        for name, step in [("plain", plain_step), *steps]
    ]


class NetworkClassifier(ClassifierMixin, BaseEstimator):
    """A trained network as scikit-learn sees one, for post-processing."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.classes_ = np.array([0, 1])

    def fit(self, _x: Any, _y: Any) -> NetworkClassifier:
        return self

    def predict_proba(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        with torch.no_grad():
            scores = self.network(torch.as_tensor(np.asarray(x, np.float32)))
        positive = torch.sigmoid(scores.double()).numpy()
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.int64]:
        return (self.predict_proba(x)[:, 1] > 0.5).astype(np.int64)


def fitted_network(train: Part, seed: int) -> NetworkClassifier:
    """The plain network, as post-processing wants its model."""
    return NetworkClassifier(train_network(train, seed, plain_step))
