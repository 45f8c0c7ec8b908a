"""Counts of decisions tell the same as the decisions themselves."""
# pyright: reportCallIssue=false, reportArgumentType=false, reportOptionalSubscript=false

import numpy as np
import pytest
import torch

from apfex.front import Criteria, Scoring, scorer_of
from apfex.front._candidates import evaluate
from apfex.front._decision_table import CountedRows, count_decisions
from apfex.front._rows import ValidationRows
from apfex.groups import make_groups

SCORINGS = ["error", "balanced_error", "cost", "f1_macro", "matthews_corrcoef"]


def rows_of(c, weighted, seed=0):
    rng = np.random.default_rng(seed)
    n = 700
    crossing = make_groups(
        {"sex": rng.integers(0, 2, n), "race": rng.choice(3, n, p=[0.7, 0.28, 0.02])}
    )
    weight = rng.exponential(size=n) if weighted else None
    groupings = [crossing, crossing.parent("sex")]
    y = rng.integers(0, c, n)
    rows = ValidationRows(y, groupings, crossing, weight, list("abc"[:c]))
    right = rng.random((6, n)) < np.linspace(0.3, 0.9, 6)[:, None]
    decisions = np.where(right, y, rng.integers(0, c, (6, n)))
    decisions[0] = 1
    return rows, decisions


def counted(rows, decisions, c):
    codes = rows.crossing.codes
    tables = count_decisions(
        decisions, codes * c + rows.y, rows.sample_weight, (len(rows.crossing), c)
    )
    return CountedRows(tables[:, 0].sum(-1), rows.crossing, rows.groupings, rows.classes), tables


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("name", SCORINGS)
def test_values_are_those_of_the_rows(c, weighted, name):
    rows, decisions = rows_of(c, weighted)
    scoring = Scoring(name)
    if name == "cost":
        scoring = Scoring(name, costs=np.arange(1.0, 1 + c * c).reshape(c, c) * (1 - np.eye(c)))
    elif "error" not in name:
        scoring = Scoring(f"1 - {name}", scorer=scorer_of(name, c, c - 1))
    criteria = Criteria.of(("dp", "tpr", "equalized_odds", "accuracy")).for_label(0, c)
    expected = evaluate(torch.from_numpy(decisions), rows, criteria, scoring)
    known, tables = counted(rows, decisions, c)
    assert known.n_rows == rows.n_rows
    np.testing.assert_allclose(known.values(tables, criteria, scoring), expected.values, rtol=1e-10)
    assert known.trivial(tables).tolist() == expected.trivial.tolist()
    np.testing.assert_allclose(known.constant_losses(scoring), rows.constant_losses(scoring))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("c", "favorable"), [(2, 0), (2, 1), (3, 2)])
def test_confusion_counts_and_errors_are_those_of_the_rows(c, favorable, weighted):
    rows, decisions = rows_of(c, weighted)
    known, tables = counted(rows, decisions, c)
    for place, decided in enumerate(decisions):
        expected, found = rows.count(decided, favorable), known.count(tables[:, place], favorable)
        assert np.array_equal(found.rows, expected.rows)
        np.testing.assert_allclose(found.sums, expected.sums, atol=1e-9)
        assert (found.squares is None) == (expected.squares is None)
        if weighted:
            np.testing.assert_allclose(found.squares, expected.squares, atol=1e-9)
        assert (found.classes, found.favorable) == (expected.classes, expected.favorable)
        assert found.names == expected.names
        assert known.errors(tables[:, place]) == pytest.approx(rows.errors(decided))


def test_tables_of_chunks_add_up():
    rows, decisions = rows_of(2, weighted=True)
    _, whole = counted(rows, decisions, 2)
    targets, k = rows.crossing.codes * 2 + rows.y, len(rows.crossing)
    parts = [
        count_decisions(decisions[:, p], targets[p], rows.sample_weight[p], (k, 2))
        for p in np.array_split(np.arange(700), 5)
    ]
    np.testing.assert_allclose(sum(parts), whole, rtol=1e-12)
