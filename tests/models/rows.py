"""Rows and modules that the tests of trees share."""

from contextlib import contextmanager

import torch
from torch import nn

from apfex.models import JointRows, TrainingRows, TreeSettings

QUICK = TreeSettings(n_estimators=8, max_depth=3, learning_rate=0.3)


class Zero(nn.Module):
    """A base model that knows nothing."""

    def __init__(self, n_outputs=1):
        super().__init__()
        self.n_outputs = n_outputs

    def forward(self, x):
        return x.new_zeros(len(x), self.n_outputs)


def make_inputs(n, d, seed):
    """Whole numbers: few enough that every value has a bin of its own, with weights or without."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-10, 11, (n, d), generator=generator).float(), generator


def make_rows(n=300, d=4, n_classes=2, k=2, seed=0, weighted=False):
    """Labels that lean to a group and to the product of two inputs."""
    x, generator = make_inputs(n, d, seed)
    groups = torch.randint(k, (n,), generator=generator)
    noise = 20 * torch.randn(n, generator=generator)
    merit = x[:, 0] * x[:, 1] + 20 * (groups == 0) + noise
    y = torch.bucketize(merit, merit.quantile(torch.arange(1, n_classes) / n_classes))
    weight = torch.randint(1, 4, (n,), generator=generator).float() if weighted else None
    return TrainingRows(x, y, groups.unsqueeze(0), (k,), weight)


def make_joint_rows(n=240, k=2, c=2, n_folds=3, seed=0, weighted=False):
    rows = make_rows(n, 4, c, k, seed, weighted)
    noise = 2 * torch.randn(n, 1, generator=torch.Generator().manual_seed(seed))
    x = torch.cat([rows.x, rows.codes.T + noise], 1)
    targets = rows.codes[0] * c + rows.y
    return JointRows(x.round(), targets, (k, c), torch.arange(n) % n_folds, rows.sample_weight)


def cross_entropy_gradient(rows):
    """The gradient of the plain loss alone."""
    share = rows.weights() / rows.weights().sum()

    def gradient(scores):
        if scores.ndim == 2:
            return (torch.sigmoid(scores) - rows.y) * share
        labels = nn.functional.one_hot(rows.y, scores.shape[2])
        return (torch.softmax(scores, 2) - labels) * share.unsqueeze(1)

    return gradient


@contextmanager
def torch_threads(n):
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)
