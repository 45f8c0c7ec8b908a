"""Hard confusion counts: exact, mergeable, and of any grouping."""

import json
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.groups import make_groups
from apfex.rates import (
    RATES,
    ConfusionCounts,
    GroupIndex,
    Repeats,
    count_rows,
    rate_sums,
    soft_counts,
)


def people(n, seed=0, q=2):
    generator = np.random.default_rng(seed)
    levels: list[Any] = [["F", "M"], [1, 2, None], ["x", "y"]]
    return pd.DataFrame(
        {f"a{i}": generator.choice(np.array(levels[i], dtype=object), n) for i in range(q)}
    )


def draw(n, c, seed=0):
    generator = np.random.default_rng(seed)
    y, decided = generator.integers(0, c, (2, n))
    return y, decided, generator.uniform(0.5, 2, n)


def assert_same(one, other):
    assert one.names == other.names
    assert np.array_equal(one.rows, other.rows)
    np.testing.assert_allclose(one.sums, other.sums, rtol=1e-12)
    assert (one.squares is None) == (other.squares is None)
    if one.squares is not None:
        np.testing.assert_allclose(one.squares, other.squares, rtol=1e-12)
    for name in ("classes", "favorable", "labelled", "weight", "outside"):
        assert getattr(one, name) == getattr(other, name)


@pytest.mark.parametrize("c", [2, 4])
@pytest.mark.parametrize("rate", RATES)
@given(st.integers(0, 10**6))
@settings(max_examples=10)
def test_hard_counts_are_soft_counts_of_hard_decisions(rate, c, seed):
    y, decided, weight = draw(60, c, seed)
    groups = make_groups(people(60, seed))
    counts = count_rows(y, decided, groups, weight, classes=range(c))
    labels, hard, several = torch.from_numpy(y), torch.from_numpy(decided), c > 2
    if several:
        classes = torch.arange(c)[:, None]
        labels, hard = (labels == classes).long(), hard == classes
    for own, given_weight in ((counts.rows, None), (counts.sums, torch.from_numpy(weight))):
        soft = soft_counts(hard.double(), labels, GroupIndex.of(groups), given_weight)
        expected = rate_sums(rate, soft if several else soft[None], multiclass=several)
        for found, wanted in zip(rate_sums(rate, own, multiclass=several), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("kind", ["rows", "equal weights", "weights"])
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 50), max_size=3))
@settings(max_examples=20)
def test_batches_files_and_workers_add_up(c, kind, seed, cuts):
    """Also where a group, or a level, occurs in one of them alone."""
    y, decided, weight = draw(50, c, seed)
    table = people(50, seed)
    given_weight = {"rows": None, "equal weights": np.full(50, 0.5), "weights": weight}[kind]

    def count(part):
        own = None if given_weight is None else given_weight[part]
        groups = make_groups(table.iloc[part])
        return count_rows(y[part], decided[part], groups, own, classes=range(c), favorable=c - 1)

    ends = [0, *sorted(cuts), 50]
    parts = [slice(a, b) for a, b in pairwise(ends) if a < b]
    whole = count(slice(None))
    assert_same(reduce(add, map(count, parts)), whole)
    assert_same(reduce(add, map(count, parts[::-1])), whole)


def test_weighted_and_unweighted_rows_add_up():
    y, decided, _ = draw(40, 2)
    groups = make_groups(people(40))
    plain, once, twice = (
        count_rows(y, decided, groups, weight) for weight in (None, np.ones(40), np.full(40, 2.0))
    )
    assert (plain + once).weight == 1.0
    assert (plain + twice).weight is None
    total = plain + twice
    assert total.squares is not None
    assert (total.sums == 3 * plain.rows).all()
    assert (total.squares == 5 * plain.rows).all()
    assert (total.rows == 2 * plain.rows).all()


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_of_coarser_groups_are_those_of_their_rows(c, weighted):
    y, decided, weight = draw(300, c)
    groups = make_groups(people(300, q=3))
    call: dict[str, Any] = {"classes": range(c), "sample_weight": weight if weighted else None}
    counts = count_rows(y, decided, groups, **call)
    for attributes in [("a0",), ("a1",), ("a2",), ("a0", "a1"), ("a0", "a2"), ("a1", "a2")]:
        expected = count_rows(y, decided, groups.parent(attributes), **call)
        assert_same(counts.by(attributes), expected)
        assert_same(counts.by(("a0", "a1", "a2")[:2]).by("a0"), counts.by("a0"))
    everybody = counts.by(())
    assert everybody.names == ("all rows",)
    assert everybody.n_rows == 300
    assert (everybody.rows[:, 0] == counts.rows.sum(1)).all()


def test_of_two_labels_the_favorable_one_is_counted():
    y, decided, _ = draw(80, 2)
    groups = make_groups(people(80))
    assert_same(
        count_rows(y, decided, groups, classes=["no", "yes"], favorable=0),
        count_rows(1 - y, 1 - decided, groups),
    )
    several = count_rows(y, decided, groups, classes=["no", "yes", "maybe"], favorable=1)
    assert_same(several.of_favorable(), count_rows(y, decided, groups))
    assert several.share_favored == pytest.approx(decided.mean())


def test_scores_are_counted_at_every_threshold():
    y, _, weight = draw(90, 2)
    groups = make_groups(people(90))
    score = weight.round(1)
    for given_weight in (None, weight):
        found = count_rows(y, y * 0, groups, given_weight, score=score).scores
        assert found is not None
        assert found.thresholds.tolist() == sorted(set(score))
        for place, threshold in enumerate(found.thresholds):
            decided = (score >= threshold).astype(int)
            expected = count_rows(y, decided, groups, given_weight)
            assert (found.counts.rows[place] == expected.rows[0]).all()
            np.testing.assert_allclose(found.counts.sums[place], expected.sums[0])
        twice = count_rows(y, y * 0, groups, given_weight, score=score)
        merged = (twice + twice).scores
        assert merged is not None
        assert (merged.counts.rows == 2 * found.counts.rows).all()


def test_as_many_scores_as_there_may_be_thresholds_are_all_kept():
    """Most rows have the lowest score: where scores are drawn evenly, others go missing."""
    groups = make_groups(people(400))
    y = np.arange(400) % 2
    for distinct, is_drawn in ((101, False), (102, True)):
        score = np.maximum(0.0, np.arange(400) - 400 + distinct)
        found = count_rows(y, y, groups, score=score).scores
        assert found is not None
        assert len(set(score)) == distinct
        assert set(found.thresholds) <= set(score)
        assert (len(found.thresholds) < 101) == is_drawn


def test_rows_in_no_group_are_left_out_and_counted():
    y, decided, _ = draw(20, 2)
    groups = make_groups(people(20))
    codes = np.where(np.arange(20) < 5, -1, groups.codes)
    partly = type(groups)(codes, groups.attributes, groups.levels, groups.cells, groups._keys)
    counts = count_rows(y, decided, partly)
    assert (counts.n_rows, counts.outside) == (15, 5)


def test_constant_decisions_are_told():
    groups = make_groups(people(20))
    for c, decided, constant in ((2, 0, True), (2, 1, True), (3, 2, True)):
        found = count_rows(None, np.full(20, decided), groups, classes=range(c))
        assert found.is_constant == constant
    assert not count_rows(None, np.arange(20) % 3, groups, classes=range(3)).is_constant


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_survive_json(c, weighted):
    y, decided, weight = draw(60, c)
    table = people(60).assign(
        born=pd.to_datetime(["2001-01-01", "2002-01-01"] * 30), size=[0.5] * 60
    )
    counts = count_rows(
        y, decided, make_groups(table), weight if weighted else None, classes=range(c)
    )
    stored = {
        name: part.tolist() if isinstance(part, np.ndarray) else part
        for name, part in counts.to_dict().items()
    }
    assert_same(ConfusionCounts.from_dict(json.loads(json.dumps(stored, allow_nan=False))), counts)
    with pytest.raises(ValueError, match="Counts must have shape"):
        ConfusionCounts.from_dict(stored | {"rows": stored["rows"][0]})
    for favorable in (-1, max(2, len(stored["classes"])), 1.0, True):
        with pytest.raises(ValueError, match="Counts must name their favorable class"):
            ConfusionCounts.from_dict(stored | {"favorable": favorable})
    with pytest.raises(ValueError, match="cells must be different and sorted"):
        ConfusionCounts.from_dict(stored | {"cells": stored["cells"][::-1]})


@pytest.mark.parametrize(
    ("level", "stored"),
    [
        (np.inf, "inf"),
        (np.float32(-np.inf), "-inf"),
        (np.nan, None),
        (pd.NA, None),
        (None, None),
        (np.int64(3), 3),
        (np.True_, True),
        (0.25, 0.25),
        (pd.Timestamp("2001-01-01"), "2001-01-01 00:00:00"),
        ((1, 2), "(1, 2)"),
        (b"a", "b'a'"),
    ],
)
def test_levels_are_stored_as_json_has_them(level, stored):
    column = pd.Series([level, "other"], dtype=object)
    counts = count_rows(np.arange(2), np.arange(2), make_groups({"a": column}), classes=range(2))
    (levels,) = counts.to_dict()["levels"]
    assert [one for one in levels if one != "other"] == [stored]
    assert json.loads(json.dumps(levels, allow_nan=False)) == levels


def test_many_groups_and_classes_take_memory_in_proportion():
    n, k, c = 200_000, 2_000, 200  # whole confusion matrices would be 640 MB
    generator = np.random.default_rng(0)
    y, decided = generator.integers(0, c, (2, n))
    counts = count_rows(y, decided, make_groups(np.arange(n) % k), classes=range(c))
    assert counts.rows.shape == (c, k, 4)
    assert counts.rows[..., 3].sum() == n


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(2, dtype=int)}, r"y must have one entry per decision \(3\), got shape"),
        ({"sample_weight": np.ones(4)}, "sample_weight must have one entry"),
        ({"score": np.ones((3, 1))}, "score must have one entry"),
        ({"groups": make_groups(["a", "b"])}, "groups must have one entry"),
        ({"y": np.array([0, 2, 1])}, "y must hold places of 2 labels, from 0 to 1, got 0 to 2"),
        ({"decided": np.array([0, -1, 1])}, "decided must hold places .* got -1 to 1"),
        ({"decided": np.array([0, 3, 1]), "classes": "abc"}, "decided must hold places of 3"),
        ({"favorable": 2}, "favorable must be the place of one of 2 labels, got 2"),
        ({"sample_weight": np.array([1, -1, 1])}, "sample_weight must be finite and at least 0"),
        ({"sample_weight": np.array([1, np.nan, 1])}, "sample_weight must be finite"),
        ({"classes": "abc", "score": np.ones(3)}, "score must be None with more than two labels"),
    ],
)
def test_bad_rows_are_named(change, message):
    call: dict[str, Any] = {
        "y": np.array([0, 1, 1]),
        "decided": np.array([0, 1, 0]),
        "groups": make_groups(["a", "b", "b"]),
    }
    with pytest.raises(ValueError, match=message):
        count_rows(**call | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": "abc"}, "Counts must have the same classes, got"),
        ({"y": None}, "Counts must have the same labelled, got True and False"),
        ({"groups": make_groups({"other": ["a", "b", "b"]})}, "of the same attributes"),
        ({"score": np.ones(3)}, "Counts must have scores at the same thresholds"),
    ],
)
def test_what_does_not_add_up_is_refused(change, message):
    call: dict[str, Any] = {
        "y": np.array([0, 1, 1]),
        "decided": np.array([0, 1, 0]),
        "groups": make_groups({"g": ["a", "b", "b"]}),
    }
    counts = count_rows(**call)
    with pytest.raises(ValueError, match=message):
        add(counts, count_rows(**call | change))
    assert counts.__add__(0) is NotImplemented  # type: ignore[operator]


def test_repeated_rows_know_whether_they_weigh_alike():
    rows = np.array([2, 1])
    assert Repeats(rows, None).weight == 1.0
    alike = np.array([[1.0, 0.5], [0.5, 0.25], [0.5, 0.5], [0.5, 0.5]])
    assert Repeats(rows, alike).weight == 0.5
    assert Repeats(rows, alike).take([1]).weights.tolist() == [[0.5], [0.25], [0.5], [0.5]]  # type: ignore[union-attr]
    assert Repeats(rows, None).take([1]).weights is None
    assert Repeats(rows, alike * [[1], [1], [1], [2]]).weight is None


def test_only_the_selection_rate_needs_no_labels():
    assert [name for name, rate in RATES.items() if not rate.needs_labels] == ["dp"]


@pytest.mark.parametrize("outside", [False, True])
def test_an_index_knows_of_rows_outside_of_all_groups(outside):
    codes = np.array([0, 1, -1 if outside else 1, 0])
    groups = replace(make_groups(["a", "b", "b", "a"]), codes=codes)
    assert GroupIndex.of(groups).has_outsiders is outside
    assert GroupIndex.of(torch.from_numpy(codes)).has_outsiders is outside
