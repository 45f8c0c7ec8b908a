"""Rows and a model for tests of the optimizer."""

import pytest
import torch
from torch import nn


@pytest.fixture
def setting():
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    y = (x[:, 0] + 0.3 * torch.randn(64) > 0).long()
    groups = (x[:, 1] > 0).long() * 2 + (x[:, 2] > 0).long()
    model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
    return model, x, y, groups


@pytest.fixture
def batch():
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    return x, (x[:, 0] > 0).long(), torch.arange(64) % 4
