"""Every value comes back exactly, or is refused."""

import datetime
import json
import math
import zoneinfo
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from apfex.persistence import pack, unpack
from apfex.strategies import AdaptiveSwitch, AdaptiveWeighting, FixedWeights, SmoothTchebycheff


def through(value: Any) -> Any:
    """To the text of a file and back."""
    return unpack(json.loads(json.dumps(pack(value), allow_nan=False)))


def same(a: Any, b: Any) -> bool:
    """The same types and bits, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and same(a.tolist(), b.tolist())
    if isinstance(a, pd.Index):
        return a.dtype == b.dtype and same(a.tolist(), b.tolist())
    if isinstance(a, float):
        return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return repr(a) == repr(b)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.characters(),
    st.binary(max_size=5),
    st.decimals(),
    st.dates(),
    st.datetimes().map(lambda moment: moment.replace(fold=0)),
    st.timedeltas(),
    hnp.from_dtype(np.dtype("f4")),
    hnp.from_dtype(np.dtype("f8")),
    hnp.from_dtype(np.dtype("i8")),
    hnp.from_dtype(np.dtype("u1")),
    hnp.from_dtype(np.dtype("?")),
    hnp.from_dtype(np.dtype("U3")),
)
values = st.recursive(
    scalars,
    lambda part: st.one_of(
        st.lists(part, max_size=3),
        st.lists(part, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3) | st.integers(), part, max_size=3),
    ),
    max_leaves=6,
)


@given(values)
def test_what_is_packed_comes_back_exactly(value):
    assert same(through(value), value)


DTYPES = ["f2", ">f4", "f8", "i4", ">u8", "?", "U4", "S3", "M8[us]", "m8[h]", ">M8[D]"]
SHAPES = hnp.array_shapes(max_dims=2, max_side=3)


@given(st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(np.dtype(dtype), SHAPES)))
def test_arrays_keep_their_types(array):
    assert same(through(array), array)


ZONE = "Europe/Zurich"
OTHERS = {
    "timestamp": pd.Timestamp("2020-02-29 12:34:56.789012345"),
    "seconds": pd.Timestamp("2020-02-29").as_unit("s"),
    "zone": pd.Timestamp("2020-10-25 01:30", tz="UTC").tz_convert(ZONE),
    "difference": pd.Timedelta(hours=-3),
    "period": pd.Period("2020-03", "M"),
    "interval": pd.Interval(1, np.float64(2.5), "left"),
    "interval of days": pd.interval_range(pd.Timestamp(2020, 1, 1), periods=2)[1],
    "NA": pd.NA,
    "NaT": pd.NaT,
    "decimal": Decimal("1.10"),
    "fixed zone": datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
    "objects": np.array([1, "a", None, (1, 2), np.int8(3)], dtype=object),
    "pairs": np.fromiter([(1, 2), (3, 4)], dtype=object),
    "text": np.array(["a", "bc"], dtype=np.dtypes.StringDType()),
    "scalar array": np.array(3),
    "numpy time": np.datetime64("NaT", "s"),
}
INDEXES = {
    "text": pd.Index(["a", "é"]),
    "numbers": pd.Index([1.5, math.nan]),
    "ints": pd.Index([3, 1]),
    "bool": pd.Index([True, False]),
    "mixed": pd.Index([1, "a", None], dtype=object),
    "days": pd.date_range("2020-01-01", periods=2, unit="us")._with_freq(None),
    "zone": pd.date_range("2020-01-01", periods=2, tz=ZONE)._with_freq(None),
    "bands": pd.IntervalIndex.from_breaks([0, 18, 65]),
    "months": pd.period_range("2020-01", periods=2, freq="M"),
    "nullable": pd.Index([1, 2], dtype="Int64"),
    "pyarrow": pd.Index(["a"], dtype="string[pyarrow]"),
}


@pytest.mark.parametrize("value", [*OTHERS.values(), *INDEXES.values()], ids=[*OTHERS, *INDEXES])
def test_values_of_numpy_and_pandas_keep_their_types(value):
    again = through(value)
    assert same(again, value)
    if isinstance(value, pd.Timestamp | pd.Timedelta):
        assert again.unit == value.unit


class Colour(Enum):
    RED = 1


REFUSED = {
    "enum": Colour.RED,
    "function": len,
    "set": {1},
    "complex": 1j,
    "wide": np.longdouble(1) / 3,
    "array of complex": np.array([1j]),
    "masked": np.ma.array([1]),
    "record": np.zeros(1, dtype=[("a", "i4")]),
    "time zone": datetime.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo(ZONE)),
    "the second of two hours": datetime.datetime(2020, 1, 1, fold=1),
    "frame": pd.DataFrame({"a": [1]}),
    "named index": pd.Index([1], name="a"),
    "categories": pd.CategoricalIndex(["a"], categories=["b", "a"]),
    "nested": [{"a": (Colour.RED,)}],
}


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED.keys())
def test_what_would_not_come_back_is_refused(value):
    with pytest.raises(TypeError, match=r"^levels of 'sex'.* must .*, got "):
        pack(value, "levels of 'sex'")


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"is": "float"},
        {"is": "spell", "value": 1},
        {"is": ["float"], "value": 1},
        {"is": "array", "value": ["O8", [1], [1]]},
        {"is": "array", "value": ["V8", [1], [1]]},
        {"is": "array", "value": ["i8", [3], [1]]},
        {"is": "array", "value": ["i8", [1], ["a"]]},
        {"is": "tuple", "value": None},
        {"is": "dict", "value": [[[1], 1]]},
        {"is": "index", "value": ["no type", [1]]},
        {"is": "datetime", "value": "yesterday"},
        [{"is": "bytes", "value": "xyz"}],
    ],
    ids=str,
)
def test_what_was_not_packed_is_refused(stored):
    with pytest.raises(ValueError, match="stored must be what pack has made, got "):
        unpack(stored)


STRATEGIES = [
    AdaptiveSwitch(weighting=AdaptiveWeighting(rate=1.0), order="cone_first"),
    SmoothTchebycheff((1.0, 2.0), smoothing=float("inf")),
    FixedWeights([1, 2.5]),
]


def test_strategies_of_the_package_come_back_with_their_settings():
    assert same(through(STRATEGIES), STRATEGIES)


def test_strategies_of_others_and_odd_settings_are_refused():
    class Own:
        def decide(self, view):
            raise NotImplementedError

    for strategy in (Own(), AdaptiveSwitch(cone=Own())):
        with pytest.raises(TypeError, match=r"must be of a plain type to be stored, got .*Own"):
            pack(strategy)
    with pytest.raises(ValueError, match=r"stored must be what pack has made"):
        unpack({"is": "strategy", "value": ["StepView", {"is": "dict", "value": []}]})
    negative = {"is": "dict", "value": [["rate", -1.0]]}
    with pytest.raises(ValueError, match=r"rate must be at least 0"):
        unpack({"is": "strategy", "value": ["AdaptiveWeighting", negative]})
