"""Trees on tables of every form: mixed types, weights, classes, groups."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.estimator.tables import DATA, FRESH
from tests.estimator.trees import BOTH, BY_NAME, WHOLE, fitted, shared, trees

from apfex.metrics import accuracy


def mixed(n=600, seed=0):
    """Numbers, categories and missing values, all of which tell of the label."""
    rng = np.random.default_rng(seed)
    kind, number = rng.choice(["a", "b", "c", "d"], n), rng.normal(size=n)
    flag, is_missing = rng.random(n) < 0.5, rng.random(n) < 0.3
    y = (number + 1.5 * np.isin(kind, ["a", "c"]) + is_missing > 1).astype(int)
    group = np.where(rng.random(n) < 0.3 + 0.4 * y, "x", "y")
    frame = pd.DataFrame({"kind": kind, "number": number, "told": rng.normal(size=n), "flag": flag})
    frame.loc[is_missing, "told"] = np.nan
    frame.loc[rng.random(n) < 0.1, "kind"] = None
    return frame, y, group


def in_polars(frame):
    return pl.DataFrame(
        {name: [None if pd.isna(v) else v for v in frame[name]] for name in frame.columns}
    )


@BOTH
def test_mixed_tables_with_missing_values(form):
    X, y, group = mixed()
    clf = fitted(X, y, group, **form, n_estimators=40)
    fresh, fresh_y, _ = mixed(seed=1)
    assert accuracy(fresh_y, clf.at(0).predict(fresh)) > 0.8
    # Each column counts, the missing values too.
    for name in ("kind", "number", "told"):
        other = fresh.assign(**{name: fresh[name].to_numpy()[::-1]})
        assert accuracy(fresh_y, clf.at(0).predict(other)) < clf.at(0).score(fresh, fresh_y) - 0.02

    again = fitted(in_polars(X), y, group, **form, n_estimators=40)
    for other in (clf, again):
        assert (other.predict_proba(in_polars(fresh)) == clf.predict_proba(fresh)).all()

    unseen = fresh.assign(kind="never seen")
    assert np.isfinite(clf.predict_proba(unseen)).all()


@BOTH
def test_one_split_may_take_many_levels(form):
    rng = np.random.default_rng(0)
    code, group = rng.integers(0, 24, 900), rng.integers(0, 2, 900)
    X = pd.DataFrame({"code": [f"level {c}" for c in code], "noise": rng.normal(size=900)})
    clf = fitted(X, code % 2, group, **form, n_estimators=6, max_depth=1)
    assert clf.at(0).score(X, code % 2) > 0.95


@BOTH
def test_three_classes(form):
    y = np.where(DATA.X["merit_1"] + DATA.X["merit_2"] > 2, "high", np.where(DATA.y, "mid", "low"))
    clf = fitted(y=y, **form)
    assert clf.classes_.tolist() == ["high", "low", "mid"]
    proba = clf.predict_proba(FRESH.X)
    assert proba.shape == (600, 3)
    np.testing.assert_allclose(proba.sum(1), 1)
    decided = clf.decision_function(FRESH.X).argmax(1)
    assert (clf.classes_[decided] == clf.predict(FRESH.X)).all()
    expected = np.where(
        FRESH.X["merit_1"] + FRESH.X["merit_2"] > 2, "high", np.where(FRESH.y, "mid", "low")
    )
    assert np.mean(clf.at(0).predict(FRESH.X) == expected) > 0.65
    assert clf.front_[-1].gaps["dp"].gap < clf.front_[0].gaps["dp"].gap
    gaps = clf.audit(FRESH.X, expected, sensitive_features=FRESH.sensitive).gaps
    assert len(gaps) >= 1


@BOTH
def test_weights_count(form):
    weight = np.where(DATA.y == 1, 5.0, 1.0)
    plain, weighted = shared(**form), fitted(sample_weight=weight, **form)
    shares = [clf.at(0).predict(FRESH.X).mean() for clf in (plain, weighted)]
    assert shares[1] > shares[0] + 0.1
    tiny = fitted(sample_weight=weight * 2.0**-40, **form)
    assert tiny.front_.to_frame().equals(weighted.front_.to_frame())
    ones = fitted(sample_weight=np.ones(len(DATA.y)), **form)
    assert (ones.predict_proba(FRESH.X) == plain.predict_proba(FRESH.X)).all()


@BOTH
def test_rows_of_weight_zero_are_no_rows(form):
    weight = np.random.default_rng(0).integers(0, 3, len(DATA.y)).astype(float)
    here = weight > 0
    whole = fitted(sample_weight=weight, **form)
    part = fitted(DATA.X[here], DATA.y[here], DATA.sensitive[here], weight[here], **form)
    assert (whole.predict_proba(FRESH.X) == part.predict_proba(FRESH.X)).all()


@BOTH
def test_named_columns_are_no_inputs_unless_asked_for(form):
    clf = trees(**BY_NAME, **form).fit(WHOLE, DATA.y)
    same = shared(**form)
    assert (clf.predict_proba(WHOLE) == same.predict_proba(DATA.X)).all()
    assert (clf.predict_proba(WHOLE.assign(sex="male")) == clf.predict_proba(WHOLE)).all()
    informed = trees(**BY_NAME, **form, include_sensitive=True).fit(WHOLE, DATA.y).at(0)
    other = WHOLE.assign(sex="male")
    assert not (informed.predict_proba(other) == informed.predict_proba(WHOLE)).all()


@BOTH
def test_gaps_may_be_those_of_each_attribute(form):
    clf = fitted(grouping="attributes", criteria=("dp", "tpr"), **form)
    assert set(clf.front_[0].gaps) == {"dp", "tpr"}
    least = min(point.gaps["dp"].gap for point in clf.front_)
    assert least < clf.front_[0].gaps["dp"].gap


def test_thresholds_may_depend_on_the_group():
    clf = fitted(group_thresholds=True).at(-1)
    scores = [
        clf.decision_function(
            FRESH.X, sensitive_features=FRESH.sensitive.assign(sex=sex, origin="north")
        )
        for sex in ("female", "male")
    ]
    assert not np.allclose(scores[0], scores[1])
    with pytest.raises(ValueError, match="group_thresholds must be False for members"):
        fitted(group_thresholds=True, search="inprocess")


@pytest.mark.filterwarnings("ignore:sensitive_features is None")
@BOTH
def test_without_groups_the_front_is_a_plain_model(form):
    clf = fitted(sensitive=None, **form)
    assert len(clf.front_) == 1
    assert clf.score(FRESH.X, FRESH.y) > 0.7
