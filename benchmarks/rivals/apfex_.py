"""APFEx itself: a population trained towards a ladder of weights, and its late snapshots.

Everything in this file counts as ours in the report, and everything in the other files as a rival.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from apfex.training import (
    StackedMLP,
    TrainingRows,
    TrainingSettings,
    train_population,
    weight_ladder,
)
from rivals.common import BATCH, EPOCHS, GAPS, HIDDEN, LEAST_STEPS, Method, Part, Point

MEMBERS = 16


def population_points(
    train: Part, validation: Part, test: Part, seed: int, hidden: Sequence[int]
) -> list[Point]:
    rows = TrainingRows(
        torch.from_numpy(train.x),
        torch.from_numpy(train.y),
        torch.from_numpy(train.group).unsqueeze(0),
        (train.n_groups,),
    )
    population = StackedMLP(train.x.shape[1], 1, hidden, MEMBERS, seed)
    epochs = max(EPOCHS, -(-LEAST_STEPS // max(1, round(len(train) / BATCH))))
    looks = {epochs * share // 4 for share in (2, 3, 4)}
    points: list[Point] = []

    def look(epoch: int) -> None:
        if epoch not in looks:
            return
        with torch.no_grad():
            parts = (torch.from_numpy(part.x) for part in (validation, test))
            decided = [(population.scores(x) > 0).numpy() for x in parts]
        points.extend(
            Point(f"member {member}, look {4 * epoch // epochs}", *(d[member] for d in decided))
            for member in range(MEMBERS)
        )

    settings = TrainingSettings(epochs=epochs, batch_size=BATCH, seed=seed)
    train_population(population, weight_ladder(GAPS, MEMBERS), rows, settings, look)
    return points


def network(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
    return population_points(train, validation, test, seed, (HIDDEN,))


def linear(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
    return population_points(train, validation, test, seed, ())


METHODS: dict[str, Method] = {"APFEx network": network, "APFEx linear": linear}
