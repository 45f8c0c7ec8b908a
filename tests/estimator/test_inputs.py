"""Bad input: a clear error or a documented result, never NaN on the front."""

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from tests.estimator.tables import DATA, FRESH, quick, shared

from apfex.estimator._inputs import read_weights
from apfex.front import UnmetBoundWarning
from apfex.groups import make_groups
from apfex.metrics import NotEstimableWarning

N = len(DATA.y)


def fit(
    X: Any = DATA.X,
    y: Any = DATA.y,
    sensitive_features: Any = DATA.sensitive,
    sample_weight: Any = None,
    **changes,
):
    return quick(**changes).fit(
        X, y, sensitive_features=sensitive_features, sample_weight=sample_weight
    )


def is_finite(clf):
    frame = clf.front_.to_frame().select_dtypes("number")
    return np.isfinite(frame.to_numpy()).all() and np.isfinite(clf.predict_proba(FRESH.X)).all()


ROWS = {
    "one class": ({"y": np.ones(N)}, "at least two classes in rows with weight, got one class"),
    "no labels": ({"y": None}, "the target y is None"),
    "labels too short": ({"y": DATA.y[1:]}, "one label for each of the 600 rows of X, got 599"),
    "missing label": (
        {"y": np.where(DATA.y, 1.0, np.nan)},
        "y must not have missing values, got 294",
    ),
    "continuous labels": ({"y": np.linspace(0, 1, N)}, "Unknown label type"),
    "one group": ({"sensitive_features": ["a"] * N}, "at least two groups, got one"),
    "a group for each row": (
        {"sensitive_features": np.arange(N)},
        "at most one group for every two rows, got 600 groups in 600 rows; use fewer attributes",
    ),
    "sensitive too short": (
        {"sensitive_features": DATA.sensitive.to_numpy()[:-1]},
        "one row for each of the 600 rows of X, got 599",
    ),
    "unequal sensitive columns": (
        {"sensitive_features": {"a": [1] * N, "b": [1, 2]}},
        "columns of one length",
    ),
    "disagreeing index": (
        {"sensitive_features": DATA.sensitive.iloc[::-1]},
        "sensitive_features must have the index of X, got another",
    ),
    "disagreeing index of labels": (
        {"y": pd.Series(DATA.y, index=DATA.X.index + 1)},
        "y must have the index of X",
    ),
    "disagreeing index in a mapping": (
        {"sensitive_features": {"sex": DATA.sensitive["sex"].iloc[::-1]}},
        "sensitive_features must have the index of X",
    ),
    "infinite value": (
        {"X": DATA.X.assign(merit_1=np.where(np.arange(N) == 5, np.inf, 0.0))},
        "Column 'merit_1' of X must be finite, got inf in row 5",
    ),
    "repeated names": (
        {"X": pd.concat([DATA.X, DATA.X[["town"]]], axis=1)},
        r"Column names of X must be unique, got \['town'\]",
    ),
    "nothing varies": (
        {"X": pd.DataFrame({"a": [1.0] * N, "b": ["x"] * N})},
        "X must have a column that varies, got none: .*constant",
    ),
    "one dimension": ({"X": np.zeros(N)}, "Reshape your data"),
    "weights too short": (
        {"sample_weight": [1.0]},
        r"sample_weight must have one entry per row of X \(600\), got 1",
    ),
    "negative weight": ({"sample_weight": -np.ones(N)}, "finite and at least 0, got -1"),
    "weights all zero": ({"sample_weight": np.zeros(N)}, "positive somewhere, got only zeros"),
    "weights hide a class": (
        {"sample_weight": DATA.y.astype(float)},
        "got one class",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_cannot_be_used_are_refused(name):
    changes, message = ROWS[name]
    with pytest.raises(ValueError, match=message):
        fit(**changes)


SETTINGS = {
    "criteria": (("dp", "fairness"), "criteria must be some of"),
    "grouping": ("cells", "grouping must be one of"),
    "scoring": ("fairness", "scoring must be 'accuracy', 'balanced_accuracy', or the name"),
    "model": ("tree", r"model must be 'auto', of \['mlp', .* or a factory, got 'tree'"),
    "n_points": (0, "n_points must be an integer of at least 1, got 0"),
    "n_members": (1, "n_members must be an integer of at least 2, got 1"),
    "batch_size": (1.5, "batch_size must be an integer"),
    "epochs": (0, "epochs must be at least 1"),
    "learning_rate": (-1.0, "learning_rate must be positive"),
    "hidden": ((0,), "hidden must be widths of at least 1"),
    "bins": ("trees", "bins must be one of"),
    "validation_fraction": (1.0, "validation_fraction must be between 0 and 1, got 1.0"),
    "max_gap": ({"tpr": 0.1}, r"max_gap must name criteria of \['dp'\], got \['tpr'\]"),
    "favorable_label": ("yes", r"favorable_label must be one of \[0, 1\], got 'yes'"),
    "device": ("abacus", "device must be 'auto' or a device of torch, got 'abacus'"),
    "include_sensitive": (True, "include_sensitive must be False where sensitive_features"),
    "sensitive": (["sex"], "sensitive_features must be None where sensitive names columns"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_name_nothing_are_refused(name):
    value, message = SETTINGS[name]
    with pytest.raises(ValueError, match=message):
        fit(**{name: value})


@pytest.mark.parametrize("max_gap", [5, 1.01, np.inf, -0.1, np.nan, {"dp": 1.5}], ids=str)
def test_a_bound_that_no_gap_can_pass_is_refused(max_gap):
    with pytest.raises(ValueError, match=r"max_gap must be from 0 to 1, .* 0\.05 is 5 points"):
        fit(max_gap=max_gap)


@pytest.mark.parametrize("max_gap", ["a", None, [0.1], True, {"dp": "0.1"}], ids=str)
def test_a_bound_that_is_no_number_is_refused(max_gap):
    found = max_gap["dp"] if isinstance(max_gap, dict) else max_gap
    rule = "max_gap must be a number from 0 to 1, or a mapping from criteria to such numbers"
    with pytest.raises(ValueError, match=re.escape(f"{rule}, got {found!r} for 'dp'; give 0.05")):
        fit(max_gap=max_gap)


def test_no_criteria_are_refused():
    with pytest.raises(ValueError, match="criteria must be some of"):
        fit(criteria=())


def test_a_typo_in_the_name_of_a_sensitive_column_shows_the_columns():
    with pytest.raises(ValueError, match=r"got \['sexx'\]; X has \['merit_1', .*'town'"):
        quick(sensitive=["town", "sexx"]).fit(DATA.X, DATA.y)
    with pytest.raises(ValueError, match="X must be a table with the columns"):
        quick(sensitive="town").fit(DATA.X.to_numpy(), DATA.y)
    with pytest.raises(ValueError, match="a column that is not sensitive"):
        quick(sensitive="town").fit(DATA.X[["town"]], DATA.y)


def test_codes_outside_all_groups_are_refused():
    groups = make_groups(["a", "b"])
    with pytest.warns(UserWarning, match="did not occur"):
        codes = groups.encode((["a", "b", "c"] * N)[:N])
    outside = type(groups)(codes, groups.attributes, groups.levels, groups.cells, groups._keys)
    with pytest.raises(ValueError, match="must give every row a group, got 200 rows with code -1"):
        fit(sensitive_features=outside)


def test_types_that_cannot_be_read_are_refused():
    mixed = np.array([1, "a"] * (N // 2), dtype=object)
    with pytest.raises(TypeError, match=r"mixture of int, str in column 'town'"):
        fit(X=DATA.X.assign(town=mixed))
    with pytest.raises(TypeError, match=r"X must be dense, got a sparse matrix"):
        fit(X=scipy.sparse.eye_array(N))
    with pytest.raises(TypeError, match="sensitive_features must be a column"):
        fit(sensitive_features=3)


@pytest.mark.parametrize("sensitive", [4, {"town"}, iter(["town"]), b"town", np.array([["town"]])])
def test_names_of_sensitive_columns_without_an_order_are_refused(sensitive):
    found = type(sensitive).__name__
    with pytest.raises(TypeError, match=f"sensitive must be the name .* several, got {found}"):
        quick(sensitive=sensitive).fit(DATA.X, DATA.y)


def test_labels_that_do_not_compare_are_refused():
    with pytest.raises(TypeError, match="y must hold labels that can be sorted, got values of typ"):
        fit(y=[1 if label else "none" for label in DATA.y])


def test_labels_may_be_of_the_text_type_of_numpy():
    words = np.where(DATA.y, "yes", "no")
    clf = fit(y=words.astype(np.dtypes.StringDType()))
    assert clf.classes_.tolist() == ["no", "yes"]
    assert (clf.predict(FRESH.X) == fit(y=words).predict(FRESH.X)).all()


def test_a_fit_that_a_warning_stops_leaves_nothing_behind():
    clf = quick(max_gap=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnmetBoundWarning)
        with pytest.raises(UnmetBoundWarning):
            clf.fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive)
    with pytest.raises(NotFittedError):
        clf.predict(FRESH.X)


def test_constant_and_missing_columns_are_left_out():
    X = DATA.X.assign(same=1, nothing=np.nan, none=None)
    clf = fit(X=X)
    assert is_finite(fit())
    assert (clf.predict_proba(X) == fit().predict_proba(DATA.X)).all()


def test_a_column_that_is_missing_in_training_may_be_there_later():
    X = DATA.X.assign(nothing=np.nan)
    clf = fit(X=X)
    assert (clf.predict(X) == clf.predict(X.assign(nothing=1.0))).all()


def test_a_group_without_validation_rows_is_left_out_with_one_warning():
    group = np.array(["a", "b"] * (N // 2), dtype=object)
    group[0] = "alone"
    message = r"dp of \['group=alone'\]\. Merge levels, or raise validation_fraction"
    with pytest.warns(NotEstimableWarning, match=message) as caught:
        clf = fit(sensitive_features={"group": group}, validation_fraction=0.05, validation="split")
    assert len(caught) == 1
    assert caught[0].filename.endswith("test_inputs.py")  # the line that called fit
    assert is_finite(clf)
    assert clf.front_[0].gaps["dp"].n_groups == 2


def test_a_criterion_that_validation_rows_cannot_measure_is_refused():
    y = np.where(DATA.sensitive["sex"] == "male", DATA.y, 0)
    message = r"got 'tpr': of .* 'sex=male'\] 1 have rows with the favorable label there"
    with pytest.raises(ValueError, match=message):
        fit(y=y, criteria="tpr", sensitive_features=DATA.sensitive[["sex"]])
    with pytest.raises(ValueError, match="got 'equalized_odds'"):
        fit(y=y, criteria="equalized_odds", sensitive_features=DATA.sensitive[["sex"]])
    assert is_finite(fit(y=y, criteria="dp", sensitive_features=DATA.sensitive[["sex"]]))


def test_diverged_members_never_reach_the_front():
    with pytest.raises(ValueError, match="lower learning_rate"):
        fit(learning_rate=1e30, epochs=8)


def test_a_class_of_one_row_is_for_training():
    y = DATA.y.copy()
    y[0] = 2
    clf = fit(y=y)
    assert clf.classes_.tolist() == [0, 1, 2]
    assert is_finite(clf)
    np.testing.assert_allclose(clf.predict_proba(FRESH.X).sum(1), 1)


def test_two_rows_are_too_few():
    with pytest.raises(ValueError, match="n_samples=2"), pytest.warns(UserWarning, match="plain"):
        quick().fit([[0.0], [1.0]], [0, 1])


def test_small_tables_give_finite_fronts():
    rows = np.arange(40)
    clf = fit(DATA.X.iloc[rows], DATA.y[rows], DATA.sensitive.iloc[rows])
    assert is_finite(clf)


def test_columns_that_changed_are_refused_at_predict():
    clf = shared()
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(FRESH.X.drop(columns="town"))
    with pytest.raises(TypeError, match="'merit_1' of X must hold numbers as it did in fit"):
        clf.predict(FRESH.X.assign(merit_1="many"))


def test_inputs_stay_untouched():
    X, y, sensitive = DATA.X.copy(), DATA.y.copy(), DATA.sensitive.copy()
    weight = np.arange(N, dtype=float)
    fit(X, y, sensitive, weight)
    assert X.equals(DATA.X)
    assert sensitive.equals(DATA.sensitive)
    assert (y == DATA.y).all()
    assert (weight == np.arange(N)).all()


def test_a_level_unseen_in_training_is_no_error():
    clf = shared()
    assert np.isfinite(clf.predict_proba(FRESH.X.assign(town="Elsewhere"))).all()


def test_weights_are_one_on_average_however_large():
    weight = read_weights([0.0, 1e300, 3e300], 3)
    assert weight is not None
    np.testing.assert_allclose(weight, [0.0, 0.5, 1.5])


def test_labels_that_are_spelled_in_two_ways_are_refused():
    y = np.where(DATA.y == 1, "yes", "no").astype(object)
    y[:5] = "Yes"
    with pytest.raises(ValueError, match="spell every label in one way, got 'Yes' and 'yes'"):
        fit(y=y)
