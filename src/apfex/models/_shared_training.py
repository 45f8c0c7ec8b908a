"""Several workers that train one population, each on its part of every batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from apfex.distributed import Workers
from apfex.models._rows import TrainingRows
from apfex.models._stacked_mlp import Population


def whole_gradients(
    gradients: Sequence[Tensor | None], team: Workers | None
) -> Sequence[Tensor | None]:
    """Gradients by the rows of all workers, from those by the rows of each."""
    if team is None:
        return gradients
    sums = iter(team.sum_([gradient for gradient in gradients if gradient is not None]))
    return [None if gradient is None else next(sums) for gradient in gradients]


def share_first(population: Population, team: Workers) -> None:
    """Give all workers what the first has: running means of a batch norm, and the last digit."""
    for value in population.values():
        value.copy_(team.first(value))


def meet(
    team: Workers, population: Population, rows: TrainingRows, settings: Mapping[str, float]
) -> None:
    """Make sure that all workers train the same models on the same rows."""
    facts = {
        "rows": len(rows.y),
        "columns": rows.x.shape[1],
        "inputs": float(rows.x.sum(dtype=torch.float64)),
        "labels": float(rows.y.sum()),
        "members": population.n_members,
        "parameters": sum(p.numel() for p in population.parameters()),
        **settings,
    }
    found = team.call_roll("training networks", facts)
    for name, told in zip(facts, found.T.tolist(), strict=True):
        if any(not math.isclose(one, told[0], rel_tol=1e-9) for one in told):
            raise ValueError(
                f"{name} must be the same on all workers, as each of them reads the whole table, "
                f"got {told} by rank."
            )
