"""Summaries of chunks add up to that of the table, so that an encoder can be fitted in one pass."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.tables import TableEncoder, summarize

NUMBERS = st.one_of(st.none(), st.floats(-1e6, 1e6), st.sampled_from([0.0, 1.0, 7.0]))
LEVELS = st.one_of(st.none(), st.sampled_from(["a", "b", "c", "d"]))


@st.composite
def tables_in_chunks(draw):
    rows = draw(st.lists(st.tuples(NUMBERS, LEVELS, st.booleans()), min_size=2, max_size=40))
    table = pd.DataFrame(rows, columns=["number", "level", "flag"])
    table["number"] = table["number"].astype(float)
    cuts = sorted(draw(st.sets(st.integers(1, len(table) - 1), max_size=4)))
    return table, [table.iloc[part] for part in np.split(np.arange(len(table)), cuts)]


@settings(max_examples=80, deadline=None)
@given(tables_in_chunks(), st.sampled_from(["one-hot", "codes"]), st.sampled_from([1, 2, 10]))
def test_encoders_of_summaries_are_those_of_the_table(both, categories, min_count):
    table, chunks = both
    first, *rest = map(summarize, chunks)
    for one in rest:
        first = first + one
    whole = TableEncoder(categories=categories, min_count=min_count).fit(table)
    added = TableEncoder(categories=categories, min_count=min_count).fit_summary(first)
    expected, found = (json.loads(encoder.to_json()) for encoder in (whole, added))
    for plan, other in zip(expected["columns"], found["columns"], strict=True):
        for name in ("mean", "scale"):
            if name in plan:
                assert other.pop(name) == pytest.approx(plan.pop(name), rel=1e-9, abs=1e-9)
    assert found == expected


def test_one_chunk_gives_the_same_to_the_last_bit():
    table = np.random.default_rng(0).normal(size=(1000, 3))
    encoder = TableEncoder().fit_summary(summarize(table))
    assert encoder.to_json() == TableEncoder().fit(table).to_json()


def test_means_and_spreads_of_chunks_do_not_cancel():
    """Sums of squares would: the values are far from zero, and close together."""
    values = 1e9 + np.random.default_rng(0).normal(size=(4000, 1))
    first, *rest = (summarize(part) for part in np.split(values, 10))
    found = sum(rest, first).columns[0]
    assert found.mean == pytest.approx(values.mean(), rel=1e-14)
    assert np.sqrt(found.squares / 4000) == pytest.approx(values.std(), rel=1e-9)


def test_bins_are_chosen_by_the_sample():
    table = np.random.default_rng(0).normal(size=(500, 2))
    encoder = TableEncoder(bins="quantile").fit_summary(summarize(table), table)
    assert encoder.to_json() == TableEncoder(bins="quantile").fit(table).to_json()
    with pytest.raises(ValueError, match="sample must be given with bins='quantile'"):
        TableEncoder(bins="quantile").fit_summary(summarize(table))


def test_chunks_of_different_tables_are_refused():
    first = summarize(pd.DataFrame({"a": [1.0], "b": ["x"]}))
    with pytest.raises(ValueError, match="same columns in all chunks"):
        _ = first + summarize(pd.DataFrame({"a": [1.0]}))
    with pytest.raises(TypeError, match="'b' of X must hold values of one kind"):
        _ = first + summarize(pd.DataFrame({"a": [1.0], "b": [2.0]}))
