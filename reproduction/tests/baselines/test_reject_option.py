"""The reject option: decisions spelled out, and searches against the exact grid."""

from typing import Any

import numpy as np
import pytest
from reproduction.tests.baselines.tables import DATA, FRESH, QUICK, SEX, fitted
from sklearn.linear_model import LogisticRegression

from apfex.front import hypervolume, non_dominated
from apfex.groups import UnseenGroupWarning
from apfex.metrics import accuracy, dp_gap, tpr_gap
from apfex_reproduction.baselines import MMAMO, PlainNetwork, RejectOption
from apfex_reproduction.baselines._band import Band, margins

NUMBERS = DATA.X[["merit_1", "merit_2", "noise_1"]]
FRESH_NUMBERS = FRESH.X[["merit_1", "merit_2", "noise_1"]]


def option(criterion: Any = "dp", **changes):
    settings = {"search": "grid", "random_state": 0, **changes}
    return RejectOption(criterion, LogisticRegression(), **settings)


def fit_numbers(clf, sensitive=SEX, **more):
    return clf.fit(NUMBERS, DATA.y, sensitive_features=sensitive, **more)


def rows(seed=0, n=300, k=3):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 2)  # with ties, and with rows exactly on a band's edge
    y, groups = (rng.random(n) < p).astype(int), rng.integers(0, k, n)
    return Band(p, y, groups, rng.random(n) + 0.5, np.array([True, False, True]), "dp")


def spelled_out(band, t, m):
    """Decisions by the definition, one row after another."""
    decided = []
    for p, group in zip(band.p, band.groups, strict=True):
        inside = t - m <= p <= t + m
        decided.append(band.lower[group] if inside else p > t)
    return np.array(decided)


@pytest.mark.parametrize("criterion", ["dp", "tpr"])
def test_values_are_those_of_decisions_spelled_out(criterion):
    band = rows()
    band = Band(band.p, band.y, band.groups, band.weight, band.lower, criterion)
    measure = dp_gap if criterion == "dp" else tpr_gap
    t = np.array([0.5, 0.05, 0.95, 0.3, 0.625, 0.5])
    m = np.array([0.0, 0.05, 0.02, 0.25, 0.125, 0.5])
    for found, t_, m_ in zip(band.values(t, m), t, m, strict=True):
        decided = spelled_out(band, t_, m_).astype(int)
        flipped = Band(band.p, band.y, band.groups, band.weight, ~band.lower, criterion)
        other = spelled_out(flipped, t_, m_).astype(int)
        expected = [
            1 - accuracy(band.y, decided, sample_weight=band.weight),
            measure(band.y, decided, sensitive_features=band.groups, sample_weight=band.weight),
            np.average(decided != other, weights=band.weight),
        ]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_margin_keeps_the_band_between_zero_and_one():
    t, share = np.random.default_rng(0).random((2, 100))
    m = margins(t, share)
    assert (t - m >= -1e-12).all()
    assert (t + m <= 1 + 1e-12).all()


def test_the_grid_front_is_exact():
    """5,000 pairs one by one, by decisions on the rows that choose."""
    clf = fit_numbers(
        option(prefit=False), validation=(FRESH_NUMBERS, FRESH.y, FRESH.sensitive["sex"])
    )
    p = clf.estimator_.predict_proba(FRESH_NUMBERS)[:, 1]
    codes = (FRESH.sensitive["sex"] == "male").to_numpy().astype(int)
    band = Band(p, FRESH.y, codes, np.ones(600), np.array([True, False]), "dp")
    assert clf.lower_ == ["sex=female"]
    values = []
    for t in np.linspace(0.05, 0.95, 100)[::9]:
        for share in np.linspace(0, 1, 50)[::7]:
            m = share * min(t, 1 - t)
            decided = spelled_out(band, t, m)
            values.append(
                [
                    np.mean(decided != FRESH.y),
                    dp_gap(None, decided.astype(int), sensitive_features=codes),
                    np.mean((p >= t - m) & (p <= t + m)),
                ]
            )
    front = clf.archive_.values
    for value in values:  # nothing on the grid lies outside of what the front covers
        assert (front <= np.array(value) + 1e-9).all(1).any()


@pytest.mark.parametrize("sensitive", [SEX, DATA.sensitive], ids=["attribute", "crossing"])
@pytest.mark.parametrize("criterion", ["dp", "tpr"])
def test_the_front_of_nsga2_is_that_of_the_grid_within_tolerance(criterion, sensitive):
    exact = fit_numbers(option(criterion), sensitive).archive_.values
    found = fit_numbers(option(criterion, search="nsga2"), sensitive).archive_.values
    volumes = [hypervolume(front, [1, 1, 1]) for front in (exact, found)]
    assert volumes[1] > volumes[0] - 0.005
    distance = (found[None] - exact[:, None]).max(2).min(1)  # to be covered, for each grid point
    assert np.quantile(distance, 0.9) < 0.02
    assert distance.max() < 0.06


@pytest.mark.parametrize("criterion", ["dp", "tpr"])
def test_the_swarm_finds_the_point_of_the_grid_that_is_nearest_to_the_ideal(criterion):
    exact, found = (fit_numbers(option(criterion, search=name)) for name in ("grid", "pso"))
    near = [np.linalg.norm(clf.archive_.values, axis=1).min() for clf in (exact, found)]
    assert near[1] < near[0] + 0.005


def test_the_archive_holds_points_that_no_other_dominates():
    clf = fit_numbers(option(search="nsga2"))
    assert non_dominated(clf.archive_.values).all()
    assert clf.archive_.values.shape[1] == 3


def test_decisions_follow_threshold_margin_and_group():
    clf = fit_numbers(option(selection="fairest", min_accuracy=0.6))
    assert clf.margin_ > 0
    p = clf.estimator_.predict_proba(FRESH_NUMBERS)[:, 1]
    codes = (FRESH.sensitive["sex"] == "male").to_numpy().astype(int)
    band = Band(p, FRESH.y, codes, np.ones(600), np.array([True, False]), "dp")
    expected = spelled_out(band, clf.threshold_, clf.margin_).astype(int)
    given = {"sensitive_features": FRESH.sensitive["sex"]}
    decided = clf.predict(FRESH_NUMBERS, **given)
    assert (decided == expected).all()
    assert (decided == (clf.decision_function(FRESH_NUMBERS, **given) > 0)).all()
    assert (decided == clf.predict_proba(FRESH_NUMBERS, **given).argmax(1)).all()
    plain = (p > 0.5).astype(int)
    fairer, before = (dp_gap(None, d, sensitive_features=codes) for d in (decided, plain))
    assert fairer < 0.7 * before


def test_it_needs_the_attribute_at_prediction():
    clf = fit_numbers(option())
    with pytest.raises(
        ValueError, match="sensitive_features must be given at prediction, got None"
    ):
        clf.predict(FRESH_NUMBERS)
    with pytest.raises(ValueError, match="one row for each of the 600 rows of X, got 3"):
        clf.predict(FRESH_NUMBERS, sensitive_features=["male"] * 3)
    with pytest.warns(UnseenGroupWarning):
        decided = clf.predict(FRESH_NUMBERS, sensitive_features=["other"] * 600)
    p = clf.estimator_.predict_proba(FRESH_NUMBERS)[:, 1]
    assert (decided == (p > clf.threshold_)).all()


def test_a_fitted_classifier_is_left_as_it_is():
    fitted_before = LogisticRegression().fit(NUMBERS, DATA.y)
    clf = RejectOption("dp", fitted_before, search="grid", prefit=True, random_state=0)
    clf.fit(FRESH_NUMBERS, FRESH.y, sensitive_features=FRESH.sensitive["sex"])
    assert clf.estimator_ is fitted_before


def test_the_network_of_the_paper_is_the_default():
    clf = RejectOption("dp", PlainNetwork(**QUICK), search="grid", random_state=0)
    fitted(clf)
    assert isinstance(clf.estimator_, PlainNetwork)
    assert RejectOption().estimator is None


def test_the_last_point_of_a_constant_model_is_flagged():
    clf = fit_numbers(option())
    flags = [point.payload.constant for point in clf.archive_]
    everybody = [p.values[1] == 0 and p.values[0] > 0.45 for p in clf.archive_]
    assert all(flag for flag, same in zip(flags, everybody, strict=True) if same)
    fairest = clf.select("fairest", min_accuracy=0.0)
    assert not fairest.constant_


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"criterion": "fpr"}, ValueError, r"criterion must be one of \['dp', 'tpr'\], got 'fpr'"),
        ({"search": "random"}, ValueError, "search must be one of"),
        ({"selection": "last"}, ValueError, "selection must not be 'last'.*no epochs"),
        ({"selection": "fairest"}, ValueError, "min_accuracy must lie between 0 and 1"),
        ({"prefit": True, "estimator": None}, ValueError, "prefit=True needs a fitted estimator"),
        ({"estimator": "no"}, TypeError, "estimator must have predict_proba, got str"),
        ({"estimator": MMAMO()}, TypeError, "must be a plain classifier, got MMAMO.*prefit=True"),
    ],
)
def test_bad_settings_are_named(changes, error, message):
    clf = option().set_params(**changes)
    with pytest.raises(error, match=message):
        fit_numbers(clf)


def test_groups_without_positives_are_named():
    y = np.where(SEX == "male", DATA.y, 0)
    with (
        pytest.warns(UserWarning, match="left out of the choice"),
        pytest.raises(ValueError, match="two groups with positives among the 120 rows that choose"),
    ):
        option("tpr").fit(NUMBERS, y, sensitive_features=SEX)
