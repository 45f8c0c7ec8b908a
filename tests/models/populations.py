"""Modules of all sorts that a population may be made of."""

import torch
from torch import nn

from apfex.models import StackedMLP, StackedModules


def perceptron(d, c):
    return nn.Sequential(nn.Linear(d, 5), nn.ReLU(), nn.Dropout(0.0), nn.Linear(5, c))


def normed(d, c):
    # No bias before the norm: it has no slope but rounding, which Adam would blow up.
    return nn.Sequential(nn.Linear(d, 6, bias=False), nn.BatchNorm1d(6), nn.Linear(6, c))


def dropping(d, c):
    return nn.Sequential(nn.Linear(d, 8), nn.Dropout(0.5), nn.Linear(8, c))


class Convolution(nn.Module):
    def __init__(self, d, c):
        super().__init__()
        self.filter, self.head = nn.Conv1d(1, 2, 2), nn.Linear(2 * (d - 1), c)

    def forward(self, x):
        return self.head(self.filter(x.unsqueeze(1)).relu().flatten(1))


class Branching(nn.Module):
    def __init__(self, d, c):
        super().__init__()
        self.up, self.down = nn.Linear(d, c), nn.Linear(d, c)

    def forward(self, x):
        return self.up(x) if self.up(x).sum() > 0 else self.down(x)


class Tied(nn.Module):
    def __init__(self, d, c):
        super().__init__()
        self.encode, self.decode = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.decode.weight = self.encode.weight
        self.head = nn.Linear(d, c)

    def forward(self, x):
        return self.head(self.decode(self.encode(x).tanh()))


class Counting(nn.Module):
    """Replaces its buffer instead of changing it in place."""

    steps: torch.Tensor

    def __init__(self, d, c):
        super().__init__()
        self.linear = nn.Linear(d, c)
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x):
        if self.training:
            self.steps = self.steps + 1
        return self.linear(x) * (1 + self.steps / 100)


class Secretive(nn.Module):
    """Keeps a random matrix where neither parameters nor buffers are."""

    def __init__(self, d, c):
        super().__init__()
        self.projection, self.linear = torch.randn(d, d), nn.Linear(d, c)

    def forward(self, x):
        return self.linear(x @ self.projection.to(x.dtype))


class Flat(nn.Linear):
    def forward(self, input):
        return super().forward(input).squeeze(1)


TOGETHER = {"linear": nn.Linear, "perceptron": perceptron, "tied": Tied, "dropout": dropping}
ONE_BY_ONE = {
    "batch norm": normed,
    "convolution": Convolution,
    "branching": Branching,
    "counting": Counting,
    "secretive": Secretive,
}
MODULES = TOGETHER | ONE_BY_ONE


def stacked(factory):
    return lambda b, c: StackedModules(factory, 3, c, b, seed=1)


POPULATIONS = {
    "mlp": lambda b, c: StackedMLP(3, c, (5,), b, seed=1),
    "deep mlp": lambda b, c: StackedMLP(3, c, (5, 4), b, seed=1),
    "linear mlp": lambda b, c: StackedMLP(3, c, (), b, seed=1),
    **{name: stacked(factory) for name, factory in MODULES.items()},
}
