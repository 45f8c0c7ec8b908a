"""Sensitive columns: bins, and too many levels."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apfex.groups import make_groups
from apfex.runs import RunError
from apfex.runs._columns import GroupCounts, check_few, put_into_bins
from apfex.runs._settings import check_bins


@given(
    st.lists(st.floats(-100, 100) | st.just(float("nan")), min_size=1, max_size=30),
    st.lists(st.integers(-100, 100), min_size=1, max_size=5, unique=True).map(sorted),
)
def test_every_number_is_in_its_bin_and_missing_stays_missing(values, cuts):
    found = put_into_bins(pd.DataFrame({"age": values}), {"age": cuts}, most=50)["age"]
    for value, name in zip(values, found, strict=True):
        if value != value:
            assert name != name
            continue
        low, high = name.removeprefix("under "), name.removesuffix(" and over")
        if name.startswith("under"):
            assert value < float(low)
        elif name.endswith("over"):
            assert value >= float(high)
        else:
            low, high = name.split(" up to ")
            assert float(low) <= value < float(high)


@pytest.mark.parametrize("cuts", [[], [3, 2], [3, 3]])
def test_bins_must_rise(cuts):
    with pytest.raises(RunError, match="bins must have rising numbers for 'age'") as caught:
        check_bins({"age": cuts})
    assert (caught.value.argument, caught.value.found) == ("bins", cuts)


def test_bins_of_other_columns_and_of_text_are_refused():
    frame = pd.DataFrame({"sex": ["f", "m"]})
    with pytest.raises(RunError, match="'age', which is not among sensitive"):
        put_into_bins(frame, {"age": [3]}, most=50)
    with pytest.raises(RunError, match="bins needs numbers, but 'sex' holds text"):
        put_into_bins(frame, {"sex": [3]}, most=50)


def test_too_many_levels_are_refused_with_a_remedy():
    numbers = pd.DataFrame({"income": np.arange(5000)})
    with pytest.raises(RunError, match=r"has 5,000 levels.*bins=\{'income': \[1700.0, 3300.0\]\}"):
        put_into_bins(numbers, {}, most=50)
    with pytest.raises(RunError, match="Is it an identifier"):
        put_into_bins(numbers.astype("str"), {}, most=50)
    assert put_into_bins(numbers, {"income": [1700, 3300]}, most=50)["income"].unique().size == 3


def test_too_many_groups_of_the_crossing_are_refused():
    rows = np.arange(1600)
    groups = make_groups({"a": rows % 40, "b": rows // 40})
    with pytest.raises(RunError, match="1,600 groups where the columns cross"):
        check_few(groups)


def test_the_smallest_group_is_known():
    counts = GroupCounts.of(make_groups({"sex": ["F", "M", "M"], "race": ["A", "B", "B"]}))
    assert counts == GroupCounts({"sex": 2, "race": 2}, 2, "sex=F, race=A", 1)
