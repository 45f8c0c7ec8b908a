"""Several workers that train one population, each on its part of every batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from apfex.distributed import Workers
from apfex.models._rows import TrainingRows
from apfex.models._stacked_mlp import Population

_ROUNDING = 1e-9
"""Relative difference of sums over rows that are the same on all workers."""
_ROWS = 2**14
"""Rows that are added up at a time."""
_GOLDEN = (math.sqrt(5) - 1) / 2
"""Golden section: its multiples, without their whole part, lie evenly between 0 and 1."""


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
        "encoded inputs": rows.x.shape[1],
        "members": population.n_members,
        "parameters": sum(p.numel() for p in population.parameters()),
        **settings,
    }
    sums = {
        "inputs": checksum(rows.x),
        "labels": checksum(rows.y),
        "groups": sum(map(checksum, (rows.codes.T, *rows.memberships))),
        "weights": checksum(rows.weights().T) + checksum(rows.label_weights()),
    }
    found = team.call_roll("training networks", {**facts, **sums})
    for name, told in zip([*facts, *sums], found.T.tolist(), strict=True):
        others = [
            rank
            for rank, one in enumerate(told)
            if not math.isclose(one, told[0], rel_tol=_ROUNDING)
        ]
        if not others:
            continue
        got = f"{[int(one) for one in told]} by rank"
        if name in sums:
            got = f"others on worker {', '.join(map(str, others))} than on worker 0"
        raise ValueError(
            f"{name} must be the same on all workers, as each of them has all rows, in the same "
            f"order of rows and columns, got {got}."
        )


def checksum(values: Tensor) -> float:
    """A number of rows [n, ...] that tells others, and another order, and hardly feels rounding.

    Every place counts by a number of its own between 1 and 4, so that a change in one shows among
    many. Sizes are added up, as inputs with mean zero would cancel to nothing but rounding; those
    below zero count more.

    Examples
    --------
    >>> one, other = torch.tensor([[1.0, -2.0]]), torch.tensor([[-2.0, 1.0]])
    >>> checksum(one) != checksum(other), checksum(one) != checksum(-one)
    (True, True)
    """
    values = values.reshape(len(values), -1)
    rows, columns = (_places(n, values.device) for n in values.shape)
    parts = zip(rows.split(_ROWS), values.split(_ROWS), strict=True)
    return sum(float(places @ (_sizes(part) @ columns)) for places, part in parts)


def _sizes(values: Tensor) -> Tensor:
    values = values.double()
    return values.abs() - values.clamp(max=0) / 2


def _places(n: int, device: torch.device) -> Tensor:
    """Numbers from 1 to 2 that are all different: fractional parts of multiples of the golden."""
    return 1 + (torch.arange(1, n + 1, dtype=torch.float64, device=device) * _GOLDEN) % 1
