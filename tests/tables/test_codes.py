import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.test_encoder import ROWS, frame, people

from apfex.tables import TableEncoder

MIN_COUNTS = st.integers(1, 4)


def coder(min_count: int = 1) -> TableEncoder:
    return TableEncoder(categories="codes", min_count=min_count)


def hot_places(encoder: TableEncoder, X: pd.DataFrame, name: str) -> np.ndarray:
    """Return where the one-hot row of each cell is on, NaN where nowhere or where it is missing."""
    starts = (f"{name}=", f"{name}:other")
    inputs = [j for j, n in enumerate(encoder.get_feature_names_out()) if n.startswith(starts)]
    hot = encoder.transform(X)[:, inputs]
    return np.where(hot.any(axis=1) & X[name].notna(), hot.argmax(axis=1), np.nan)


@settings(deadline=None)
@given(ROWS, ROWS, MIN_COUNTS)
def test_every_cell_is_its_number_or_the_place_of_its_hot_input(rows, new_rows, min_count):
    one_hot = TableEncoder(min_count=min_count).fit(frame(rows))
    encoder = coder(min_count).fit(frame(rows))
    for X in (frame(rows), frame(new_rows)):
        out = encoder.transform(X)
        assert out.shape == (len(X), len(encoder.feature_types_))
        for j, name in enumerate(encoder.get_feature_names_out()):
            is_number = name == "number"
            expected = X[name].astype(np.float32) if is_number else hot_places(one_hot, X, name)
            np.testing.assert_array_equal(out[:, j], expected)


@given(ROWS, MIN_COUNTS)
def test_each_column_is_kept_once_or_dropped_as_in_one_hot_form(rows, min_count):
    one_hot = TableEncoder(min_count=min_count).fit(frame(rows))
    encoder = coder(min_count).fit(frame(rows))
    kept = [name for name in frame(rows) if name not in one_hot.dropped_]
    assert list(encoder.get_feature_names_out()) == kept
    assert encoder.dropped_ == one_hot.dropped_
    assert encoder.feature_types_ == ["q" if name == "number" else "c" for name in kept]
    assert one_hot.feature_types_ == ["q"] * one_hot.n_features_out_


@given(ROWS, MIN_COUNTS)
def test_json_round_trip_is_exact(rows, min_count):
    encoder = coder(min_count).fit(frame(rows))
    again = TableEncoder.from_json(encoder.to_json())
    assert again.to_json() == encoder.to_json()
    assert again.feature_types_ == encoder.feature_types_
    assert again.get_params() == encoder.get_params()
    assert again.transform(frame(rows)).tobytes() == encoder.transform(frame(rows)).tobytes()


def test_encodes_by_hand():
    encoder = coder(min_count=2)
    out = encoder.fit_transform(people())
    nan = np.nan
    np.testing.assert_array_equal(out, [[20, 0, 0], [nan, 1, 1], [40, nan, 0], [30, 0, 0]])
    assert out.dtype == np.float32
    assert list(encoder.get_feature_names_out()) == ["age", "town", "member"]
    assert encoder.feature_types_ == ["q", "c", "c"]
    assert encoder.dropped_ == {"same": "constant: 7.0", "void": "all values are missing"}


def test_new_levels_are_other_if_there_is_one_and_new_missing_values_nan():
    X = pd.DataFrame({"a": ["u", "u", "v", "v", "w"], "b": ["p", "q", "p", "q", "p"]})
    encoder = coder(min_count=2).fit(X.assign(n=range(5)))
    new = pd.DataFrame({"n": [np.nan, 9.0], "b": ["new", None], "a": ["new", None]})
    np.testing.assert_array_equal(
        encoder.transform(new), [[2, np.nan, np.nan], [np.nan, np.nan, 9]]
    )


def test_a_constant_with_gaps_stays():
    X = pd.DataFrame({"n": [1.0, np.nan, 1.0], "t": ["a", "a", None]})
    np.testing.assert_array_equal(coder().fit_transform(X), [[1, 0], [np.nan, 0], [1, np.nan]])


def test_polars_pandas_and_arrays_agree():
    X = people().drop(columns="void")
    columns = {name: [None if v != v else v for v in X[name].tolist()] for name in X}
    encoder = coder().fit(X)
    assert coder().fit(pl.DataFrame(columns)).to_json() == encoder.to_json()
    for same in (pl.DataFrame(columns), X[X.columns[::-1]], X.to_numpy(object)):
        np.testing.assert_array_equal(encoder.transform(same), encoder.transform(X))


def test_files_from_before_there_were_codes_load_as_one_hot():
    encoder = TableEncoder(min_count=1).fit(people())
    stored = json.loads(encoder.to_json())
    del stored["arguments"]["categories"]
    assert TableEncoder.from_json(json.dumps(stored)).to_json() == encoder.to_json()


def test_numbers_fit_float32_or_are_named():
    with pytest.raises(ValueError, match=r"'x0' of X must lie within 3.4e\+38 .* 0.0 to 1e\+39"):
        coder().fit([[0.0], [1e39]])
    with pytest.raises(ValueError, match=r"'x0' of X must lie within .* -1e\+39 to 0.0; rescale"):
        coder().fit([[0.0], [-1e39]])
    encoder = coder().fit([[0.0], [1.0]])
    largest = np.finfo(np.float32).max
    np.testing.assert_array_equal(encoder.transform([[1e300], [-1e300]]), [[largest], [-largest]])
    with pytest.raises(ValueError, match="must be finite, got inf"):
        encoder.transform([[np.inf]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"categories": "hash"}, "categories must be 'one-hot' or 'codes', got 'hash'"),
        (
            {"categories": "codes", "bins": "tree"},
            "bins must be None with categories='codes', got 'tree'; leave bins out .*='one-hot'",
        ),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(**arguments).fit(people(), [0, 1, 0, 1])


def test_columns_keep_their_kind():
    encoder = coder().fit(people())
    with pytest.raises(TypeError, match=r"'age' of X must hold numbers .* got levels"):
        encoder.transform(people().assign(age="old"))
    with pytest.raises(TypeError, match=r"'town' of X must hold levels .* got numbers"):
        encoder.transform(people().assign(town=1))
