"""Sensitive columns: bins, and too many levels."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.people import COLUMNS, people

from apfex import explore
from apfex.runs import GroupCounts, RunError, audit_file


def audited(frame, sensitive, **options):
    """An audit of decisions that are the same for all."""
    return audit_file(frame.assign(d=1), prediction="d", sensitive=sensitive, **options)


@settings(deadline=None)
@given(
    st.lists(st.floats(-100, 100) | st.just(float("nan")), min_size=1, max_size=30),
    st.lists(st.integers(-100, 100), min_size=1, max_size=5, unique=True).map(sorted),
)
def test_every_number_is_in_its_bin_and_missing_stays_missing(values, cuts):
    frame = pd.DataFrame({"age": values, "row": np.arange(len(values)).astype("str")})
    frame = pd.concat([frame, frame.assign(row="other")])  # two groups at least
    groups = audited(frame, ["row", "age"], bins={"age": cuts}).audit.groups["group"]
    names = dict(name.removeprefix("row=").split(", age=") for name in groups if ", age=" in name)
    for row, value in enumerate(values):
        name = names[str(row)]
        if value != value:
            assert name == "<missing>"
        elif name.startswith("under "):
            assert value < float(name.removeprefix("under "))
        elif name.endswith(" and over"):
            assert value >= float(name.removesuffix(" and over"))
        else:
            low, high = name.split(" up to ")
            assert float(low) <= value < float(high)


@pytest.mark.parametrize("cuts", [[], [3, 2], [3, 3]])
def test_bins_must_rise(cuts):
    with pytest.raises(RunError, match="bins must have rising numbers for 'age'") as caught:
        explore(people(), **COLUMNS, bins={"age": cuts})
    assert (caught.value.argument, caught.value.found) == ("bins", cuts)


def test_bins_of_other_columns_and_of_text_are_refused():
    frame = pd.DataFrame({"sex": ["f", "m"]})
    with pytest.raises(RunError, match="'age', which is not among sensitive"):
        audited(frame, "sex", bins={"age": [3]})
    with pytest.raises(RunError, match="bins needs numbers, but 'sex' holds text"):
        audited(frame, "sex", bins={"sex": [3]})


def test_too_many_levels_are_refused_with_a_remedy():
    frame = people().assign(income=np.arange(300))
    columns: dict[str, Any] = {**COLUMNS, "sensitive": "income"}
    with pytest.raises(
        RunError, match=r"has 300 different values.*bins=\{'income': \[100.0, 200.0\]\}"
    ):
        explore(frame, **columns)
    with pytest.raises(RunError, match="Does it name single rows"):
        explore(frame.astype({"income": "str"}), **columns)
    data = audited(frame, "income", bins={"income": [100, 200]}).data
    assert data is not None
    assert data.groups.groups == 3


def test_too_many_groups_of_the_crossing_are_refused():
    rows = np.arange(300)
    frame = people().assign(a=rows % 20, b=rows // 20)
    with pytest.raises(RunError, match="300 groups where its columns are combined"):
        explore(frame, **{**COLUMNS, "sensitive": "a,b"})


def test_the_smallest_group_is_known():
    data = audited(pd.DataFrame({"sex": ["F", "M", "M"], "race": ["A", "B", "B"]}), "sex,race").data
    assert data is not None
    assert data.groups == GroupCounts({"sex": 2, "race": 2}, 2, "sex=F, race=A", 1)


@pytest.mark.parametrize("column", ["d", "y"])
def test_what_is_said_of_people_forms_no_groups(column):
    table = pd.DataFrame({"sex": ["F", "M"] * 50, "d": [0, 1] * 50, "y": [1, 0] * 50})
    with pytest.raises(RunError, match=r"prediction.*label.*sensitive.* must name different"):
        audit_file(table, prediction="d", label="y", sensitive=["sex", column])
