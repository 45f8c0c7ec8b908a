"""Gaps of the rows that chose, counted as an audit counts them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from apfex.auditing import AuditSettings, audit_counts
from apfex.front import Point
from apfex.groups import make_groups
from apfex.rates import count_rows
from apfex.report._choosing import compared_gaps, describe_choosing

CRITERIA = ("dp", "tpr", "equalized_odds")


def make_counts(sizes, c=2, weighted=False):
    """Confusion counts of random decisions of so many rows in each group of two attributes."""
    generator = np.random.default_rng(0)
    cells = np.repeat(np.arange(len(sizes)), sizes)
    y, decided = generator.integers(0, c, (2, len(cells)))
    weight = generator.uniform(0.5, 2, len(cells)) if weighted else None
    groups = make_groups({"a": cells // 2, "b": cells % 2})
    return count_rows(y, decided, groups, weight, classes=range(c))


def make_point(counts, groupings) -> Any:
    point: Any = SimpleNamespace(
        gaps=dict.fromkeys(CRITERIA), counts=counts, groupings=tuple(groupings)
    )
    point.widest = lambda name, min_count: Point.widest(point, name, min_count=min_count)
    return point


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("by", [["a x b"], ["a", "b"]])
@pytest.mark.parametrize("min_count", [1, 10, 60])
def test_it_is_the_gap_of_an_audit_of_the_same_rows(min_count, by, c, weighted):
    counts = make_counts([80, 50, 18, 6, 30, 3], c, weighted)
    point = make_point(counts, [tuple(name.split(" x ")) for name in by])
    gaps: Any = audit_counts(counts, AuditSettings(CRITERIA, min_count=min_count)).gaps
    found = compared_gaps(point, min_count)
    for name in CRITERIA:
        rows = gaps[gaps["by"].isin(by) & (gaps["criterion"] == name)]
        if rows["gap"].isna().any():
            assert name not in found
        else:
            assert found[name].gap == pytest.approx(rows["gap"].max())


def test_groups_with_enough_rows_are_told():
    point = make_point(make_counts([80, 50, 18, 6]), [("a", "b")])
    assert [compared_gaps(point, n)["dp"].groups for n in (1, 10, 40)] == [4, 3, 2]
    assert "dp" not in compared_gaps(point, 60)


def test_a_description_has_both_gaps(front):
    for place, point in enumerate(front.clf.front_):
        told = front.described["points"][place]["validation"]["gaps"]
        compared = compared_gaps(point, 10)
        assert {name: gap["gap"] for name, gap in told.items()} == {
            name: gap.gap for name, gap in point.gaps.items()
        }
        assert {name: gap["compared"] for name, gap in told.items()} == {
            name: one.gap for name, one in compared.items()
        }
        assert describe_choosing(point, {})["gaps"]["dp"]["compared"] is None
