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
        "inputs": checksum(rows.x),
        "labels": checksum(rows.y),
        "groups": checksum(rows.codes.T),
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


def checksum(values: Tensor) -> float:
    """A number of rows [n, ...] that tells others, and another order, and hardly feels rounding.

    Sizes are added up, as inputs with mean zero would cancel to nothing but rounding.

    Examples
    --------
    >>> checksum(torch.tensor([1.0, -2.0])), checksum(torch.tensor([-2.0, 1.0]))
    (5.0, 4.0)
    """
    sizes = values.abs().reshape(len(values), -1).sum(1, dtype=torch.float64)
    places = torch.arange(1, len(sizes) + 1, dtype=torch.float64, device=sizes.device)
    return float(places @ sizes)
