"""In the company of scikit-learn's tools, and with tables and models of every kind."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.estimator.tables import DATA, FRESH, fitted, quick, shared
from torch import nn

from apfex.estimator import APFExClassifier

WHOLE = pd.concat([DATA.X, DATA.sensitive], axis=1)
FRESH_WHOLE = pd.concat([FRESH.X, FRESH.sensitive], axis=1)
BY_NAME = {"sensitive": ["sex", "origin"]}


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_clone_and_set_params():
    clf = quick(criteria=("dp", "tpr"), max_gap={"dp": 0.1})
    again: Any = clone(clf)
    assert again.get_params() == clf.get_params()
    assert not hasattr(clone(shared()), "front_")
    assert clf.set_params(n_points=3).n_points == 3


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_an_unfitted_classifier_says_so(method):
    with pytest.raises(NotFittedError):
        getattr(quick(), method)(DATA.X)
    for call in (lambda: quick().at(0), lambda: quick().select(0.1), lambda: quick().use(0)):
        with pytest.raises(NotFittedError):
            call()


def test_equal_seeds_give_equal_fronts():
    first, second, third = shared(), fitted(), shared(random_state=1)
    assert first.front_.to_frame().equals(second.front_.to_frame())
    assert (first.predict_proba(FRESH.X) == second.predict_proba(FRESH.X)).all()
    assert not (first.predict_proba(FRESH.X) == third.predict_proba(FRESH.X)).all()


def test_named_columns_need_no_routing():
    pipe = make_pipeline(FunctionTransformer(), quick(**BY_NAME, model="linear"))
    models = {"apfexclassifier__n_points": [2, 4]}
    search: Any = GridSearchCV(pipe, models, cv=2).fit(WHOLE, DATA.y)
    assert search.best_score_ > 0.6
    assert search.best_estimator_[-1].front_[0].gaps["dp"].n_groups == 4
    assert search.score(FRESH_WHOLE, FRESH.y) > 0.6


def test_named_columns_are_no_inputs_and_not_needed_at_predict():
    clf = quick(**BY_NAME).fit(WHOLE, DATA.y)
    other = FRESH_WHOLE.assign(sex="male", origin="north")
    assert (clf.predict_proba(FRESH_WHOLE) == clf.predict_proba(other)).all()
    assert (clf.predict_proba(FRESH_WHOLE) == clf.predict_proba(FRESH.X)).all()
    same = shared()
    assert (same.predict_proba(FRESH.X) == clf.predict_proba(FRESH.X)).all()
    gaps = clf.audit(FRESH_WHOLE, FRESH.y).gaps
    assert gaps.equals(same.audit(FRESH.X, FRESH.y, sensitive_features=FRESH.sensitive).gaps)
    with pytest.raises(ValueError, match="X must be a table"):
        clf.predict(FRESH.X.to_numpy())


def test_named_columns_may_be_inputs():
    clf = quick(**BY_NAME, include_sensitive=True).fit(WHOLE, DATA.y)
    other = FRESH_WHOLE.assign(sex="male")
    assert not (clf.predict_proba(FRESH_WHOLE) == clf.predict_proba(other)).all()
    with pytest.raises(ValueError, match="sex"):
        clf.predict(FRESH.X)


@pytest.mark.usefixtures("routing")
def test_sensitive_features_are_requested_by_default():
    assert quick().get_metadata_routing().fit.requests["sensitive_features"] is True
    passed = {"sensitive_features": DATA.sensitive}
    pipe = make_pipeline(FunctionTransformer(), quick(model="linear"))
    points = {"apfexclassifier__n_points": [1, 4]}
    search: Any = GridSearchCV(pipe, points, cv=2).fit(DATA.X, DATA.y, **passed)
    assert search.best_score_ > 0.6
    assert search.best_estimator_[-1].front_[0].gaps["dp"].n_groups == 4


@pytest.mark.usefixtures("routing")
def test_sample_weight_can_be_requested():
    clf: Any = quick(model="linear")
    clf.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
    passed = {"sensitive_features": DATA.sensitive, "sample_weight": np.ones(len(DATA.y))}
    assert cross_val_score(clf, DATA.X, DATA.y, cv=2, params=passed).min() > 0.6


def test_a_pipeline_passes_sensitive_features_without_routing():
    pipe = make_pipeline(FunctionTransformer(), quick())
    pipe.fit(DATA.X, DATA.y, apfexclassifier__sensitive_features=DATA.sensitive)
    assert pickle.loads(pickle.dumps(pipe)).predict(FRESH.X).shape == (600,)


@pytest.mark.parametrize(
    "form",
    [
        {name: DATA.sensitive[name].tolist() for name in DATA.sensitive},
        DATA.sensitive.to_numpy(),
        pl.DataFrame(DATA.sensitive.to_dict("list")),
        pa.Table.from_pandas(DATA.sensitive),
    ],
    ids=["mapping", "array", "polars", "arrow"],
)
def test_sensitive_features_in_every_form(form):
    clf = quick().fit(DATA.X, DATA.y, sensitive_features=form)
    assert clf.front_.to_frame()["dp_gap"].equals(shared().front_.to_frame()["dp_gap"])


def test_polars_frames_say_the_same_as_pandas():
    X, new = (pl.DataFrame(frame.to_dict("list")) for frame in (WHOLE, FRESH_WHOLE))
    clf: Any = quick(**BY_NAME).fit(X, pl.Series(DATA.y))
    assert list(clf.feature_names_in_) == list(WHOLE.columns)
    assert (clf.predict_proba(new) == shared().predict_proba(FRESH.X)).all()
    weight = pl.Series(np.ones(len(DATA.y)))
    columns = pl.DataFrame(DATA.sensitive.to_dict("list"))
    inputs = X.drop("sex", "origin")
    apart = quick(epochs=1, n_members=2, validation="split").fit(
        inputs, DATA.y, sensitive_features=columns, sample_weight=weight
    )
    assert apart.predict(new.drop("sex", "origin")).shape == (600,)


def test_arrow_tables_say_the_same_as_pandas():
    X = WHOLE.assign(merit_3=WHOLE["merit_1"])  # two columns with the same values
    new = FRESH_WHOLE.assign(merit_3=FRESH_WHOLE["merit_1"])
    clf: Any = quick(**BY_NAME).fit(X, DATA.y)
    again: Any = quick(**BY_NAME).fit(pa.Table.from_pandas(X), pa.array(DATA.y))
    assert list(again.feature_names_in_) == list(X.columns)
    for table in (pa.Table.from_pandas(new), pa.RecordBatch.from_pandas(new)):
        assert (again.predict_proba(table) == clf.predict_proba(new)).all()
    counted = clf.audit(pa.Table.from_pandas(new), pa.array(FRESH.y)).gaps
    assert counted.equals(clf.audit(new, FRESH.y).gaps)


@pytest.mark.parametrize("names", [pd.Index, np.array, tuple], ids=["index", "array", "tuple"])
def test_names_of_sensitive_columns_in_every_form(names):
    clf = quick(sensitive=names(BY_NAME["sensitive"])).fit(WHOLE, DATA.y)
    assert (clf.predict_proba(FRESH_WHOLE) == shared().predict_proba(FRESH.X)).all()


MODES = {
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}


@pytest.mark.parametrize("mode", MODES)
def test_what_torch_is_set_to_around_a_fit_changes_nothing(mode):
    with MODES[mode]():
        clf = fitted()
    assert (clf.decision_function(FRESH.X) == shared().decision_function(FRESH.X)).all()


def test_networks_of_a_factory_predict_in_their_own_precision():
    clf = fitted(model=lambda d, c: nn.Sequential(nn.Linear(d, 4), nn.ReLU(), nn.Linear(4, c)))
    expected = clf.decision_function(FRESH.X)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (clf.decision_function(FRESH.X) == expected).all()


def test_another_default_type_of_torch_changes_nothing():
    torch.set_default_dtype(torch.float64)
    try:
        clf = fitted()
    finally:
        torch.set_default_dtype(torch.float32)
    assert (clf.decision_function(FRESH.X) == shared().decision_function(FRESH.X)).all()


def test_a_score_does_not_pair_rows_of_other_indexes():
    labels = pd.Series(FRESH.y, index=FRESH.X.index)
    assert shared().score(FRESH.X, labels) == shared().score(FRESH.X, FRESH.y)
    with pytest.raises(ValueError, match="y must have the index of X, got another"):
        shared().score(FRESH.X, labels[::-1])


def test_missing_values_and_categories_are_fine():
    X = DATA.X.assign(town=DATA.X["town"].astype("category"))
    X.loc[::7, "merit_1"] = np.nan
    X.loc[::5, "noise_2"] = None
    assert quick().fit(X, DATA.y, sensitive_features=DATA.sensitive).predict(X).shape == (600,)


@pytest.mark.parametrize("labels", [np.array(["no", "yes"]), np.array([False, True])])
def test_labels_of_any_kind(labels):
    clf = quick(favorable_label=labels[0])
    clf.fit(DATA.X, labels[DATA.y], sensitive_features=DATA.sensitive)
    assert set(clf.predict(FRESH.X)) == set(labels)
    assert clf.score(FRESH.X, labels[FRESH.y]) > 0.6
    assert clf.front_[0].share_favored == pytest.approx(1 - shared().front_[0].share_favored)
    audit = clf.audit(FRESH.X, labels[FRESH.y], sensitive_features=FRESH.sensitive)
    assert audit.gaps["gap"].between(0, 1).all()


def many(table):
    """Three classes by the sum of the merits, as words."""
    total = table.X["merit_1"] + table.X["merit_2"] + (table.sensitive["sex"] == "male")
    return np.array(["a", "b", "c"])[np.digitize(total, [0.5, 2.5])]


@pytest.mark.parametrize("criteria", ["dp", ("tpr", "accuracy"), "equalized_odds"])
def test_several_classes(criteria):
    clf = quick(criteria=criteria).fit(DATA.X, many(DATA), sensitive_features=DATA.sensitive)
    assert clf.predict_proba(FRESH.X).shape == clf.decision_function(FRESH.X).shape == (600, 3)
    assert clf.score(FRESH.X, many(FRESH)) > 0.6
    frame = clf.front_.to_frame()
    assert np.isfinite(frame.select_dtypes("number").to_numpy()).all()
    audit = clf.audit(FRESH.X, many(FRESH), sensitive_features=FRESH.sensitive)
    assert audit.gaps["gap"].between(0, 1).all()


@pytest.mark.filterwarnings("ignore::apfex.metrics.NotEstimableWarning")
def test_the_audit_of_several_classes_takes_rows_of_two():
    clf = quick(criteria=("dp", "tpr")).fit(DATA.X, many(DATA), sensitive_features=DATA.sensitive)
    rows = (many(FRESH) != "b") & (clf.predict(FRESH.X) != "b")
    few = clf.audit(FRESH.X[rows], many(FRESH)[rows], sensitive_features=FRESH.sensitive[rows])
    assert few.gaps["gap"].between(0, 1).all()


@pytest.mark.parametrize(
    ("word", "columns"),
    [
        ("demographic_parity", ["dp"]),
        ("equal_opportunity", ["tpr"]),
        ("equalized_odds", ["equalized_odds"]),
        (("dp", "demographic_parity", "fpr"), ["dp", "fpr"]),
        ("ppv", ["ppv"]),
    ],
)
def test_criteria_by_every_word(word, columns):
    assert list(fitted(criteria=word, model="linear", validation="split").front_[0].gaps) == columns


def test_attributes_instead_of_their_crossing():
    clf = fitted(grouping="attributes")
    crossed = shared()
    assert clf.front_[0].gaps["dp"].n_groups == 2
    assert crossed.front_[0].gaps["dp"].n_groups == 4


def test_balanced_accuracy_ranks_points():
    rare = np.where(DATA.X["merit_1"] + DATA.X["merit_2"] > 3.3, 1, 0)
    clf = quick(scoring="balanced_accuracy", epochs=15)
    clf.fit(DATA.X, rare, sensitive_features=DATA.sensitive)
    errors = clf.front_.to_frame()["balanced_error"]
    assert errors.is_monotonic_increasing
    assert "balanced_error" in repr(clf.front_)


def normed(n_features, n_outputs):
    return nn.Sequential(nn.Linear(n_features, 8), nn.BatchNorm1d(8), nn.Linear(8, n_outputs))


@pytest.mark.parametrize("model", ["linear", normed, nn.Linear], ids=["linear", "norm", "module"])
def test_models_of_every_kind(model):
    clf = fitted(model=model)
    assert clf.score(FRESH.X, FRESH.y) > 0.6
    one = clf.predict_proba(FRESH.X[:1])
    np.testing.assert_allclose(one, clf.predict_proba(FRESH.X)[:1], rtol=1e-4)
    assert pickle.loads(pickle.dumps(clf)).score(FRESH.X, FRESH.y) == clf.score(FRESH.X, FRESH.y)


def test_verbose_shows_a_bar(capsys):
    fitted(verbose=1, validation="split")
    assert "best so far: error" in capsys.readouterr().err
    fitted(validation="split")
    assert capsys.readouterr().out == ""


def test_without_sensitive_features_there_is_one_plain_model_and_a_warning():
    with pytest.warns(UserWarning, match="a single plain model"):
        clf = quick().fit(DATA.X, DATA.y)
    assert len(clf.front_) == 1
    with pytest.raises(ValueError, match="fit was given no sensitive features"):
        clf.select(0.1)
    with pytest.raises(ValueError, match="criterion must be one of"):
        clf.front_.plot()


def test_the_whole_front_is_within_n_points_and_keeps_a_choice():
    wide = fitted(n_members=12, epochs=12, max_gap=0.15)
    thin = fitted(n_members=12, epochs=12, max_gap=0.15, n_points=2)
    assert len(wide.front_) > len(thin.front_) == 2
    choice = thin.front_[thin.point_]  # one that is within the bound is kept
    assert choice.gaps["dp"].gap <= 0.15
    assert choice.error < thin.front_.constant_error


def test_the_constructor_only_stores():
    clf = APFExClassifier(criteria="nonsense", n_points=-1)
    assert clf.criteria == "nonsense"
