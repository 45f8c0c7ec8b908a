"""Awkward inputs, kept in one place."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def awkward_jacobians(m: int, seed: int = 0) -> dict[str, Tensor]:
    """Jacobians [m, p] in float64 that break careless solvers, by name."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    def spread(low: float, high: float) -> Tensor:
        exponents = low + (high - low) * torch.rand(m, 1, generator=generator, dtype=torch.float64)
        return 10**exponents

    base = normal(m, 2 * m + 3)
    direction = normal(1, 2 * m + 3)
    centred = base - base.mean(0)
    kinds = {
        "random": base,
        "square": normal(m, m),
        "fewer columns than rows": normal(m, max(1, m // 2)),
        "one column": normal(m, 1),
        "one column, one sign": normal(m, 1).abs() + 0.1,
        "aligned": direction + 0.1 * base,
        "nearly parallel": direction + 1e-6 * base,
        "conflicting": torch.where(torch.arange(m)[:, None] % 2 == 0, 1.0, -1.0) * direction
        + 0.1 * base,
        "opposite pair": torch.cat([base[:1], -base[:1], base[2:]])[:m],
        "stationary": centred,
        "nearly stationary": centred + 1e-7 * direction,
        "repeated": base[:1].expand(m, -1).clone(),
        "two repeated": torch.cat([base[:1], base[: m - 1]]),
        "collinear": torch.arange(1, m + 1, dtype=torch.float64)[:, None] * base[:1],
        "collinear, both signs": torch.linspace(-1, 2, m, dtype=torch.float64)[:, None] * base[:1],
        "one zero": torch.cat([base[: m - 1], torch.zeros_like(base[:1])]),
        "all zero": torch.zeros_like(base),
        "orthogonal": torch.eye(m, 2 * m + 3, dtype=torch.float64),
        "tiny": 1e-12 * base,
        "huge": 1e12 * base,
        "scales 1e-12 to 1e12": spread(-12, 12) * base,
        "scales, conflicting": spread(-12, 12) * centred,
        "scales, nearly parallel": spread(-6, 6) * (direction + 1e-4 * base),
        "one dominant": torch.cat([1e9 * base[:1], base[1:]]),
    }
    return {name: matrix.contiguous() for name, matrix in kinds.items()}


def gramian_of(jacobian: Tensor) -> Tensor:
    return jacobian @ jacobian.mT


def people(n: int = 400, n_classes: int = 2, seed: int = 0):
    """Labels, decisions, two sensitive attributes and weights of n random rows."""
    generator = np.random.default_rng(seed)
    table = {"sex": generator.choice(["F", "M"], n), "race": generator.choice(["A", "B", "C"], n)}
    y, decided = generator.integers(0, n_classes, (2, n))
    return y, decided, table, generator.uniform(0.5, 2.0, n)


def many_awkward_jacobians(m: int, count: int, seed: int = 0) -> Tensor:
    """Jacobians [count, m, 2m + 3] in float64; each has some of the troubles, drawn at random.

    Few columns, rows that are zero, repeated, opposed (exactly or nearly), collinear or nearly
    parallel, rows that nearly cancel, scales of rows from 1e-12 to 1e12, and a tiny common scale.
    """
    generator = torch.Generator().manual_seed(1000 * m + seed)
    p = 2 * m + 3

    def normal(*shape: int) -> Tensor:
        return torch.randn(count, *shape, generator=generator, dtype=torch.float64)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(count, *shape, generator=generator, dtype=torch.float64)

    def sometimes(share: float) -> Tensor:
        return uniform(1, 1) < share

    rows = normal(m, p)
    columns = (uniform(1) * (p + m)).long().clamp(max=p - 1) + 1
    rows = rows * (torch.arange(p) < columns).unsqueeze(1)
    small = 10 ** (-16 * uniform(1, 1))  # how nearly: from 1 down to rounding
    direction = normal(1, p)
    rows = torch.where(sometimes(0.15), direction + small * rows, rows)
    rows = torch.where(sometimes(0.15), rows - rows.mean(-2, keepdim=True), rows)
    rows = torch.where(sometimes(0.1), normal(m, 1) * direction, rows)
    partner = rows.gather(-2, (uniform(m, 1) * m).long().expand(-1, -1, p))
    sign = normal(m, 1).sign()
    nearly = sign * partner + torch.where(sometimes(0.5), small, 0.0) * normal(m, p)
    rows = torch.where(sometimes(0.3) & (uniform(m, 1) < 0.5), nearly, rows)
    rows = torch.where(sometimes(0.5), rows * 10 ** (24 * uniform(m, 1) - 12), rows)
    rows = torch.where(sometimes(0.2) & (uniform(m, 1) < 0.4), 0.0, rows)
    return torch.where(sometimes(0.1), 1e-12 * rows, rows)
