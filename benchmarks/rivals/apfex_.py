"""APFEx itself, by the functions that ``APFExClassifier`` calls, with four folds, not five.

Everything in this file counts as ours in the report, and everything in the other files as a rival.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from apfex.estimator import APFExClassifier
from apfex.estimator._settings import read_settings
from apfex.estimator._split import deal
from apfex.training import (
    Aims,
    CellSettings,
    Evidence,
    StackedMLP,
    TrainingRows,
    TrainingSettings,
    fit_cells,
    fit_rules,
    given_groups,
    rule_scores,
    train_population,
    weight_ladder,
)
from rivals.common import GAPS, Method, Part, Point, needs_attribute

RULES, MEMBERS, LOOKS = 48, 16, 3


def training_settings(search: str, n: int, seed: int) -> TrainingSettings:
    return read_settings(APFExClassifier(GAPS, search=search)).training(n, seed)


def rule_points(
    train: Part,
    validation: Part,
    test: Part,
    seed: int,
    hidden: Sequence[int] = (64,),
    group_thresholds: bool = False,
) -> list[Point]:
    x, y, group = map(torch.from_numpy, (train.x, train.y, train.group))
    cells, shape = group * 2 + y, (train.n_groups, 2)
    settings = CellSettings(tuple(hidden), training=training_settings("rules", len(y), seed))
    folds = torch.from_numpy(deal(cells.numpy(), settings.folds, seed))
    model, unseen = fit_cells(x, cells, shape, folds, settings)
    evidence = Evidence(unseen, cells)
    evidence = evidence.given_groups() if group_thresholds else evidence
    aims = weight_ladder(GAPS, RULES, largest=4.0, steps=7)
    rules = fit_rules(evidence, aims, [torch.arange(train.n_groups)])
    decided = []
    for part in (validation, test):
        with torch.no_grad():
            q = model(torch.from_numpy(part.x))
            q = given_groups(q, torch.from_numpy(part.group)) if group_thresholds else q
            decided.append((rule_scores(rules, q) > 0).numpy())
    names = (f"weights {[round(w, 4) for w in row]}" for row in aims.weights.tolist())
    return [Point(name, *(d[rule] for d in decided)) for rule, name in enumerate(names)]


def network_points(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
    """Every point a network of its own, looked at three times."""
    x, y, group = map(torch.from_numpy, (train.x, train.y, train.group))
    rows = TrainingRows(x, y, group.unsqueeze(0), (train.n_groups,))
    population = StackedMLP(x.shape[1], 1, (64,), MEMBERS, seed)
    settings = training_settings("networks", len(y), seed)
    looks = {settings.epochs * (LOOKS + look) // (2 * LOOKS): look for look in range(1, LOOKS + 1)}
    points: list[Point] = []

    def look(epoch: int) -> None:
        if epoch not in looks:
            return
        with torch.no_grad():
            parts = (torch.from_numpy(part.x) for part in (validation, test))
            decided = [(population.scores(inputs) > 0).numpy() for inputs in parts]
        points.extend(
            Point(f"member {member}, look {looks[epoch]}", *(d[member] for d in decided))
            for member in range(MEMBERS)
        )

    aims: Aims = weight_ladder(GAPS, MEMBERS)
    train_population(population, aims, rows, settings, look)
    return points


def rules(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
    return rule_points(train, validation, test, seed)


def linear_rules(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
    return rule_points(train, validation, test, seed, hidden=())


@needs_attribute
def group_rules(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
    return rule_points(train, validation, test, seed, group_thresholds=True)


METHODS: dict[str, Method] = {
    "APFEx rules": rules,
    "APFEx rules, linear": linear_rules,
    "APFEx rules, group thresholds": group_rules,
    "APFEx networks": network_points,
}
