"""A grouping is its attributes, whatever these are called."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apfex.auditing import Audit, audit
from apfex.groups import grouping_name
from apfex.metrics import dp_gap
from apfex.testing import assert_gap

N = 600
NAMES = ("a", "b", "a x b")


def rows(seed=0):
    """Three columns; the third decides, and has the name of the crossing of the others."""
    generator = np.random.default_rng(seed)
    people = {name: generator.integers(0, 2, N) for name in NAMES}
    decided = (generator.random(N) < 0.3 + 0.4 * people["a x b"]).astype(int)
    return people, decided


def gap_of(people, names, decided):
    return dp_gap(None, decided, sensitive_features={name: people[name] for name in names})


def test_a_column_named_as_a_crossing_keeps_its_own_gap():
    people, decided = rows()
    result = audit(None, decided, sensitive_features=people, criteria="dp")
    subsets = [*combinations(NAMES, 1), *combinations(NAMES, 2), NAMES]
    assert result.gaps["by"].is_unique
    assert len(result.gaps) == len(subsets)
    for names in subsets:
        row = result.gaps.set_index("by").loc[grouping_name(names)]
        assert row["gap"] == pytest.approx(gap_of(people, names, decided))
    verdicts = dict(zip(result.gaps["by"], result.gaps["verdict"], strict=True))
    assert verdicts['"a x b"'] == "violation"
    assert verdicts["a x b"] != "violation"


def test_everything_that_is_asked_by_a_grouping_tells_them_apart():
    people, decided = rows()
    result = audit(None, decided, sensitive_features=people, criteria="dp")
    for asked in ('"a x b"', ("a x b",)):
        assert result.worst(by=asked)["group"].tolist() == ["a x b=0", "a x b=1"]
        assert result.ends("dp", asked)["group"].tolist() == ["a x b=0", "a x b=1"]
    for asked in ("a x b", ("a", "b")):
        assert len(result.worst(by=asked)) == 4
    assert_gap(result, max_gap=0.2, by="a x b")
    assert_gap(result, max_gap=0.2, by=("a", "b"))
    for asked in ('"a x b"', ("a x b",), ["a", ("a x b",)]):
        with pytest.raises(AssertionError, match='dp by "a x b": 0'):
            assert_gap(result, max_gap=0.2, by=asked)
    plan = result.plan()
    assert set(plan.loc[plan["by"] == "a x b", "group"]) <= set(result.worst(by="a x b")["group"])
    later = audit(None, rows(1)[1], sensitive_features=rows(1)[0], criteria="dp")
    change = later.diff(Audit.from_json(result.to_json())).gaps.set_index("by")
    assert change.loc['"a x b"', "earlier"] == pytest.approx(gap_of(people, ["a x b"], decided))
    assert change.loc["a x b", "earlier"] == pytest.approx(gap_of(people, ["a", "b"], decided))


words = st.lists(st.sampled_from(["a", "x", '"', " "]), min_size=1, max_size=6).map("".join)
attributes = st.lists(words, min_size=1, max_size=3)


@given(attributes, attributes)
def test_different_attributes_have_different_names(some, others):
    assert (grouping_name(some) == grouping_name(others)) == (some == others)
