"""``model="boosting"``: the same estimator on trees, by rules, by members and around a model."""

import copy
import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
import xgboost
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from tests.estimator.tables import DATA, FRESH

from apfex import make_biased
from apfex.estimator import APFExClassifier
from apfex.front import _inprocess
from apfex.metrics import accuracy, dp_gap

TREES = {
    "model": "boosting",
    "n_estimators": 12,
    "learning_rate": 0.2,
    "n_members": 5,
    "validation_fraction": 1 / 3,
    "max_gap": 1.0,
    "random_state": 0,
}
FORMS = {"rules": {}, "members": {"search": "inprocess"}}
BOTH = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
WHOLE = pd.concat([DATA.X, DATA.sensitive], axis=1)
BY_NAME = {"sensitive": ["sex", "origin"]}


def trees(**changes):
    return APFExClassifier(**{**TREES, **changes})


def fitted(
    X: Any = DATA.X,
    y: Any = DATA.y,
    sensitive: Any = DATA.sensitive,
    sample_weight: Any = None,
    **changes: Any,
):
    return trees(**changes).fit(X, y, sensitive_features=sensitive, sample_weight=sample_weight)


@pytest.fixture(scope="module", params=FORMS.values(), ids=list(FORMS))
def clf(request):
    return fitted(**request.param)


def test_every_point_is_a_classifier_that_holds_on_fresh_rows(clf):
    assert len(clf.front_) > 2
    errors = [point.error for point in clf.front_]
    assert errors == sorted(errors)
    for place, point in enumerate(clf.front_):
        own = clf.at(place)
        decided, proba = own.predict(FRESH.X), own.predict_proba(FRESH.X)
        assert proba.shape == (600, 2)
        np.testing.assert_allclose(proba.sum(1), 1)
        assert ((proba[:, 1] > 0.5) == (decided == 1)).all()
        assert abs(1 - accuracy(FRESH.y, decided) - point.error) < 0.12
    assert accuracy(FRESH.y, clf.at(0).predict(FRESH.X)) > 0.7


@BOTH
def test_gaps_get_smaller_along_the_front(form):
    """A point is chosen by 200 rows, so its gap on others varies: the mean over seeds counts."""
    many = make_biased(6000, kind="marginal", strength=0.4, random_state=1)
    gaps = []
    for seed in range(3):
        clf = fitted(random_state=seed, **form)
        decided = [clf.at(place).predict(many.X) for place in (0, -1)]
        gaps.append([dp_gap(many.y, d, sensitive_features=many.sensitive) for d in decided])
        assert gaps[-1][1] < gaps[-1][0]
        assert accuracy(many.y, decided[1]) > 0.58
    first, last = np.mean(gaps, 0)
    assert last < 0.6 * first


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
    first, second, third = (fitted(random_state=seed, **form) for seed in (0, 0, 1))
    assert first.front_.to_frame().equals(second.front_.to_frame())
    assert (first.predict_proba(FRESH.X) == second.predict_proba(FRESH.X)).all()
    assert not (first.predict_proba(FRESH.X) == third.predict_proba(FRESH.X)).all()


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
    assert (clf.classes_[proba.argmax(1)] == clf.predict(FRESH.X)).all()
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
    plain, weighted = fitted(**form), fitted(sample_weight=weight, **form)
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
    same = fitted(**form)
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


def test_clone_and_search_over_the_depth():
    clf = trees(**BY_NAME, max_depth=2, monotone_constraints={"merit_1": 1})
    again: Any = clone(clf)
    assert again.get_params() == clf.get_params()
    search = GridSearchCV(trees(**BY_NAME, n_estimators=4), {"max_depth": [1, 3]}, cv=2)
    search.fit(WHOLE, DATA.y)
    assert search.best_params_["max_depth"] in (1, 3)
    assert len(search.best_estimator_.front_) >= 1


def test_small_tables_are_crossed():
    assert fitted().front_[0].n_rows == 600
    assert fitted(validation="split").front_[0].n_rows == 200
    assert fitted(search="inprocess").front_[0].n_rows == 200
    assert cross_val_score(trees(**BY_NAME, n_estimators=5), WHOLE, DATA.y, cv=2).min() > 0.6


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.filterwarnings("ignore:No non-trivial point")
def test_a_small_table_of_noise_does_not_fool_itself(seed):
    rng = np.random.default_rng(seed)
    X, y, group = rng.normal(size=(240, 12)), rng.integers(0, 2, 240), rng.integers(0, 2, 240)
    clf = fitted(X, y, group, random_state=seed)
    assert min(point.error for point in clf.front_) > 0.4


@pytest.mark.parametrize(("name", "low", "high"), [("n_estimators", 1, 12), ("max_depth", 1, 4)])
@BOTH
def test_parameters_of_trees_reach_them(form, name, low, high):
    sizes = []
    for value in (low, high):
        point = fitted(**{**form, name: value}).front_[0]
        module: Any = point.module
        trees_ = module.joint.models[0].label if form == {} else _base(module)
        frame = trees_.booster.trees_to_dataframe()
        sizes.append((frame["Tree"].max(), frame.groupby("Tree").size().max()))
    place = 0 if name == "n_estimators" else 1
    assert sizes[0][place] < sizes[1][place]


def _base(module: Any) -> Any:
    return getattr(module, "base", module)


def test_members_that_stop_are_looked_at_no_more(monkeypatch):
    looks, real = [], _inprocess._Ensembles.evaluate

    def look(self, members):
        answer = real(self, members)
        looks.append((members.rounds.clone(), answer))
        return answer

    monkeypatch.setattr(_inprocess._Ensembles, "evaluate", look)
    fitted(search="inprocess", patience=2)
    last = looks[-1][0]
    assert (last < 20).any()
    for (rounds, answer), (after, _) in pairwise(looks):
        assert ((after == rounds) | answer).all()


@BOTH
def test_progress_is_shown_if_asked_for(form, capsys):
    fitted(verbose=1, **form)
    assert "best error" in capsys.readouterr().err
    fitted(**form)
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


MONOTONE = {"merit_1": 1, "noise_1": -1}


class TestMonotone:
    def test_every_point_is_monotone(self):
        noisy = DATA.X.assign(merit_1=-DATA.X["merit_1"])  # against what the rows say
        free, bound = (
            fitted(noisy, search="inprocess", monotone_constraints=signs)
            for signs in (None, MONOTONE)
        )
        sweep = noisy.iloc[:20].loc[lambda rows: rows.index.repeat(30)].reset_index(drop=True)

        def rises(clf, name):
            rows = sweep.assign(**{name: np.tile(np.linspace(-4, 4, 30), 20)})
            return np.stack(
                [
                    np.diff(clf.at(p).decision_function(rows).reshape(20, 30), axis=1)
                    for p in range(len(clf.front_))
                ]
            )

        assert (rises(free, "merit_1") < -1e-3).any()
        assert (rises(free, "noise_1") > 1e-3).any()
        assert (rises(bound, "merit_1") >= -1e-6).all()
        assert (rises(bound, "noise_1") <= 1e-6).all()

    def test_they_get_members(self):
        clf = fitted(monotone_constraints=MONOTONE)
        assert clf.front_[0].n_rows == 200  # rules would be crossed
        zeros = fitted(monotone_constraints={"merit_1": 0})
        assert zeros.front_[0].n_rows == 600
        with pytest.raises(ValueError, match="search must be 'inprocess' or 'auto' with monotone"):
            fitted(monotone_constraints=MONOTONE, search="postprocess")

    def test_one_on_a_column_that_does_not_vary_is_met(self):
        X = DATA.X.assign(merit_2=1.0)
        assert len(fitted(X, monotone_constraints={"merit_1": 1, "merit_2": 1}).front_) >= 1

    BAD = {  # noqa: RUF012
        "unknown": ({"merit_9": 1}, {}, r"must name columns of numbers, got \['merit_9'\]"),
        "category": ({"town": 1}, {}, r"must name columns of numbers, got \['town'\]"),
        "two": ({"merit_1": 2}, {}, r"must be of -1, 0 and 1, got \{'merit_1': 2\}"),
        "tuple": ((1, 0), {}, r"must map columns to -1, 0 or 1, got \(1, 0\)"),
        "network": (MONOTONE, {"model": "mlp"}, "must be None unless model is 'boosting'"),
        "both": (
            MONOTONE,
            {"model": ("mlp", "boosting"), "learning_rate": None},
            "must be None unless model is 'boosting'",
        ),
    }

    @pytest.mark.parametrize(("given", "more", "message"), BAD.values(), ids=BAD.keys())
    def test_bad_ones_are_refused(self, given, more, message):
        with pytest.raises(ValueError, match=f"monotone_constraints {message}"):
            fitted(monotone_constraints=given, **more)


BAD = {
    "patience of rules": ({"patience": 3}, "patience must be None for rules, got 3"),
    "rate of two models": (
        {"model": ("mlp", "boosting")},
        "learning_rate must be None for several models, got 0.2",
    ),
    "typo": ({"model": "boostin"}, r"model must be of \['mlp', .*got 'boostin'"),
    "typo in a tuple": ({"model": ("mlp", "tree")}, r"model must be of .*got \('mlp', 'tree'\)"),
    "nested": ({"model": (["mlp"], "boosting")}, "model must be of "),
    "twice": ({"model": ("boosting", "boosting")}, "model must be of "),
    "none": ({"model": ()}, r"model must be of .*got \(\)"),
    "mlp and linear": ({"model": ("mlp", "linear")}, "must not name both 'mlp' and 'linear'"),
    "two as members": (
        {"model": ("mlp", "boosting"), "learning_rate": None, "search": "inprocess"},
        "model must be a single one for members",
    ),
    "no rounds": ({"n_estimators": 0}, "n_estimators must be at least 1, got 0"),
    "half a round": ({"n_estimators": 1.5}, "n_estimators must be None or an integer, got 1.5"),
    "no depth": ({"max_depth": 0}, "max_depth must be at least 1, got 0"),
    "text depth": ({"max_depth": "6"}, "max_depth must be None or an integer, got '6'"),
    "members crossed": ({"search": "inprocess", "validation": "cross"}, "validation must be"),
    "old word": ({"search": "networks"}, "search must be one of .* got 'networks'"),
    "constant": ({}, "X must have a column that varies"),
}


@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD.keys())
def test_settings_that_do_not_go_together_are_refused(changes, message):
    X = DATA.X if changes else pd.DataFrame({"one": np.ones(600)})
    clf = trees(**changes)
    with pytest.raises(ValueError, match=message):
        clf.fit(X, DATA.y, sensitive_features=DATA.sensitive)
    assert not hasattr(clf, "front_")


def categorical(X, order=None):
    """Text as pandas categories, in the same order for any rows."""
    levels = {
        name: pd.CategoricalDtype(sorted(DATA.X[name].unique())[::order])
        for name in ("town", "noise_2")
    }
    return X.astype(levels)


CATEGORIES, FRESH_CATEGORIES = categorical(DATA.X), categorical(FRESH.X)
NUMBERS, FRESH_NUMBERS = (X.select_dtypes("number") for X in (DATA.X, FRESH.X))


def production(X: Any = CATEGORIES, y: Any = DATA.y, **changes: Any):
    """Fitted until no row is wrong, so that nothing is more accurate."""
    settings = {"n_estimators": 150, "max_depth": 8, "enable_categorical": True, "n_jobs": 1}
    return xgboost.XGBClassifier(**{**settings, **changes}).fit(X, y)


MODEL = production()


class TestInit:
    @pytest.mark.parametrize("init", [MODEL, MODEL.get_booster()], ids=["classifier", "booster"])
    def test_the_model_in_production_is_the_first_candidate(self, init):
        clf = fitted(CATEGORIES, init=init)
        point = clf.front_[0]
        assert point.epoch == 0
        assert point.error == 1 - accuracy(DATA.y, MODEL.predict(CATEGORIES)) == 0
        found = clf.at(0)
        margins = MODEL.predict(FRESH_CATEGORIES, output_margin=True)
        np.testing.assert_array_equal(found.decision_function(FRESH_CATEGORIES), margins)
        assert (found.predict(FRESH_CATEGORIES) == MODEL.predict(FRESH_CATEGORIES)).all()

    def test_it_is_not_changed_and_gaps_get_smaller(self):
        model = production(NUMBERS, n_estimators=20, max_depth=3, learning_rate=0.2)
        before = model.get_booster().save_raw()
        clf = fitted(NUMBERS, init=model)
        assert model.get_booster().save_raw() == before
        own = dp_gap(FRESH.y, model.predict(FRESH_NUMBERS), sensitive_features=FRESH.sensitive)
        fair = clf.at(-1).predict(FRESH_NUMBERS)
        assert dp_gap(FRESH.y, fair, sensitive_features=FRESH.sensitive) < own
        assert accuracy(FRESH.y, fair) > 0.55

    def test_three_classes(self):
        y = np.where(DATA.X["merit_1"] > 1, 2, DATA.y)
        model = production(y=y)
        clf = fitted(CATEGORIES, y, init=model)
        assert clf.front_[0].epoch == 0
        found = clf.at(0).decision_function(FRESH_CATEGORIES)
        margins = model.predict(FRESH_CATEGORIES, output_margin=True)
        np.testing.assert_array_equal(found, margins)

    def test_missing_values_go_through(self):
        X, fresh = (X.mask(X > 1.5) for X in (NUMBERS, FRESH_NUMBERS))
        model = production(X)
        clf = fitted(X, init=model)
        assert clf.front_[0].epoch == 0
        margins = model.predict(fresh, output_margin=True)
        np.testing.assert_array_equal(clf.at(0).decision_function(fresh), margins)

    @pytest.mark.parametrize("as_booster", [False, True], ids=["classifier", "booster"])
    def test_rounds_are_those_that_the_model_itself_uses(self, as_booster):
        """A classifier stops at its best round, a booster counts all."""
        other = FRESH_NUMBERS, FRESH.y
        model = xgboost.XGBClassifier(n_estimators=60, early_stopping_rounds=20, learning_rate=0.9)
        model.fit(NUMBERS, DATA.y, eval_set=[other], verbose=False)
        assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
        init = model.get_booster() if as_booster else model
        clf = fitted(NUMBERS, init=init)
        data = xgboost.DMatrix(FRESH_NUMBERS)
        margins = (
            init.predict(data, output_margin=True)
            if as_booster
            else init.predict(FRESH_NUMBERS, output_margin=True)
        )
        base = _base(clf.front_[0].module)
        fresh = clf.fitted_.encoder.transform(FRESH_NUMBERS)
        np.testing.assert_array_equal(base(torch.from_numpy(fresh)).squeeze(1), margins)

    def test_columns_are_found_by_name(self):
        X = pd.concat([NUMBERS, DATA.sensitive], axis=1)
        clf = trees(**BY_NAME, init=production(NUMBERS)).fit(X, DATA.y)
        turned = X[X.columns[::-1]]
        assert (clf.predict_proba(turned) == clf.predict_proba(X)).all()

    def test_other_columns_are_refused(self):
        X = pd.concat([NUMBERS, DATA.sensitive], axis=1)
        clf = trees(**BY_NAME, init=production(NUMBERS)).fit(X, DATA.y)
        with pytest.raises(ValueError, match=r"without \['merit_1'\] and with \['Merit_1'\]"):
            clf.predict(X.rename(columns={"merit_1": "Merit_1"}))

    def test_a_mismatch_is_found_wherever_it_is(self):
        """Levels in another order that only the last rows tell."""
        order = np.argsort(DATA.X["noise_2"].to_numpy(), kind="stable")
        *first, last, other = sorted(DATA.X["noise_2"].unique())
        X = CATEGORIES.iloc[order].copy()
        X["noise_2"] = X["noise_2"].cat.reorder_categories([*first, other, last])
        with pytest.raises(ValueError, match="init must score X as it did"):
            trees(init=MODEL).fit(X, DATA.y[order], sensitive_features=DATA.sensitive.iloc[order])

    def test_a_clone_of_a_classifier_says_what_to_give_instead(self):
        clf: Any = clone(trees(init=MODEL))
        with pytest.raises(ValueError, match="get_booster"):
            clf.fit(CATEGORIES, DATA.y, sensitive_features=DATA.sensitive)
        kept: Any = clone(trees(init=MODEL.get_booster()))
        kept.fit(CATEGORIES, DATA.y, sensitive_features=DATA.sensitive)

    def test_a_pickle_holds_the_model(self):
        clf = fitted(CATEGORIES, init=MODEL)
        again = pickle.loads(pickle.dumps(clf))
        for place in range(len(clf.front_)):
            found, expected = (
                c.at(place).decision_function(FRESH_CATEGORIES) for c in (again, clf)
            )
            assert (found == expected).all()

    def test_arrays_are_fine_and_constraints_hold_for_the_repair(self):
        model = production(NUMBERS.to_numpy(), monotone_constraints=(1, 0, 0))
        clf = fitted(NUMBERS.to_numpy(), init=model, monotone_constraints={"x0": 1})
        rows = np.repeat(NUMBERS.to_numpy()[:1], 50, 0)
        rows[:, 0] = np.linspace(-4, 4, 50)
        for place in range(len(clf.front_)):
            assert (np.diff(clf.at(place).decision_function(rows)) >= -1e-5).all()

    MISFITS = {  # noqa: RUF012
        "columns": (NUMBERS, DATA.y, MODEL, "init must take the 3 columns of X, got a model of 5"),
        "labels": (
            CATEGORIES,
            np.where(DATA.y == 1, "yes", "no"),
            MODEL,
            r"init must know the classes \['no', 'yes'\] of y, got \[",
        ),
        "classes": (
            CATEGORIES,
            np.arange(600) % 3,
            MODEL,
            r"init must know the classes \[0, 1, 2\] of y, got \[",
        ),
        "scores": (
            CATEGORIES,
            np.arange(600) % 3,
            MODEL.get_booster(),
            "init must have 3 scores for 3 classes, got 1",
        ),
        "reordered categories": (
            categorical(DATA.X, -1),
            DATA.y,
            MODEL,
            "init must score X as it did when it was fitted, got margins that differ",
        ),
        "text": (DATA.X, DATA.y, MODEL, "X must hold numbers and categories, as init takes them"),
        "names": (
            CATEGORIES.to_numpy()[:, [0, 1, 3, 3, 3]].astype(float),
            DATA.y,
            MODEL.get_booster(),
            "init must take X as it is, got one that fails on it",
        ),
        "path": (CATEGORIES, DATA.y, "model.json", "init must be a fitted XGBoost .* got str"),
        "unfitted": (
            CATEGORIES,
            DATA.y,
            xgboost.XGBClassifier(),
            "init must be a fitted classifier or Booster, got XGBClassifier",
        ),
        "regression": (
            NUMBERS,
            DATA.y,
            xgboost.XGBRegressor(n_estimators=2).fit(NUMBERS, DATA.y),
            "init must be a fitted classifier or Booster, got XGBRegressor",
        ),
        "scores that are no logits": (
            NUMBERS,
            DATA.y,
            xgboost.XGBRegressor(n_estimators=2).fit(NUMBERS, DATA.y).get_booster(),
            "init must have logits as margins, .* got 'reg:squarederror'",
        ),
        "linear": (
            NUMBERS,
            DATA.y,
            xgboost.XGBClassifier(n_estimators=2, booster="gblinear").fit(NUMBERS, DATA.y),
            "init must be made of trees, got 'gblinear'",
        ),
    }

    @pytest.mark.parametrize(("X", "y", "init", "message"), MISFITS.values(), ids=MISFITS.keys())
    def test_a_model_that_does_not_go_with_the_rows_is_refused(self, X, y, init, message):
        clf = trees(init=init)
        with pytest.raises(ValueError, match=message):
            clf.fit(X, y, sensitive_features=DATA.sensitive)
        assert not hasattr(clf, "front_")

    def test_it_needs_members_and_trees(self):
        with pytest.raises(ValueError, match="search must be 'inprocess' or 'auto' with init"):
            fitted(CATEGORIES, init=MODEL, search="postprocess")
        with pytest.raises(ValueError, match="XGBoost model goes with model='boosting'"):
            fitted(CATEGORIES, init=MODEL, model="mlp")


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
