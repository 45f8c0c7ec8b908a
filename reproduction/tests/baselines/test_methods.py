"""Plain network, S-MAMO and M-MAMO as estimators."""

from typing import Any

import numpy as np
import pytest
from reproduction.tests.baselines.tables import DATA, FRESH, QUICK, SEX, fitted

from apfex.metrics import accuracy, dp_gap
from apfex.solvers import min_norm
from apfex_reproduction.baselines import BUDGETS, MMAMO, SMAMO, PlainNetwork
from apfex_reproduction.baselines._base import fit_together
from apfex_reproduction.baselines._frank_wolfe import one_step_min_norm
from apfex_reproduction.baselines._inputs import read_rows

BOTH: Any = DATA.sensitive
HELD = (FRESH.X, FRESH.y, FRESH.sensitive)


def plan(clf, sensitive=BOTH):
    rows, _ = read_rows(clf, DATA.X, DATA.y, sensitive, None)
    return clf._plan(rows)


def shown(clf, sensitive=BOTH):
    return [(term.rate, term.attribute, term.form) for term in plan(clf, sensitive).terms]


def wrong(kind: Any, **settings):
    return kind(**settings)


def test_the_defaults_are_the_papers():
    clf = PlainNetwork()
    assert (clf.epochs, clf.batch_size, clf.learning_rate) == (35, 512, 1e-2)
    assert (tuple(clf.hidden), clf.dropout, clf.selection) == ((60, 25), 0.2, "accurate")
    assert SMAMO().selection == MMAMO().selection == "nearest"
    assert BUDGETS["adult"] == {"epochs": 35, "batch_size": 512, "learning_rate": 1e-2}
    assert set(BUDGETS) == {"adult", "celeba", "compas", "german", "heart"}


def test_objectives_are_those_of_the_variants():
    assert shown(PlainNetwork()) == []
    assert shown(SMAMO("tpr", attribute="origin")) == [("tpr", 1, "plain")]
    assert shown(SMAMO("dp"), SEX) == [("dp", 0, "plain")]
    assert shown(MMAMO(attributes="sex")) == [("dp", 0, "plain"), ("tpr", 0, "plain")]
    both = [("dp", 0), ("tpr", 0), ("dp", 1), ("tpr", 1)]
    assert shown(MMAMO()) == [(*axis, "plain") for axis in both]
    assert shown(MMAMO(losses="pairs")) == [(*axis, "pairs") for axis in both]


def test_the_published_variant_differs_as_documented():
    main, published = plan(MMAMO()), plan(MMAMO(solver="published"))
    assert main.solver is min_norm
    assert published.solver is one_step_min_norm
    assert (main.own_passes, published.own_passes) == (False, True)
    assert {term.form for term in published.terms} == {"masked"}
    assert [term.steepness for term in published.terms] == [3.0, 5.0, 3.0, 5.0]
    assert [term.steepness for term in main.terms] == [5.0] * 4
    scores = [
        fitted(MMAMO(solver=name, **QUICK), BOTH).decision_function(FRESH.X)
        for name in ("converged", "published")
    ]
    assert not np.allclose(*scores, atol=0.01)


def test_the_archive_holds_the_epochs_and_the_history_all_of_them():
    clf = fitted(MMAMO(**QUICK), BOTH, validation=HELD)
    assert clf.history_["epoch"].tolist() == list(range(1, 10))
    assert list(clf.history_.columns[1:-1]) == [
        "error",
        "sex_dp_gap",
        "sex_tpr_gap",
        "origin_dp_gap",
        "origin_tpr_gap",
    ]
    for rule in ("nearest", "accurate", "last"):
        chosen = clf.select(rule)
        row = clf.history_[clf.history_["epoch"] == chosen.epoch_].iloc[0]
        decided = chosen.predict(FRESH.X)
        assert row["error"] == pytest.approx(1 - accuracy(FRESH.y, decided))
        gap = dp_gap(None, decided, sensitive_features=FRESH.sensitive["sex"])
        assert row["sex_dp_gap"] == pytest.approx(gap)
    assert clf.select("last").epoch_ == 9
    distances = np.linalg.norm(clf.history_.iloc[:, 1:-1].to_numpy(), axis=1)
    assert clf.epoch_ == clf.history_["epoch"][distances.argmin()]


def test_selecting_leaves_the_original_alone():
    clf = fitted(SMAMO("dp", **QUICK))
    before, epoch = clf.predict_proba(DATA.X), clf.epoch_
    other = clf.select("fairest", min_accuracy=0.5)
    assert isinstance(other, SMAMO)
    assert clf.epoch_ == epoch
    assert (clf.predict_proba(DATA.X) == before).all()


def test_the_plain_network_keeps_its_most_accurate_epoch_and_needs_no_groups():
    clf = PlainNetwork(**QUICK).fit(DATA.X, DATA.y, validation=HELD[:2])
    errors = clf.history_["error"].tolist()
    assert errors[clf.epoch_ - 1] == min(errors)
    assert list(clf.history_.columns) == ["epoch", "error", "constant"]
    grouped = PlainNetwork(**QUICK).fit(DATA.X, DATA.y, sensitive_features=BOTH, validation=HELD)
    assert (grouped.predict_proba(FRESH.X) == clf.predict_proba(FRESH.X)).all()
    assert grouped.archive_.values.shape[1] == 5


def test_mamo_is_fairer_than_the_plain_network():
    longer = {**QUICK, "epochs": 40}
    gaps = [
        dp_gap(None, clf.select("last").predict(FRESH.X), sensitive_features=FRESH.sensitive["sex"])
        for clf in (
            fitted(PlainNetwork(**longer)),
            fitted(SMAMO("dp", **longer)),
            fitted(SMAMO("dp", losses="pairs", **longer)),
        )
    ]
    assert gaps[1] < 0.8 * gaps[0]
    assert gaps[2] < 0.8 * gaps[0]


def test_together_is_as_alone():
    """For a few steps: later on, rounding is amplified as in every training."""
    few = {**QUICK, "epochs": 3}

    def methods():
        return [
            PlainNetwork(**few),
            SMAMO("dp", attribute="sex", **few),
            SMAMO("tpr", attribute="origin", solver="published", **few),
            MMAMO(**few),
            MMAMO(losses="pairs", **few),
        ]

    together = fit_together(methods(), DATA.X, DATA.y, sensitive_features=BOTH)
    for one, alone in zip(together, methods(), strict=True):
        fitted(alone, BOTH)
        np.testing.assert_allclose(
            one.select("last").predict_proba(FRESH.X),
            alone.select("last").predict_proba(FRESH.X),
            atol=1e-4,
        )


def test_all_pairs_take_any_number_of_levels():
    levels = np.random.default_rng(0).integers(0, 4, 600)
    clf = fitted(MMAMO(losses="pairs", **QUICK), levels)
    assert clf.archive_.values.shape[1] == 3
    with pytest.raises(ValueError, match=r"two-valued .* got 4 values .* losses='pairs'"):
        fitted(MMAMO(**QUICK), levels)


@pytest.mark.parametrize(
    ("clf", "message"),
    [
        (wrong(SMAMO, notion="fpr"), "notion must be 'dp' or 'tpr', got 'fpr'"),
        (SMAMO("dp"), r"1 attribute .* got 2: \['sex', 'origin'\]; fit once for each"),
        (SMAMO("dp", attribute="age"), r"among those of .*\['sex', 'origin'\], got \['age'\]"),
        (MMAMO(attributes=[]), "must be among those of sensitive_features"),
        (
            wrong(MMAMO, solver="fast"),
            r"solver must be one of \['converged', 'published'\], got 'fast'",
        ),
        (wrong(MMAMO, losses="all"), r"losses must be one of \['two_groups', 'pairs'\], got 'all'"),
        (MMAMO(selection="fairest"), "min_accuracy must lie between 0 and 1"),
        (MMAMO(validation_fraction=1.5), "validation_fraction must lie between 0 and 1, got 1.5"),
        (MMAMO(epochs=0), "epochs must be an integer of at least 1"),
    ],
)
def test_bad_settings_are_named(clf, message):
    with pytest.raises(ValueError, match=message):
        fitted(clf, BOTH)


@pytest.mark.parametrize("kind", [PlainNetwork, MMAMO])
def test_training_that_diverges_is_named(kind):
    with pytest.raises(ValueError, match=r"learning_rate must be small enough .* no epoch has"):
        fitted(kind(**{**QUICK, "learning_rate": 1e30}))


def test_members_of_a_population_share_a_budget():
    with pytest.raises(ValueError, match="at least one method, got none"):
        fit_together([], DATA.X, DATA.y)
    for changes in ({"epochs": 3}, {"random_state": 1}):
        methods = [PlainNetwork(**QUICK), PlainNetwork(**{**QUICK, **changes})]
        with pytest.raises(ValueError, match=f"same {next(iter(changes))}.*one by one"):
            fit_together(methods, DATA.X, DATA.y)


def test_a_column_that_never_varies_is_named():
    with pytest.raises(ValueError, match="X must have a column that varies, got none"):
        PlainNetwork(**QUICK).fit(np.ones((20, 2)), np.arange(20) % 2)
