"""``model="boosting"``: the same estimator on trees, by rules, by members and around a model."""

import copy
import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from tests.estimator.tables import DATA, FRESH
from tests.estimator.trees import BOTH, BY_NAME, FORMS, WHOLE, fitted, shared, trees

from apfex import make_biased
from apfex.estimator import APFExClassifier
from apfex.front import _inprocess
from apfex.metrics import accuracy, dp_gap


@pytest.fixture(scope="module", params=FORMS.values(), ids=list(FORMS))
def clf(request):
    return shared(**request.param)


def test_every_point_is_a_classifier_that_holds_on_fresh_rows(clf):
    assert len(clf.front_) > 2
    errors = [point.error for point in clf.front_]
    assert errors == sorted(errors)
    for place, point in enumerate(clf.front_):
        own = clf.at(place)
        decided, proba = own.predict(FRESH.X), own.predict_proba(FRESH.X)
        assert proba.shape == (600, 2)
        np.testing.assert_allclose(proba.sum(1), 1)
        assert ((own.decision_function(FRESH.X) > 0) == (decided == 1)).all()
        assert abs(proba[:, 1].mean() - FRESH.y.mean()) < 0.1  # of the label, whatever is decided
        assert abs(1 - accuracy(FRESH.y, decided) - point.error) < 0.12
    assert accuracy(FRESH.y, clf.at(0).predict(FRESH.X)) > 0.7


@BOTH
def test_gaps_get_smaller_along_the_front(form):
    """A point is chosen by 200 rows, so its gap on others varies: the mean over seeds counts."""
    many = make_biased(6000, kind="marginal", strength=0.4, random_state=1)
    gaps = []
    for seed in range(3):
        clf = shared(random_state=seed, **form)
        decided = [clf.at(place).predict(many.X) for place in (0, -1)]
        gaps.append([dp_gap(many.y, d, sensitive_features=many.sensitive) for d in decided])
        assert gaps[-1][1] < gaps[-1][0]
        assert accuracy(many.y, decided[1]) > 0.58
    first, last = np.mean(gaps, 0)
    assert last < 0.6 * first


@pytest.mark.filterwarnings("ignore:Only models that are nearly constant")
def test_points_can_be_selected_used_and_audited(clf):
    bound = clf.front_[-1].gaps["dp"].gap
    chosen = clf.select(max_gap=bound)
    assert chosen.front_[chosen.point_].gaps["dp"].gap <= bound
    used = copy.copy(clf).use(-1)
    assert (used.predict(FRESH.X) == clf.at(len(clf.front_) - 1).predict(FRESH.X)).all()
    gaps = used.audit(FRESH.X, FRESH.y, sensitive_features=FRESH.sensitive).gaps
    expected = dp_gap(FRESH.y, used.predict(FRESH.X), sensitive_features=FRESH.sensitive)
    on_crossing = gaps.query("criterion == 'dp'")["gap"].iloc[-1]
    assert float(on_crossing) == pytest.approx(expected)
    assert used.score(FRESH.X, FRESH.y) == accuracy(FRESH.y, used.predict(FRESH.X))


def test_figures_of_members_are_those_of_their_decisions(monkeypatch):
    """The module that is handed out decides on the validation rows as it did when measured."""
    parts, real = [], _inprocess.split
    monkeypatch.setattr(_inprocess, "split", lambda *a: parts.append(real(*a)) or parts[-1])
    grown, boost = [], _inprocess.boost_members
    monkeypatch.setattr(
        _inprocess, "boost_members", lambda *a, **k: grown.append((a, k)) or boost(*a, **k)
    )
    clf = fitted(search="inprocess")
    train, chosen = parts[0]
    assert sorted([*train, *chosen]) == list(range(600))
    (_, taught, *_), named = grown[0]
    assert (taught.y.numpy() == DATA.y[train]).all()  # the others choose, and teach nothing
    assert len(named["validation"]) == len(chosen) == 200
    X, y = DATA.X.iloc[chosen], DATA.y[chosen]
    for place, point in enumerate(clf.front_):
        decided = clf.at(place).predict(X)
        assert 1 - accuracy(y, decided) == pytest.approx(point.error)
        sensitive = DATA.sensitive.iloc[chosen]
        assert dp_gap(y, decided, sensitive_features=sensitive) == pytest.approx(
            point.gaps["dp"].gap
        )


def test_a_pickle_predicts_the_same_bit_for_bit(clf):
    again = pickle.loads(pickle.dumps(clf))
    assert again.front_.to_frame().equals(clf.front_.to_frame())
    for place in range(len(clf.front_)):
        assert (
            again.at(place).predict_proba(FRESH.X) == clf.at(place).predict_proba(FRESH.X)
        ).all()


@BOTH
def test_equal_seeds_give_equal_fronts(form):
    first, second, third = shared(**form), fitted(**form), shared(random_state=1, **form)
    assert first.front_.to_frame().equals(second.front_.to_frame())
    assert (first.predict_proba(FRESH.X) == second.predict_proba(FRESH.X)).all()
    assert not (first.predict_proba(FRESH.X) == third.predict_proba(FRESH.X)).all()


def test_clone_and_search_over_the_depth():
    clf = trees(**BY_NAME, max_depth=2, monotone_constraints={"merit_1": 1})
    again: Any = clone(clf)
    assert again.get_params() == clf.get_params()
    search = GridSearchCV(trees(**BY_NAME, n_estimators=4), {"max_depth": [1, 3]}, cv=2)
    search.fit(WHOLE, DATA.y)
    assert search.best_params_["max_depth"] in (1, 3)
    assert search.best_score_ > 0.6
    assert len(search.best_estimator_.front_) >= 1


def test_small_tables_are_crossed():
    assert shared().front_[0].n_rows == 600
    assert fitted(validation="split").front_[0].n_rows == 200
    assert shared(search="inprocess").front_[0].n_rows == 200


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.filterwarnings("ignore:No model", "ignore:Only models that are nearly")
def test_a_small_table_of_noise_does_not_fool_itself(seed):
    rng = np.random.default_rng(seed)
    X, y, group = rng.normal(size=(240, 12)), rng.integers(0, 2, 240), rng.integers(0, 2, 240)
    clf = fitted(X, y, group, random_state=seed)
    assert min(point.error for point in clf.front_) > 0.4


def test_members_that_stop_are_evaluated_no_more(monkeypatch):
    evaluated, real = [], _inprocess._Ensembles.evaluate

    def evaluate(self, members):
        answer = real(self, members)
        evaluated.append((members.rounds.clone(), answer))
        return answer

    monkeypatch.setattr(_inprocess._Ensembles, "evaluate", evaluate)
    fitted(search="inprocess", patience=2)
    last = evaluated[-1][0]
    assert (last < 20).any()
    for (rounds, answer), (after, _) in pairwise(evaluated):
        assert ((after == rounds) | (True if answer is None else answer)).all()


@BOTH
def test_progress_is_shown_if_asked_for(form, capsys):
    fitted(verbose=1, validation="split", **form)
    assert "best so far: error" in capsys.readouterr().err
    fitted(validation="split", **form)
    assert capsys.readouterr().out == ""


class TestMixed:
    def test_networks_and_trees_together(self):
        settings = {"model": ("mlp", "boosting"), "learning_rate": None, "epochs": 10}
        clf = fitted(**settings)
        assert len(clf.front_) > 2
        assert clf.score(FRESH.X, FRESH.y) > 0.7
        again = pickle.loads(pickle.dumps(clf))
        assert (again.predict_proba(FRESH.X) == clf.predict_proba(FRESH.X)).all()
        reordered = fitted(**{**settings, "model": ("boosting", "mlp")})
        assert accuracy(clf.predict(FRESH.X), reordered.predict(FRESH.X)) > 0.9

    def test_trees_are_used_where_only_they_know(self):
        def table(seed, n=800):
            rng = np.random.default_rng(seed)
            number = 8 * rng.random(n)
            X = pd.DataFrame({"number": number, "noise": rng.normal(size=n)})
            return X, number.astype(int) % 2, rng.integers(0, 2, n)

        (X, y, group), (fresh, fresh_y, _) = table(0), table(1)
        right = {}
        for model in ("mlp", "boosting", ("mlp", "boosting")):
            settings: dict[str, Any] = {"model": model, "learning_rate": None, "epochs": 5}
            clf = fitted(X, y, group, **settings, max_depth=6, n_estimators=60).at(0)
            right[model] = accuracy(fresh_y, clf.predict(fresh))
        assert right["mlp"] < 0.7 < 0.9 < right["boosting"]
        assert right["mlp", "boosting"] > right["boosting"] - 0.03


@pytest.mark.slow
@BOTH
def test_the_front_holds_on_fresh_rows_of_a_large_table(form):
    data, fresh = (make_biased(n=6000, random_state=seed) for seed in (3, 4))
    clf = APFExClassifier(model="boosting", max_gap=1.0, random_state=0, **form)
    clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    gaps = []
    for place, point in enumerate(clf.front_):
        decided = clf.at(place).predict(fresh.X)
        assert abs(1 - accuracy(fresh.y, decided) - point.error) < 0.04
        gaps.append(dp_gap(fresh.y, decided, sensitive_features=fresh.sensitive))
    assert min(gaps) < max(gaps) / 2
