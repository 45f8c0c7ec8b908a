"""Random numbers as a function of seed and counter: equal inputs give equal draws anywhere."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def uniforms(seeds: Tensor, counter: int, size: int) -> Tensor:
    """Uniform numbers in (0, 1), shape [..., size], one stream for each seed.

    Notes
    -----
    Two rounds of the SplitMix64 finalizer over (seed, counter, position): no state to keep,
    checkpoint or share between workers.
    """
    with np.errstate(over="ignore"):
        stream = _mix(seeds.detach().cpu().numpy().astype(np.uint64)[..., None])
        stream = _mix(stream + np.uint64(counter) * np.uint64(0xD1342543DE82EF95))
        positions = np.arange(1, size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        bits = _mix(stream + positions) >> np.uint64(11)
    return torch.from_numpy((bits.astype(np.float64) + 0.5) * 2.0**-53).to(seeds.device)


def dirichlet(seeds: Tensor, counter: int, size: int) -> Tensor:
    """Points drawn evenly from the simplex, Dirichlet(1, ..., 1), shape [..., size]."""
    exponentials = -uniforms(seeds, counter, size).log()
    return exponentials / exponentials.sum(-1, keepdim=True)


def _mix(z: np.ndarray) -> np.ndarray:
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
