"""Frames of pandas become tables of Arrow, whatever types pandas has of its own."""

import traceback

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apfex.files import frame_to_arrow

MONTHS = pd.period_range("2026-01", periods=3, freq="M")
BINS = pd.cut([1, 2, 3], [0.0, 1.5, 2.5, 3.5])
OF_PANDAS = {
    "bins": BINS,
    "intervals": pd.arrays.IntervalArray.from_breaks([0.0, 1.0, 2.0, 3.0]),
    "intervals as objects": np.array(list(BINS), dtype=object),
    "months": MONTHS,
    "months as objects": np.array(list(MONTHS), dtype=object),
    "months as categories": pd.Categorical(MONTHS),
    "durations": pd.to_timedelta([1, 2, 3], unit="h"),
    "durations of Arrow": pd.array(
        pd.to_timedelta([1, 2, 3], unit="h"), dtype=pd.ArrowDtype(pa.duration("ns"))
    ),
    "complex numbers": np.array([1j, 2j, 3 + 0j]),
}


@pytest.mark.parametrize("name", OF_PANDAS)
@pytest.mark.parametrize("missing", [False, True])
def test_types_of_pandas_alone_are_their_text(name, missing):
    column = pd.Series(OF_PANDAS[name], name="g")
    wanted: list[str | None] = [str(value) for value in column]
    if missing:
        column, wanted = column.reindex([0, 7, 1, 2]), [wanted[0], None, *wanted[1:]]
    found = frame_to_arrow(pd.DataFrame({"g": column, "n": range(len(column))}))
    assert found["g"].to_pylist() == wanted
    assert found["n"].to_pylist() == list(range(len(column)))


def test_bins_keep_their_order():
    column = pd.Series(pd.cut([11, 1, 2], [0, 1, 2, 10, 20]))
    found = frame_to_arrow(pd.DataFrame({"g": column}))["g"].combine_chunks()
    assert found.dictionary.to_pylist() == ["(0, 1]", "(1, 2]", "(2, 10]", "(10, 20]"]


@given(st.lists(st.sampled_from([0.0, 1.5, None]), min_size=1))
def test_sparse_columns_are_dense(values):
    dense = pd.Series(values, dtype=float)
    frame = pd.DataFrame({"x": dense.astype(pd.SparseDtype(float, 0.0))})
    assert frame_to_arrow(frame).equals(frame_to_arrow(pd.DataFrame({"x": dense})))


def test_other_columns_are_as_arrow_reads_them():
    frame = pd.DataFrame(
        {
            "n": [1, 2],
            "word": ["a", None],
            "day": pd.to_datetime(["2026-01-01", None]),
            "level": pd.Categorical(["a", "b"]),
            "whole": pd.array([1, None], dtype="Int64"),
            "self": [True, False],
        }
    )
    assert frame_to_arrow(frame).equals(pa.Table.from_pandas(frame, preserve_index=False))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([1, "Grace"], r"mixed-integer values in column 'g' \(of type object\)"),
        ([2**80, -1], r"integer values in column 'g' \(of type object\)"),
    ],
)
def test_what_arrow_does_not_hold_is_told_by_column_and_not_by_value(values, told):
    frame = pd.DataFrame({"n": [1, 2], "g": pd.Series(values, dtype=object)})
    with pytest.raises(ValueError, match=told + r".*; convert the column with astype\(str\)") as no:
        frame_to_arrow(frame)
    assert "Grace" not in "".join(traceback.format_exception(no.value, limit=0))
    assert frame_to_arrow(frame.astype({"g": str}))["g"].to_pylist() == list(map(str, values))


def test_two_columns_of_one_name_are_told():
    frame = pd.DataFrame([[1, 2, 3]], columns=["a", 1, "1"])
    with pytest.raises(ValueError, match="has two columns named '1'; rename one"):
        frame_to_arrow(frame)
