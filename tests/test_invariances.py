"""What must not matter does not: stated once, over what users call."""

import copy
from collections.abc import Callable
from functools import cache, reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimator.tables import DATA, FRESH, QUICK
from tests.optimizer.loops import STRATEGIES
from torch import nn

from apfex import APFEx, APFExClassifier, audit, make_groups
from apfex.auditing import AuditSettings, audit_counts
from apfex.metrics import dp_gap, equalized_odds_gap, group_rates, worst_group_accuracy
from apfex.objectives import CrossEntropy, FairnessLoss, Objectives
from apfex.rates import count_rows

SEEDS = st.integers(0, 10**6)
N = 150
few = settings(max_examples=4, deadline=None)


def people(seed: int) -> tuple[np.ndarray, np.ndarray, pd.DataFrame, np.ndarray]:
    """Labels, decisions, two sensitive attributes and whole weights."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"sex": rng.choice(["F", "M"], N), "race": rng.choice([*"ABC"], N)})
    y, decided = rng.integers(0, 2, (2, N))
    return y, decided, table, rng.integers(0, 4, N)


METRICS: list[Callable[..., Any]] = [
    dp_gap,
    equalized_odds_gap,
    worst_group_accuracy,
]


def figures(y, decided, table, weight=None) -> list[np.ndarray]:
    rows = {"sensitive_features": table, "sample_weight": weight}
    found = [np.asarray(metric(y, decided, **rows)) for metric in METRICS]
    rates = group_rates(y, decided, rate="tpr", sensitive_features=table, sample_weight=weight)
    return [*found, rates["rate"].to_numpy()]


def audited(y, decided, table, **more) -> pd.DataFrame:
    found = audit(y, decided, sensitive_features=table, criteria="dp", min_count=1, **more)
    return found.gaps


@few
@given(SEEDS)
def test_the_order_of_rows(seed):
    y, decided, table, weight = people(seed)
    order = np.random.default_rng(seed).permutation(N)
    shuffled = y[order], decided[order], table.iloc[order]
    for one, other in zip(figures(y, decided, table), figures(*shuffled), strict=True):
        np.testing.assert_array_equal(one, other)
    pd.testing.assert_frame_equal(audited(y, decided, table), audited(*shuffled))
    pd.testing.assert_frame_equal(
        audited(y, decided, table, sample_weight=weight),
        audited(*shuffled, sample_weight=weight[order]),
        rtol=1e-9,
    )


RENAMED = {"F": "z", "M": "a", "A": "y", "B": "x", "C": "b"}


@few
@given(SEEDS)
def test_the_names_and_the_order_of_groups(seed):
    """Other names, sorted the other way round; p-values are draws, so they are alike alone."""
    y, decided, table, _ = people(seed)
    one, other = audited(y, decided, table), audited(y, decided, table.replace(RENAMED))
    for column in ("gap", "lower", "upper", "groups_compared", "groups"):
        np.testing.assert_allclose(
            one[column].astype(float), other[column].astype(float), rtol=1e-12, atol=1e-12
        )
    for side in ("lowest_rate", "highest_rate"):
        np.testing.assert_array_equal(one[side], other[side])
    np.testing.assert_allclose(one["p_value"], other["p_value"], atol=0.06)


@few
@given(SEEDS)
def test_the_order_of_attributes(seed):
    y, decided, table, _ = people(seed)
    one = audited(y, decided, table).set_index(["criterion", "by"])
    other = audited(y, decided, table[["race", "sex"]]).set_index(["criterion", "by"])
    other = other.rename(index={"race x sex": "sex x race"}).loc[one.index]
    np.testing.assert_array_equal(one["gap"], other["gap"])
    np.testing.assert_allclose(one["upper"], other["upper"], rtol=1e-12)


@few
@given(SEEDS)
def test_duplicated_rows_are_whole_weights(seed):
    y, decided, table, weight = people(seed)
    rows = np.repeat(np.arange(N), weight)
    weighted = figures(y, decided, table, weight.astype(float))
    repeated = figures(y[rows], decided[rows], table.iloc[rows])
    for one, other in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@few
@given(SEEDS, st.integers(-60, 60))
def test_the_scale_of_weights(seed, power):
    y, decided, table, weight = people(seed)
    one = audited(y, decided, table, sample_weight=weight.astype(float))
    other = audited(y, decided, table, sample_weight=weight * 2.0**power)
    pd.testing.assert_frame_equal(one, other)


@few
@given(SEEDS, st.lists(st.integers(1, N - 1), max_size=4, unique=True))
def test_splitting_over_batches_and_workers(seed, cuts):
    y, decided, table, _ = people(seed)
    ends = [0, *sorted(cuts), N]
    parts = [slice(*pair) for pair in pairwise(ends)]
    counts = [count_rows(y[p], decided[p], make_groups(table.iloc[p])) for p in parts]
    added = audit_counts(reduce(add, counts), AuditSettings(("dp",), min_count=1))
    pd.testing.assert_frame_equal(added.gaps, audited(y, decided, table))


LOSSES = [CrossEntropy(), FairnessLoss("dp"), FairnessLoss("tpr", "ccr"), FairnessLoss("ppv")]


def batch(seed: int) -> tuple:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(60, generator=generator, dtype=torch.float64)
    return scores, *(torch.randint(0, k, (60,), generator=generator) for k in (2, 4))


@few
@given(SEEDS)
def test_losses_know_neither_the_order_of_rows_nor_of_groups(seed):
    scores, y, groups = batch(seed)
    generator = torch.Generator().manual_seed(seed)
    order, names = (torch.randperm(n, generator=generator) for n in (60, 4))
    expected = Objectives(LOSSES)(scores, y, groups)
    shuffled = Objectives(LOSSES)(scores[order], y[order], names[groups][order])
    torch.testing.assert_close(shuffled, expected)


def gradients(strategy: Any, change: Callable, order: Any = slice(None), steps: int = 6) -> list:
    """What three losses, each step of other rows, leave in ``.grad``."""
    torch.manual_seed(0)
    model = nn.Linear(3, 1, dtype=torch.float64)
    optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.1), strategy, window=2)
    found = []
    for step in range(steps):
        generator = torch.Generator().manual_seed(step)
        x = torch.randn(60, 3, generator=generator, dtype=torch.float64)
        y, groups = torch.arange(60) // 3 % 2, torch.arange(60) % 4
        x[:, 0] += y
        scores = model(x[order]).squeeze(1)
        losses = change([loss(scores, y[order], groups[order]) for loss in LOSSES[:3]])
        optimizer.backward(losses)
        found += [p.grad.clone() for p in model.parameters() if p.grad is not None]
        optimizer.step()
    return found


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize("place", range(3))
def test_the_scale_of_a_loss(strategy, place):
    """Losses are measured in units of their own, those of the first window."""

    def scaled(losses):
        return [2.0**20 * loss if k == place else loss for k, loss in enumerate(losses)]

    plain = gradients(copy.deepcopy(strategy), list)
    for one, other in zip(gradients(copy.deepcopy(strategy), scaled), plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_a_step_does_not_know_the_order_of_rows(strategy):
    order = torch.randperm(60, generator=torch.Generator().manual_seed(1))
    plain = gradients(copy.deepcopy(strategy), list)
    for one, other in zip(gradients(strategy, list, order), plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)


@cache
def predictions(model: str, **changes: Callable) -> np.ndarray:
    """All that points of a small fit say, to which something was done that must not matter."""
    given = {"X": DATA.X, "y": DATA.y, "people": DATA.sensitive, "fresh": FRESH.X}
    for name, change in changes.items():
        given[name] = change(given[name])
    if "X" in changes:
        given["fresh"] = changes["X"](FRESH.X)
    small = {**QUICK, "model": model, "n_estimators": 5, "epochs": 2, "max_gap": 1.0}
    clf = APFExClassifier(**small).fit(given["X"], given["y"], sensitive_features=given["people"])
    points = [clf.at(k) for k in range(len(clf.front_))]  # these share probabilities, not margins
    found = [
        (one.predict_proba(given["fresh"]), one.decision_function(given["fresh"])) for one in points
    ]
    return np.column_stack([np.column_stack(each) for each in found])


def words(y: np.ndarray) -> np.ndarray:
    return np.where(y == 1, "yes", "no")


def other_levels(table: pd.DataFrame) -> Any:
    """Other words in the same order."""
    return table.apply(lambda column: "level " + column.astype(str))


def other_columns(table: pd.DataFrame) -> pd.DataFrame:
    return table.rename(columns=lambda name: f"column {name}")


def mapping(table: pd.DataFrame) -> dict[str, list]:
    return {name: table[name].tolist() for name in table}


@pytest.mark.parametrize(
    ("model", "change"),
    [
        ("mlp", {"X": other_columns, "y": words, "people": other_levels}),
        *(
            pytest.param(model, change, marks=pytest.mark.slow)
            for model in ("mlp", "linear", "boosting")
            for change in (
                {"X": other_columns},
                {"y": words},
                {"y": lambda y: y.astype(bool)},
                {"people": other_columns},
                {"people": other_levels},
                {"people": mapping},
            )
        ),
    ],
)
def test_a_fit_knows_no_names(model, change):
    assert np.array_equal(predictions(model, **change), predictions(model))


@pytest.mark.parametrize("model", ["mlp", "linear", "boosting"])
def test_rows_are_decided_alike_together_and_in_parts(model):
    small = {**QUICK, "model": model, "n_estimators": 5, "epochs": 2, "max_gap": 1.0}
    clf = APFExClassifier(**small).fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive)
    parts = [FRESH.X.iloc[first:last] for first, last in pairwise([0, 1, 8, 100, len(FRESH.X)])]
    assert np.array_equal(np.concatenate([*map(clf.predict, parts)]), clf.predict(FRESH.X))
    found = np.concatenate([*map(clf.predict_proba, parts)])
    np.testing.assert_allclose(found, clf.predict_proba(FRESH.X), rtol=0, atol=1e-6)
