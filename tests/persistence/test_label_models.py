"""Fronts around a user's model, stored and loaded; nothing is built that is not trusted."""

import re
import sys
from functools import cache

import lightgbm
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from tests.estimator.tables import DATA, FRESH
from tests.estimator.user_models import NEW, NUMBERS, PAST, around, fitted, mixed, pipeline, three
from tests.persistence.saved import NEW_NUMBERS, SENSITIVE, Net, Y, production_trees
from tests.persistence.saved import NUMBERS as FEW
from xgboost import XGBClassifier

from apfex.estimator import load

X, FRESH_X, PAST_X = (data.X[NUMBERS] for data in (DATA, FRESH, PAST))


@cache
def forest():
    return RandomForestClassifier(3, max_depth=3, random_state=0).fit(PAST_X, PAST.y)


def probability(table):
    return forest().predict_proba(table)[:, 1]


@cache
def case(name):
    """A fitted front and rows for it."""
    if name == "pipeline":
        return fitted(init=pipeline().fit(mixed(PAST), PAST.y)), NEW
    if name == "cross-fitted, three classes":
        return fitted(model=LogisticRegression(), y=three(DATA)), NEW
    if name == "categories":
        model = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1)
        return fitted(model=model), NEW
    if name == "categories, columns without words":
        model, names = XGBClassifier(n_estimators=3, n_jobs=1), np.arange(NEW.shape[1]) / 2
        return fitted(mixed(DATA).set_axis(names, axis=1), model=model), NEW.set_axis(names, axis=1)
    if name == "forest":
        return fitted(X, init=forest()), FRESH_X
    if name == "function":
        return fitted(X, init=probability), FRESH_X
    init = production_trees(FEW) if name == "xgboost" else Net(FEW.shape[1], 1).eval()
    return around(init=init).fit(FEW, Y, sensitive_features=SENSITIVE), NEW_NUMBERS


LIGHTGBM = ["lightgbm.basic.Booster", "lightgbm.sklearn.LGBMClassifier"]
XGBOOST = ["xgboost.core.Booster", "xgboost.sklearn.XGBClassifier"]
TREE = ["sklearn.tree._tree.Tree"]
STORED = {
    "pipeline": {},
    "cross-fitted, three classes": {},
    "categories": {"trusted": LIGHTGBM},
    "categories, columns without words": {"trusted": XGBOOST},
    "forest": {"trusted": TREE},
    "function": {"init": probability},
    "xgboost": {},
    "network": {"model": Net},
}


@pytest.mark.filterwarnings("ignore:Not stored")
@pytest.mark.parametrize(("name", "given"), STORED.items(), ids=STORED.keys())
def test_every_kind_comes_back_exactly(tmp_path, name, given):
    clf, new = case(name)
    again = load(clf.save(tmp_path / "model"), **given)
    assert (again.decide_all(new) == clf.decide_all(new)).all()
    assert (again.predict_proba(new) == clf.predict_proba(new)).all()
    assert (again.decision_function(new) == clf.decision_function(new)).all()
    assert again.mixture_ == clf.mixture_ is not None
    second = load(again.save(tmp_path / "second"), **given)
    assert (second.decide_all(new) == clf.decide_all(new)).all()


def test_the_fitted_model_is_there_again_for_another_fit(tmp_path):
    clf, new = case("pipeline")
    again = load(clf.save(tmp_path / "model"))
    assert (again.init.predict(new) == clf.init.predict(new)).all()
    again.fit(mixed(DATA), DATA.y, sensitive_features=DATA.sensitive)


def test_types_that_are_not_known_to_be_safe_must_be_trusted(tmp_path):
    clf, new = case("forest")
    folder = clf.save(tmp_path / "model")
    with pytest.raises(ValueError, match=re.escape(f"load(folder, trusted={TREE}), or give")):
        load(folder)
    with pytest.raises(ValueError, match=re.escape(f"got none of {TREE}")):
        load(folder, trusted=["numpy.random.RandomState"])
    again = load(folder, init=forest())
    assert again.init is forest()
    assert (again.decide_all(new) == clf.decide_all(new)).all()


def test_a_function_must_be_given_again(tmp_path):
    folder = case("function")[0].save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"init must be given .* function probability, whose code"):
        load(folder)


def test_another_model_is_refused(tmp_path):
    folder = case("forest")[0].save(tmp_path / "model")
    other = LogisticRegression().fit(PAST_X, three(PAST))
    with pytest.raises(ValueError, match=r"init must be the fitted class.* \[0, 1\], got Log"):
        load(folder, init=other)
    plain = case("cross-fitted, three classes")[0].save(tmp_path / "plain")
    with pytest.raises(ValueError, match="init must be None for a front that was made without"):
        load(plain, init=other)


def test_an_unfitted_model_is_told_of_and_may_be_given_again(tmp_path):
    folder = case("cross-fitted, three classes")[0].save(tmp_path / "model")
    with pytest.warns(UserWarning, match=r"Not stored .* model \(sklearn.*LogisticRegression\)"):
        load(folder)
    model = LogisticRegression()
    assert load(folder, model=model).model is model


def test_what_to_install_is_said(tmp_path, monkeypatch):
    clf, _ = case("pipeline")
    folder = clf.save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r'^save of .* needs .* pip install "apfex\[skops\]"'):
        clf.save(tmp_path / "other")
    with pytest.raises(ImportError, match=r'^load of .* needs .* pip install "apfex\[skops\]"'):
        load(folder)
    assert not (tmp_path / "other").exists()


class Unwilling:
    def __reduce__(self):
        raise NotImplementedError("never")

    __getstate__ = __reduce__


def test_what_skops_cannot_store_is_refused_whole(tmp_path):
    odd = LogisticRegression().fit(PAST_X, PAST.y)
    odd.source = Unwilling()
    clf = fitted(X, init=odd)
    with pytest.raises(TypeError, match="init must be such that skops can store it, got Logistic"):
        clf.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("name", ["forest", "xgboost"])
def test_onnx_says_what_to_do_instead(tmp_path, name):
    with pytest.raises(ValueError, match=r"one around a model of yours .* use save or joblib"):
        case(name)[0].to_onnx(tmp_path / "point.onnx")
    assert not (tmp_path / "point.onnx").exists()
