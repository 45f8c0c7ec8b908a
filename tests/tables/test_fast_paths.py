"""What is done the quick way has the bits of the plain way."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from apfex.tables import TableEncoder
from apfex.tables._bins import encode_bins
from apfex.tables._columns import read_table

WORDS = st.lists(st.sampled_from(["a", "b", "c ", "Ä", "", None]), min_size=1, max_size=30)


def bits(matrix):
    return np.ascontiguousarray(matrix).view(np.int32)


@given(words=WORDS, fitted=WORDS)
def test_text_of_every_dtype_is_the_same_column(words, fitted):
    plain = pd.DataFrame({"w": pd.Series(words, dtype=object), "x": 1.0})
    unused = pd.CategoricalDtype(pd.Index(["z", "Ä", "c ", "b", "a", "", "y"], dtype="str"))
    learnt = pd.DataFrame({"w": pd.Series([*fitted, "a"], dtype=object), "x": 0.0})
    forms = [plain.astype({"w": dtype}) for dtype in ("str", "string", "category", unused)]
    for categories in ("codes", "one-hot"):
        encoder = TableEncoder(categories=categories, min_count=2).fit(learnt)
        expected = encoder.transform(plain)
        for form in forms:
            assert (bits(encoder.transform(form)) == bits(expected)).all()
    kind = read_table(plain).columns[0].kind
    for form in forms:
        column = read_table(form).columns[0]
        assert (column.kind, set(column.levels)) == (kind, {w for w in words if w is not None})


EDGES = st.lists(st.floats(-50, 50, width=16), min_size=3, max_size=9, unique=True).map(sorted)


@given(edges=EDGES, z=st.lists(st.floats(-60, 60, width=16), max_size=20))
def test_bins_are_ramps_and_steps(edges, z):
    """The oracle counts every ramp and step of every row; values on edges are among them."""
    borders, values = np.array(edges), np.array([*z, *edges])
    ramps = np.clip((values[:, None] - borders[:-1]) / np.diff(borders), 0.0, 1.0)
    steps = values[:, None] > borders[1:-1]
    out = np.zeros((len(values), 2 * len(edges) - 3), np.float32)
    encode_bins(values, tuple(edges), out)
    assert (out == np.hstack([ramps, steps]).astype(np.float32)).all()


def test_the_input_is_not_changed_and_chunks_do_not_show():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=10_000), "w": rng.choice(["a", "b"], 10_000)})
    frame.loc[::7, "x"] = np.nan
    y, before = rng.integers(0, 2, 10_000), frame.copy(deep=True)
    encoder = TableEncoder(bins="tree").fit(frame, y)
    whole = encoder.transform(frame)
    parts = [encoder.transform(frame.iloc[i : i + 1_000]) for i in range(0, 10_000, 1_000)]
    assert (bits(whole) == bits(np.vstack(parts))).all()
    pd.testing.assert_frame_equal(frame, before)
