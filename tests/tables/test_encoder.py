import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from apfex.tables import TableEncoder

NUMBERS = st.one_of(st.none(), st.floats(-1e6, 1e6, allow_subnormal=False))
LEVELS = st.one_of(st.none(), st.sampled_from(["a", "b", "c", "", "nan"]))
ROWS = st.lists(st.tuples(NUMBERS, LEVELS, st.booleans()), min_size=1, max_size=30)


def frame(rows: list[tuple[float | None, str | None, bool]]) -> pd.DataFrame:
    numbers = np.array([np.nan if row[0] is None else row[0] for row in rows], float)
    text = pd.Series([row[1] for row in rows], dtype=object)
    return pd.DataFrame({"number": numbers, "text": text, "flag": [row[2] for row in rows]})


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [20.0, np.nan, 40.0, 30.0],
            "town": ["Bern", "Basel", None, "Bern"],
            "member": [True, False, True, True],
            "same": [7, 7, 7, 7],
            "void": [None, None, None, None],
        }
    )


def test_the_spread_is_kept_beside_a_huge_mean():
    values = 1e9 + np.arange(1000.0)[:, None]
    out = TableEncoder().fit_transform(values)
    assert out[:, 0] == pytest.approx((values[:, 0] - values.mean()) / values.std(), rel=1e-6)


@settings(deadline=None)
@given(ROWS, st.integers(1, 4), st.sampled_from([None, "quantile", "tree"]))
def test_json_round_trip_is_exact_and_output_finite(rows, min_count, bins):
    X, y = frame(rows), np.arange(len(rows)) % 2
    encoder = TableEncoder(min_count=min_count, bins=bins, max_bins=4).fit(X, y)
    again = TableEncoder.from_json(encoder.to_json())
    assert again.to_json() == encoder.to_json()
    encoded = encoder.transform(X)
    assert np.isfinite(encoded).all()
    assert encoded.dtype == np.float32
    assert encoded.shape == (len(rows), len(encoder.get_feature_names_out()))
    assert encoded.tobytes() == again.transform(X).tobytes()
    assert again.get_params() == encoder.get_params()


def test_encodes_by_hand():
    encoder = TableEncoder(min_count=2)
    out = encoder.fit_transform(people())
    assert list(encoder.get_feature_names_out()) == [
        *("age", "age:missing", "town=Bern", "town:other", "town:missing"),
        *("member=True", "member:other"),
    ]
    z = 10 / np.sqrt(200 / 3)
    expected = [
        [-z, 0, 1, 0, 0, 1, 0],
        [0, 1, 0, 1, 0, 0, 1],
        [z, 0, 0, 0, 1, 1, 0],
        [0, 0, 1, 0, 0, 1, 0],
    ]
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    assert encoder.dropped_ == {"same": "constant: 7.0", "void": "all values are missing"}


def test_fit_leaves_its_input_alone():
    X = people()
    TableEncoder(min_count=1).fit_transform(X)
    pd.testing.assert_frame_equal(X, people())


def test_polars_pandas_and_arrays_agree():
    X = people().drop(columns="void")
    columns = {name: [None if v != v else v for v in X[name].tolist()] for name in X}
    encoder = TableEncoder(min_count=1).fit(X)
    assert TableEncoder(min_count=1).fit(pl.DataFrame(columns)).to_json() == encoder.to_json()
    np.testing.assert_array_equal(encoder.transform(pl.DataFrame(columns)), encoder.transform(X))
    np.testing.assert_array_equal(encoder.transform(X.to_numpy(object)), encoder.transform(X))


@pytest.mark.parametrize(
    ("column", "names"),
    [
        (pd.array([1, None, 3], dtype="Int64"), ["c", "c:missing"]),
        (pd.array([True, None, False], dtype="boolean"), ["c=False", "c=True", "c:missing"]),
        (pd.array(["a", None, "b"], dtype="string"), ["c=a", "c=b", "c:missing"]),
        (pd.Categorical([1, 2, None]), ["c=1", "c=2", "c:missing"]),
        (pd.Categorical([1, 2, 2]), ["c=1", "c=2"]),
        (np.array([1, 2.5, None], object), ["c", "c:missing"]),
        (np.array([Decimal("1.5"), Decimal("2"), None], object), ["c", "c:missing"]),
        (np.array([1, 2, 3], np.uint8), ["c"]),
    ],
)
def test_reads_every_kind_of_column(column, names):
    encoder = TableEncoder(min_count=1).fit(pd.DataFrame({"c": column}))
    assert list(encoder.get_feature_names_out()) == names


def test_new_levels_and_new_missing_values():
    X = pd.DataFrame({"a": ["u", "u", "v", "v", "w"], "b": ["p", "q", "p", "q", "p"]})
    encoder = TableEncoder(min_count=2).fit(X.assign(n=range(5)))
    new = pd.DataFrame({"n": [np.nan, 2.0], "b": ["new", None], "a": [None, "new"]})
    names = list(encoder.get_feature_names_out())
    assert names == ["a=u", "a=v", "a:other", "b=p", "b=q", "n"]
    np.testing.assert_array_equal(encoder.transform(new), [[0, 0, 1, 0, 0, 0]] * 2)


def test_columns_are_matched_by_name_and_named_when_wrong():
    X = people()
    encoder = TableEncoder(min_count=1).fit(X)
    np.testing.assert_array_equal(encoder.transform(X[X.columns[::-1]]), encoder.transform(X))
    with pytest.raises(ValueError, match=r"missing: \['age'\], unknown: \['years'\]"):
        encoder.transform(X.rename(columns={"age": "years"}))
    with pytest.raises(ValueError, match=r"missing: none, unknown: \['years'\]"):
        encoder.transform(X.assign(years=1))
    with pytest.raises(ValueError, match="X has 2 features, but TableEncoder is expecting 5"):
        encoder.transform([[1, 2]])
    with pytest.raises(TypeError, match=r"'age' of X must hold numbers .* got levels"):
        encoder.transform(X.assign(age="old"))
    with pytest.raises(TypeError, match=r"'town' of X must hold levels .* got numbers"):
        encoder.transform(X.assign(town=1))


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([[1.0, 2.0], [np.inf, 1.0]], ValueError, "'x0' of X must be finite, got inf in row 1"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, r"unique, got \['a'\]"),
        (pd.DataFrame({"m": [1, "a"]}), TypeError, "mixture of int, str in column 'm'"),
        (pd.DataFrame({"m": [True, 1]}, dtype=object), TypeError, "mixture of bool, int"),
        (pd.DataFrame({"m": pd.Categorical([1, "1"])}), TypeError, r"'m' .* got \['1'\]"),
        (pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])}), TypeError, "'t' .* got datetime64"),
        (pd.DataFrame({"t": [{}, {}]}), TypeError, "'t' .* got dict"),
        (pl.DataFrame({"t": [{"a": 1, "b": 2}] * 2}), TypeError, "'t' .* got several values in"),
        (np.array([[1j]]), ValueError, "Complex data not supported: column 'x0'"),
        ([1.0, 2.0], ValueError, "2 dimensions, got 1"),
        (np.empty((0, 2)), ValueError, r"0 sample\(s\)"),
        (np.empty((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\)"),
        (
            pl.LazyFrame({"a": [1]}),
            TypeError,
            r"LazyFrame of polars, .*collect\(\), or .*sink_parquet",
        ),
        ([[1e308], [-1e308]], ValueError, "'x0' of X must have a mean and spread"),
    ],
)
def test_bad_tables_are_named(X, error, message):
    with pytest.raises(error, match=message):
        TableEncoder().fit(X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"min_count": 0}, "min_count must be an integer of at least 1, got 0"),
        ({"max_bins": 1}, "max_bins must be an integer of at least 2, got 1"),
        ({"bins": "oak"}, "bins must be 'tree', 'quantile' or None, got 'oak'"),
        ({"bins": "tree"}, "bins='tree' requires y to be passed"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(**arguments).fit(people())


def test_labels_of_another_length_are_named():
    with pytest.raises(ValueError, match=r"one label per row of X, got shape \(2,\) for 4 rows"):
        TableEncoder(bins="tree").fit(people(), [0, 1])


@pytest.mark.parametrize("X", [[[1e-300], [2e-300]], [[1e150], [-1e150]], [[0.0], [5e-324]]])
def test_extreme_scales_stay_finite(X):
    encoder = TableEncoder().fit(X)
    assert np.ptp(encoder.transform(X)) > 0
    assert np.isfinite(encoder.transform([[1e308], [-1e308]])).all()


def test_unique_identifiers_are_dropped_with_the_reason():
    encoder = TableEncoder().fit(pd.DataFrame({"id": list("abcd"), "n": range(4)}))
    assert encoder.dropped_["id"] == "none of its 4 levels occurs 10 times (min_count)"


def test_a_constant_with_gaps_keeps_its_flag():
    out = TableEncoder().fit_transform(pd.DataFrame({"c": [1.0, np.nan, 1.0]}))
    np.testing.assert_array_equal(out, [[0], [1], [0]])


def test_bins_are_ramps_then_steps():
    X = np.arange(9.0)[:, None]
    encoder = TableEncoder(bins="quantile", max_bins=2).fit(X)
    assert list(encoder.get_feature_names_out()) == ["x0", "x0:ramp0", "x0:ramp1", "x0:step1"]
    out = encoder.transform([[-9.0], [0.0], [2.0], [4.0], [6.0], [8.0], [99.0]])
    np.testing.assert_allclose(out[:, 1], [0, 0, 0.5, 1, 1, 1, 1])
    np.testing.assert_allclose(out[:, 2], [0, 0, 0, 0, 0.5, 1, 1])
    np.testing.assert_allclose(out[:, 3], [0, 0, 0, 0, 1, 1, 1])


def test_tree_bins_find_the_step_in_the_label():
    x = np.linspace(0.0, 1.0, 200)
    y = (x > 0.3).astype(int)
    encoder = TableEncoder(bins="tree").fit(x[:, None], y)
    steps = encoder.transform(x[:, None])[:, -1]
    np.testing.assert_array_equal(steps, y)
    none = TableEncoder(bins="tree").fit((x > 0.5)[:, None].astype(float), y)
    assert list(none.get_feature_names_out()) == ["x0"]


def test_behaves_like_an_estimator():
    encoder = TableEncoder(min_count=3, bins="quantile")
    assert vars(clone(encoder)) == encoder.get_params()
    with pytest.raises(NotFittedError):
        encoder.transform([[1.0]])
    with pytest.raises(NotFittedError):
        encoder.to_json()
    assert encoder.fit([[1.0], [2.0]]).transform(np.empty((0, 1))).shape == (0, 1)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "x", "version": 1}'])
def test_foreign_json_is_refused(text):
    with pytest.raises(ValueError, match="text must be"):
        TableEncoder.from_json(text)


def test_damaged_json_is_refused():
    stored = json.loads(TableEncoder().fit([[1.0], [2.0]]).to_json())
    del stored["columns"][0]["mean"]
    with pytest.raises(ValueError, match="output of to_json"):
        TableEncoder.from_json(json.dumps(stored))


@pytest.mark.parametrize(
    "settings", [{}, {"categories": "codes"}, {"bins": "tree"}, {"bins": "quantile"}], ids=str
)
def test_it_passes_the_checks_of_scikit_learn(settings):
    results = check_estimator(TableEncoder(**settings), on_fail=None, on_skip=None)
    odd = {one["check_name"]: one["exception"] for one in results if one["status"] != "passed"}
    odd.pop("check_array_api_input", None)  # skipped unless SCIPY_ARRAY_API is set
    assert odd == {}
