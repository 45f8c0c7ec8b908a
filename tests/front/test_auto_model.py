"""``model="auto"``: the table tells which models are trained, and the fit tells what came of it."""

import numpy as np
import pytest
from tests.estimator.tables import DATA

from apfex import APFExClassifier, load, make_biased
from apfex.estimator._settings import read_settings
from apfex.front import _model_encoder, _rows
from apfex.front._early_trees import prepare_early

BIG = make_biased(n=6_300, random_state=3)
FEW = {"n_estimators": 4, "epochs": 1, "n_members": 2, "max_gap": 1.0, "random_state": 0}


def fit(data, **changes):
    clf = APFExClassifier(**{**FEW, **changes})
    return clf.fit(data.X, data.y, sensitive_features=data.sensitive)


def families_of(clf):
    return set(getattr(clf.fitted_.encoder, "encoders"))  # noqa: B009 - of tables alone


@pytest.fixture(scope="module")
def small():
    return fit(DATA, epochs=None, n_estimators=30)


class TestSmallTables:
    def test_trees_and_linear_models_are_mixed(self, small):
        assert small.mixture_.keys() == {"linear", "boosting"}
        assert sum(small.mixture_.values()) == pytest.approx(1)
        assert families_of(small) == {"networks", "trees"}

    def test_the_mixture_is_kept_on_disk(self, small, tmp_path):
        small.save(tmp_path / "model")
        assert load(tmp_path / "model").mixture_ == small.mixture_


class TestLargeTables:
    @pytest.mark.parametrize(
        ("gain", "families"), [(0.0, {"trees"}), (0.5, {"networks", "trees"})], ids=["no", "yes"]
    )
    def test_a_look_at_a_sample_tells_whether_networks_are_trained(
        self, gain, families, monkeypatch
    ):
        seen = []

        def look(rows, out_of_fold):
            seen.append((len(rows.x), len(out_of_fold)))
            return gain

        monkeypatch.setattr(_rows, "mixture_gain", look)
        clf = fit(BIG)
        assert families_of(clf) == families
        ((n, n_learners),) = seen
        assert 1_990 <= n <= 2_010
        assert n_learners == 2

    @pytest.mark.parametrize("gain", [0.0, 0.5], ids=["alone", "with networks"])
    def test_trees_that_begin_before_the_look_are_the_same(self, gain, monkeypatch):
        begun = []

        def begin(*given):
            begun.append(prepare_early(*given))
            return begun[-1]

        monkeypatch.setattr(_rows, "mixture_gain", lambda *_: gain)
        monkeypatch.setattr(_model_encoder, "prepare_early", begin)
        late, early = fit(BIG, n_jobs=1), fit(BIG, n_jobs=4)
        assert len(begun) == 1
        assert late.mixture_ == early.mixture_
        assert np.array_equal(late.decide_all(BIG.X), early.decide_all(BIG.X))
        assert np.array_equal(late.predict_proba(BIG.X), early.predict_proba(BIG.X))
        assert late.front_.to_frame().equals(early.front_.to_frame())

    def test_linear_models_help_where_the_truth_is_linear_and_not_where_it_has_steps(self):
        rng = np.random.default_rng(0)
        X, group = rng.normal(size=(5_000, 8)), rng.integers(0, 2, 5_000)
        steps = (np.floor(2 * X[:, :3]).astype(int) % 2).sum(1) > 1
        found = []
        for merit in (X[:, :6].sum(1), 4.0 * steps - 2):
            y = (rng.random(5_000) < 1 / (1 + np.exp(-2 * merit))).astype(int)
            rows = _rows.Rows(X, y, np.arange(2), _rows.make_groups(group), (), None)
            settings = read_settings(APFExClassifier())
            found.append(_rows.networks_help(rows, np.arange(5_000), settings))
        assert found == [True, False]


class TestMembers:
    def test_they_are_networks_or_trees(self):
        networks = fit(DATA, search="inprocess")
        assert networks.mixture_ is None
        assert families_of(networks) == {"networks"}
        trees = fit(DATA, monotone_constraints={"merit_1": 1})
        assert families_of(trees) == {"trees"}


def test_a_learning_rate_is_for_one_model():
    with pytest.raises(ValueError, match=r"learning_rate must be None for model='auto', got 0\.1"):
        fit(DATA, learning_rate=0.1)


def test_auto_stands_alone():
    with pytest.raises(ValueError, match=r"model must be 'auto', of .*got \('auto', 'mlp'\)"):
        fit(DATA, model=("auto", "mlp"))
