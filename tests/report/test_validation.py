"""Gaps of the validation rows, counted as an audit counts them."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from apfex.auditing import AuditSettings, audit_counts
from apfex.front import Point
from apfex.groups import make_groups
from apfex.rates import count_rows

CRITERIA = ("dp", "tpr", "equalized_odds")


def make_counts(sizes, c=2, weighted=False):
    """Confusion counts of random decisions of so many rows in each group of two attributes."""
    generator = np.random.default_rng(0)
    cells = np.repeat(np.arange(len(sizes)), sizes)
    y, decided = generator.integers(0, c, (2, len(cells)))
    weight = generator.uniform(0.5, 2, len(cells)) if weighted else None
    groups = make_groups({"a": cells // 2, "b": cells % 2})
    return count_rows(y, decided, groups, weight, classes=range(c))


def widest(counts, groupings, name, min_count) -> Any:
    point: Any = SimpleNamespace(counts=counts, groupings=tuple(groupings))
    return Point.widest(point, name, min_count=min_count)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("by", [["a x b"], ["a", "b"]])
@pytest.mark.parametrize("min_count", [1, 10, 60])
def test_it_is_the_gap_of_an_audit_of_the_same_rows(min_count, by, c, weighted):
    counts = make_counts([80, 50, 18, 6, 30, 3], c, weighted)
    groupings = [tuple(name.split(" x ")) for name in by]
    gaps: Any = audit_counts(counts, AuditSettings(CRITERIA, min_count=min_count)).gaps
    for name in CRITERIA:
        rows = gaps[gaps["by"].isin(by) & (gaps["criterion"] == name)]
        expected = math.nan if rows["gap"].isna().any() else rows["gap"].max()
        found = widest(counts, groupings, name, min_count)
        assert found.gap == pytest.approx(expected, nan_ok=True)


def test_groups_with_enough_rows_are_counted():
    counts = make_counts([80, 50, 18, 6])
    found = [widest(counts, [("a", "b")], "dp", n) for n in (1, 10, 40, 60)]
    assert [int(one.counted.any(0).sum()) for one in found] == [4, 3, 2, 1]
    assert math.isnan(found[-1].gap)


@pytest.mark.parametrize("min_count", [10, 300])
def test_a_description_has_both_gaps(front, decide, min_count):
    points = front.clf.front_[:2]
    decided = front.clf.decide_all(front.new.X)[:2]
    told = decide(decided, front.new.y, front.new.sensitive, points, min_count=min_count)
    for point, own in zip(points, told["points"], strict=True):
        gaps = own["validation"]["gaps"]
        assert {name: gap["gap"] for name, gap in gaps.items()} == {
            name: gap.gap for name, gap in point.gaps.items()
        }
        for name, gap in gaps.items():
            expected = point.widest(name, min_count=min_count).gap
            assert gap["compared"] == (None if math.isnan(expected) else expected)
        assert (gaps["dp"]["compared"] is None) == (min_count == 300)
