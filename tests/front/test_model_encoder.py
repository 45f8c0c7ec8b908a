"""A table as inputs: ours, and what a user's models say of the label."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from tests.estimator.tables import DATA
from torch import nn

from apfex.front import EstimatorModel, ModelEncoder, TableEncoders, TextAsCategories
from apfex.front._cross_fit import fit_inputs
from apfex.models import JointModel
from apfex.tables import TableEncoder

X = DATA.X[["merit_1", "merit_2"]]


FITTED = [LogisticRegression(C=c).fit(X, DATA.y) for c in (1, 9)]


def encoder():
    models = tuple(EstimatorModel(one, (0, 1), 2, "model") for one in FITTED)
    table = TableEncoders({"trees": TableEncoder(categories="codes").fit(X)})
    return ModelEncoder(table, models, 2, names=tuple(X.columns))


def test_inputs_are_ours_and_the_probabilities_in_full():
    made = encoder()
    found = made.transform(X)
    assert found.shape == (600, made.n_inputs) == (600, 6)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found[:, :2], X.to_numpy(np.float32))
    for place, model in enumerate(FITTED):
        expected = model.predict_proba(X)
        np.testing.assert_array_equal(found[:, 2 + 2 * place : 4 + 2 * place], expected)


def test_columns_come_in_the_order_of_the_fit():
    turned = X[["merit_2", "merit_1"]]
    np.testing.assert_array_equal(encoder().transform(turned), encoder().transform(X))


def test_out_of_fold_each_row_has_its_own_model_alone():
    made, folds = encoder(), np.arange(600) % 2
    found, all_of_them = made.transform_out_of_fold(X, folds), made.transform(X)
    for fold in (0, 1):
        own, other = slice(2 + 2 * fold, 4 + 2 * fold), slice(4 - 2 * fold, 6 - 2 * fold)
        np.testing.assert_array_equal(found[folds == fold, own], all_of_them[folds == fold, own])
        assert np.isnan(found[folds == fold, other]).all()


def test_a_class_that_a_model_does_not_know_has_no_probability():
    model = EstimatorModel(LogisticRegression().fit(X, DATA.y), (0, 2), 3, "model")
    assert (model.probabilities(X)[:, 1] == 0).all()
    assert model.probabilities(X).sum(1) == pytest.approx(1.0)


def test_text_becomes_categories_and_new_levels_are_missing():
    frame = pd.DataFrame({"town": ["b", None, "a"], "age": [1.0, np.nan, 2.0]})
    made = TextAsCategories.fit(frame)
    found = made.transform(pd.DataFrame({"town": ["a", "z", None], "age": [3.0, 4.0, 5.0]}))
    assert list(found["town"].cat.codes) == [0, -1, -1]
    assert list(found["town"].cat.categories) == ["a", "b"]
    assert found["age"].tolist() == [3.0, 4.0, 5.0]
    assert frame["town"].tolist()[0] == "b"


def test_who_gets_what_of_the_table():
    search = GridSearchCV(make_pipeline(LogisticRegression()), {})
    assert fit_inputs(search, DATA.X) is None
    assert isinstance(fit_inputs(LogisticRegression(), DATA.X), TableEncoder)


def test_a_model_without_a_kind_is_not_guessed():
    joint = JointModel([nn.Bilinear(2, 2, 4)], [1.0], (2, 2))
    with pytest.raises(TypeError, match=r"must be linear layers.*got Bilinear"):
        joint.mixture()
