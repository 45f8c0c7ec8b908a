"""Labels, groups and columns come back with their types, or are refused."""

import datetime
import os
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.estimator.tables import quick
from tests.persistence.saved import NUMBERS, SENSITIVE, Y, assert_same, fitted_case

from apfex.estimator import load

LABELS = {
    "text": lambda y: np.where(y == 1, "yes", "no"),
    "objects": lambda y: pd.Series(np.where(y == 1, "yes", "no"), dtype=object),
    "bool": lambda y: y == 1,
    "small ints": lambda y: y.astype(np.int8) - 1,
    "floats": lambda y: y.astype(np.float32),
    "pandas text": lambda y: pd.Series(np.where(y == 1, "é", "no"), dtype="string"),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_keep_their_types(tmp_path, name):
    y = LABELS[name](Y)
    favorable = np.unique(np.asarray(y))[0]
    clf = quick(model="linear", epochs=1, n_members=2, favorable_label=favorable)
    clf.fit(NUMBERS, y, sensitive_features=SENSITIVE)
    again = load(clf.save(tmp_path / "model"))
    assert again.classes_.dtype == clf.classes_.dtype
    assert list(map(type, again.classes_.tolist())) == list(map(type, clf.classes_.tolist()))
    assert_same(clf, again, NUMBERS, {})
    assert type(again.favorable_label) is type(favorable)


def _half(first: Any, second: Any) -> list:
    return [first if one == "male" else second for one in SENSITIVE["sex"]]


COLUMNS = {
    "text and missing": _half("m", None),
    "numbers": _half(1.5, 2.5),
    "whole numbers": _half(np.int64(1), np.int64(2)),
    "whole floats and missing": _half(1.0, np.nan),
    "bool": _half(True, False),
    "mixed": _half(1, "one"),
    "days": pd.Series(_half(pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01"))),
    "plain days": _half(datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)),
    "zones": pd.Series(pd.to_datetime(_half("2020-01-01", "2021-01-01")).tz_localize("UTC")),
    "bands": pd.cut(pd.Series(_half(10, 50)), [0, 18, 65]),
    "categories": pd.Series(_half("b", "a"), dtype=pd.CategoricalDtype(["c", "b", "a"])),
    "nullable": pd.Series(_half(1, None), dtype="Int64"),
    "pyarrow": pd.Series(_half("a", None), dtype="string[pyarrow]"),
    "bytes": np.array(_half(b"a", b"b")),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_levels_of_groups_keep_their_types(tmp_path, name):
    groups = {"sex": COLUMNS[name], "origin": SENSITIVE["origin"]}
    clf = quick(model="linear", epochs=1, n_members=2, group_thresholds=True)
    clf.fit(NUMBERS, Y, sensitive_features=groups)
    again = load(clf.save(tmp_path / "model"))
    known, kept = clf.fitted_.groups, again.fitted_.groups
    assert known is not None
    assert kept is not None
    assert kept.names == known.names
    assert [level.dtype for level in kept.levels] == [level.dtype for level in known.levels]
    assert kept.encode(groups).tolist() == known.encode(groups).tolist()
    assert_same(clf, again, NUMBERS, {"sensitive_features": groups})


class Sex:
    """A level of the user's own."""

    def __init__(self, name):
        self.name = name

    def __lt__(self, other):
        return self.name < other.name


def test_what_would_not_come_back_is_refused_before_anything_is_written(tmp_path):
    own = _half(Sex("m"), Sex("f"))
    clf = quick(model="linear", epochs=1, n_members=2, group_thresholds=True)
    clf.fit(NUMBERS, Y, sensitive_features={"sex": own})
    with pytest.raises(TypeError, match=r"levels of 'sex' must be of a plain type .* got .*Sex"):
        clf.save(tmp_path / "model")
    fitted = pickle.loads(pickle.dumps(fitted_case("array")[0]))
    fitted.favorable_label = Sex("m")
    with pytest.raises(TypeError, match=r"favorable_label must be of a plain type"):
        fitted.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_columns_may_have_names_that_are_no_text(tmp_path):
    table = NUMBERS.set_axis(range(NUMBERS.shape[1]), axis=1)
    clf = quick(model="linear", epochs=1, n_members=2)
    clf.fit(table, Y, sensitive_features=SENSITIVE)
    assert_same(clf, load(clf.save(tmp_path / "model")), table, {})
