"""Gaps of the rows that chose, counted as an audit counts them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from apfex import audit
from apfex.metrics import gap_interval
from apfex.report._choosing import compared_gaps, describe_choosing


def make_point(successes, totals, name="dp"):
    """A point whose search has counted these."""
    rates = np.asarray(successes) / np.asarray(totals)
    counts = SimpleNamespace(successes=np.atleast_2d(successes), totals=np.atleast_2d(totals))
    gap = gap_interval(successes, totals)
    assert gap.gap == pytest.approx(float(np.ptp(rates)))
    point: Any = SimpleNamespace(
        gaps={name: gap}, interval_at=SimpleNamespace(counts={name: counts})
    )
    return point


def make_classifier(grouping="intersection", classes=(0, 1)) -> Any:
    return SimpleNamespace(grouping=grouping, classes_=np.array(classes))


@pytest.mark.parametrize("min_count", [1, 10, 30])
def test_it_is_the_gap_of_an_audit_of_the_same_rows(min_count):
    totals, successes = np.array([40, 25, 9, 3]), np.array([20, 5, 9, 0])
    rows = np.repeat(np.arange(4), totals)
    decided = np.concatenate(
        [[1] * s + [0] * (n - s) for s, n in zip(successes, totals, strict=True)]
    )
    expected = audit(
        None, decided, sensitive_features={"g": rows}, criteria="dp", min_count=min_count
    )
    found = compared_gaps(make_classifier(), make_point(successes, totals), min_count)
    if min_count == 30:  # one group is left
        assert found == {}
        return
    assert found["dp"].gap == pytest.approx(expected.gaps["gap"].iloc[0])
    assert found["dp"].groups == expected.groups["in_gap"].sum()


def test_where_another_rate_or_grouping_might_lead_nothing_is_compared():
    small, large = ([5, 9], [50, 9]), ([5, 30], [50, 60])
    odds = make_point(*small, name="equalized_odds")
    assert compared_gaps(make_classifier(), odds, 10) == {}
    assert compared_gaps(make_classifier("attributes"), make_point(*small), 10) == {}
    assert compared_gaps(make_classifier(classes=("a", "b", "c")), make_point(*small), 10) == {}
    odds = make_point(*large, name="equalized_odds")  # nobody is left out: it stays the largest
    (found,) = compared_gaps(make_classifier(), odds, 10).values()
    assert (found.gap, found.groups) == (pytest.approx(0.4), None)


def test_a_description_has_both_gaps(front):
    for place, point in enumerate(front.clf.front_):
        told = front.described["points"][place]["validation"]["gaps"]
        compared = compared_gaps(front.clf, point, 10)
        assert {name: gap["gap"] for name, gap in told.items()} == {
            name: gap.gap for name, gap in point.gaps.items()
        }
        assert {name: gap["compared"] for name, gap in told.items()} == {
            name: one.gap for name, one in compared.items()
        }
        assert describe_choosing(point, {})["gaps"]["dp"]["compared"] is None
