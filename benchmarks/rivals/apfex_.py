"""APFEx itself, by the functions that ``APFExClassifier`` calls, with four folds, not five.

Everything in this file counts as ours in the report, and everything in the other files as a rival.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from apfex.estimator import APFExClassifier
from apfex.estimator._settings import read_settings
from apfex.front import TableEncoders
from apfex.front._rows import deal
from apfex.models import (
    BoostedMembers,
    JointLearner,
    JointRows,
    OutOfFoldPredictions,
    PenalizedLoss,
    StackedMLP,
    TrainingRows,
    TrainingSettings,
    TreeLearner,
    Trees,
    TreeSettings,
    boost_members,
    fit_joint_model,
    fit_rules,
    given_groups,
    network_learners,
    rule_scores,
    train_population,
    weight_grid,
)
from apfex.relaxations import tanh_step
from rivals.common import GAPS, Method, Part, Point, needs_attribute, takes

RULES, FOLDS, MEMBERS, EVALUATIONS, REPAIR = 48, 4, 16, 3, 20
MakeLearners = Callable[[int, Sequence[str], int], list[JointLearner]]
"""From the number of rows, the types of inputs and a seed to learners of joint models."""


def training_settings(search: str, n: int, seed: int) -> TrainingSettings:
    return read_settings(APFExClassifier(GAPS, search=search)).training(n, seed)


def network_models(n: int, _types: Sequence[str], seed: int) -> list[JointLearner]:
    return [*network_learners((64,), training_settings("postprocess", n, seed))]


def linear_models(n: int, _types: Sequence[str], seed: int) -> list[JointLearner]:
    return [*network_learners((), training_settings("postprocess", n, seed))]


def tree_models(n: int, types: Sequence[str], seed: int) -> list[JointLearner]:
    return [TreeLearner(TreeSettings.for_rows(n, seed=seed), types, FOLDS)]


def both(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
    """Networks and trees mixed, each on its own inputs, by the encoders that ``fit`` uses."""
    settings = read_settings(APFExClassifier(GAPS, model=("mlp", "boosting")))
    inputs = TableEncoders.fit(train.table, train.y, settings, len(train))
    parts = [
        replace(p, x=inputs.transform(p.table), feature_types=()) for p in (train, validation, test)
    ]
    settings = replace(settings, validation_fraction=1 / FOLDS)
    return rules(lambda n, _, seed: inputs.learners(settings, n, seed))(*parts, seed)


def rules(make_learners: MakeLearners, group_thresholds: bool = False) -> Method:
    """Every point a rule on the same models."""

    def points(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
        x, y, group = map(torch.from_numpy, (train.x, train.y, train.group))
        targets, shape = group * 2 + y, (train.n_groups, 2)
        folds = torch.from_numpy(deal(targets.numpy(), FOLDS, seed))
        learners = make_learners(len(y), train.feature_types, seed)
        model, out_of_fold = fit_joint_model(JointRows(x, targets, shape, folds), learners)
        predictions = OutOfFoldPredictions(out_of_fold, targets)
        predictions = predictions.given_groups() if group_thresholds else predictions
        weights = weight_grid(GAPS, RULES, largest=4.0, steps=7)
        found = fit_rules(predictions, weights, [torch.arange(train.n_groups)])
        decided = []
        for part in (validation, test):
            with torch.no_grad():
                q = model(torch.from_numpy(part.x))
                q = given_groups(q, torch.from_numpy(part.group)) if group_thresholds else q
                decided.append((rule_scores(found, q) > 0).numpy())
        names = (f"weights {[round(w, 4) for w in row]}" for row in weights.weights.tolist())
        return [Point(name, *(d[rule] for d in decided)) for rule, name in enumerate(names)]

    return needs_attribute(points) if group_thresholds else points


def tree_points(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
    """Every point an ensemble of its own on a common base model, evaluated after every round.

    Validation rows stop the base model, as in ``fit``.
    """
    rows, held = (_training_rows(part) for part in (train, validation))
    settings = TreeSettings.for_rows(len(train), seed=seed)
    base = Trees.fit(rows, held, 2, settings, train.feature_types)
    weights, points = weight_grid(GAPS, MEMBERS), []
    loss = PenalizedLoss(weights, 1, 1, tanh_step, "rms")
    new = torch.cat([held.x, torch.from_numpy(test.x)])

    def evaluate(members: BoostedMembers) -> None:
        decided = (members.validation_scores > 0).numpy()
        for member, row in enumerate(decided):
            name = f"member {member}, round {int(members.rounds[member])}"
            points.append(Point(name, row[: len(held.y)], row[len(held.y) :]))

    repair = replace(settings, n_estimators=REPAIR, learning_rate=3 * settings.learning_rate)
    boost_members(
        base,
        rows,
        lambda scores: loss.gradient(scores.clone(), rows),
        MEMBERS,
        repair,
        train.feature_types,
        validation=new,
        on_round=evaluate,
    )
    return points


def _training_rows(part: Part) -> TrainingRows:
    x, y, group = map(torch.from_numpy, (part.x, part.y, part.group))
    return TrainingRows(x, y, group.unsqueeze(0), (part.n_groups,))


def network_points(train: Part, validation: Part, test: Part, seed: int) -> list[Point]:
    """Every point a network of its own, evaluated three times."""
    rows = _training_rows(train)
    population = StackedMLP(rows.x.shape[1], 1, (64,), MEMBERS, seed)
    settings = training_settings("inprocess", len(train), seed)
    numbers = range(1, EVALUATIONS + 1)
    evaluations = {settings.epochs * (EVALUATIONS + i) // (2 * EVALUATIONS): i for i in numbers}
    points: list[Point] = []

    def evaluate(epoch: int) -> None:
        if epoch not in evaluations:
            return
        with torch.no_grad():
            parts = (torch.from_numpy(part.x) for part in (validation, test))
            decided = [(population.scores(inputs) > 0).numpy() for inputs in parts]
        points.extend(
            Point(f"member {member}, look {evaluations[epoch]}", *(d[member] for d in decided))
            for member in range(MEMBERS)
        )

    train_population(population, weight_grid(GAPS, MEMBERS), rows, settings, evaluate)
    return points


on_codes = takes("codes")
METHODS: dict[str, Method] = {
    "APFEx rules": rules(network_models),
    "APFEx rules, linear": rules(linear_models),
    "APFEx rules, group thresholds": rules(network_models, group_thresholds=True),
    "APFEx networks": network_points,
    "APFEx trees": on_codes(rules(tree_models)),
    "APFEx trees, group thresholds": on_codes(rules(tree_models, group_thresholds=True)),
    "APFEx trees, no guess of the group": on_codes(tree_points),
    "APFEx networks and trees": on_codes(both),
}
