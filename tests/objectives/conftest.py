"""A batch for tests of objectives."""

import pytest
import torch
from tests.objectives.batches import N


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(N, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 2, (N,), generator=generator)
    groups = torch.randint(0, 4, (N,), generator=generator)
    weight = torch.rand(N, generator=generator, dtype=torch.float64) + 0.1
    return scores, y, groups, weight
