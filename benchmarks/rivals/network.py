"""The small network that rivals share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from apfex.objectives import FairnessLoss
from rivals.common import Candidate, Method, Part, by_candidates, hold_out, mark

BATCH = 1024


@dataclass(frozen=True)
class Recipe:
    """How the network is made and trained, by the size of the table."""

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


Step = Callable[[nn.Module, Tensor, Tensor, Tensor], None]
"""Takes network, scores, labels and group codes of a batch; leaves gradients in the network."""


def train_network(train: Part, seed: int, step: Step) -> nn.Module:
    """One hidden layer, AdamW with a cosine."""
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


def candidate(network: nn.Module, held: Part, test: Part) -> Candidate:
    with torch.no_grad():
        return Candidate(*((network(torch.from_numpy(p.x)) > 0).numpy() for p in (held, test)))


def trained_by(make_steps: Callable[[str, int], Sequence[Step]]) -> Method:
    """A network for each of the steps of a problem (and number of groups), and a plain one."""

    @mark(encoding="numbers", slow=True)
    def method(rows: Part, test: Part, seed: int):  # noqa: ANN202
        train, held = hold_out(rows, seed)
        plain = candidate(train_network(train, seed, plain_step), held, test)

        def fit(problem: str) -> list[Candidate]:
            networks = (train_network(train, seed, s) for s in make_steps(problem, rows.n_groups))
            return [plain, *(candidate(network, held, test) for network in networks)]

        yield from by_candidates(fit, held)

    return method
