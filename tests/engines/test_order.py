"""Order statistics that an engine counts are those of a sorted array, to the bit."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.engines import OrderStatistics, _order, open_engine_table

numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(0, 1),
    st.sampled_from([0.0, -0.0, 0.1, 1e-300, 5e-324, 1 + 2**-52, 1.0, 1e300, -1.7e308]),
)


def order_of(values):
    source = open_engine_table(pa.table({"x": values}))
    ends = float(np.min(values)), float(np.max(values))
    return OrderStatistics(source.table, source.table.x, source.fetch, *ends, len(values))


@pytest.fixture(params=[0, 2**20], ids=["in buckets", "fetched"])
def fetched(request, monkeypatch):
    """Few rows would never be counted in buckets, so that the limit is lowered."""
    monkeypatch.setattr(_order, "_FETCHED", request.param)
    monkeypatch.setattr(_order, "_BUCKETS", 8)


@settings(max_examples=10)
@given(st.lists(numbers, min_size=1, max_size=20))
def test_places_and_distinct_values_are_those_of_numpy(values):
    for limit in (0, 2**20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_order, "_FETCHED", limit)
            patch.setattr(_order, "_BUCKETS", 8)
            found = order_of(np.array(values))
            distinct = found.distinct(5)
            unique = np.unique(values)
            assert (distinct is None) == (len(unique) > 5)
            assert distinct is None or (distinct == unique).all()
            assert (found.at(np.arange(len(values))) == np.sort(values)).all()


@pytest.mark.usefixtures("fetched")
def test_quantiles_are_those_of_numpy():
    values = np.random.default_rng(0).lognormal(0, 3, 501)
    shares = np.linspace(0, 1, 11)
    assert (order_of(values).quantiles(shares) == np.quantile(values, shares)).all()


@pytest.mark.usefixtures("fetched")
def test_one_far_value_does_not_hide_the_others():
    values = np.append(np.random.default_rng(0).random(300), 1e300)
    assert (order_of(values).at([0, 150, 299]) == np.sort(values)[[0, 150, 299]]).all()
