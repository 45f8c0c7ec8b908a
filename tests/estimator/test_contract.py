"""scikit-learn's own checks, and the two promises that they can only check exactly."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator
from tests.estimator.tables import DATA, FRESH, quick, shared

from apfex.estimator import APFExClassifier
from apfex.metrics import dp_gap

PLAIN = "ignore:sensitive_features is None"
"""scikit-learn's checks know of no sensitive features, and the classifier says so."""

WEIGHTS = (
    "Weighted rows and repeated rows are split and shuffled differently, so equality holds up to "
    "noise; see the tests below."
)
QUICK = {"n_members": 2, "batch_size": 32, "bins": None, "validation": "split"}
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}


@pytest.mark.filterwarnings(PLAIN)
@pytest.mark.parametrize(
    "settings",
    [
        {**QUICK, "model": "linear", "epochs": 8},
        pytest.param({**QUICK, "epochs": 20}, marks=pytest.mark.slow),
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"model": "linear"}, marks=pytest.mark.slow),
        pytest.param({"model": "boosting", "n_estimators": 20}, marks=pytest.mark.slow),
        pytest.param(
            {"model": "boosting", "n_estimators": 20, "search": "inprocess"}, marks=pytest.mark.slow
        ),
        pytest.param({"model": "mlp", "epochs": 20, "search": "inprocess"}, marks=pytest.mark.slow),
        pytest.param(
            {"model": ("mlp", "boosting"), "epochs": 20, "n_estimators": 20}, marks=pytest.mark.slow
        ),
        pytest.param({"model": LogisticRegression()}, marks=pytest.mark.slow),
    ],
    ids=[
        "quick",
        "quick networks",
        "default",
        "linear",
        "trees",
        "trees of their own",
        "networks of their own",
        "mixture",
        "a user's model",
    ],
)
def test_it_passes_the_checks_of_scikit_learn(settings):
    results = check_estimator(
        APFExClassifier(**settings),
        expected_failed_checks=EXPECTED,
        on_fail=None,
        on_skip=None,
    )
    odd = {
        result["check_name"]: (result["status"], result["exception"])
        for result in results
        if result["status"] != "passed"
    }
    odd.pop("check_array_api_input", None)  # skipped unless SCIPY_ARRAY_API is set
    assert {name for name, (status, _) in odd.items() if status == "xfail"} <= set(EXPECTED)
    assert {name: found for name, found in odd.items() if found[0] != "xfail"} == {}


def test_a_row_of_weight_zero_is_no_row():
    """Exactly: labels, groups and levels that only such rows have leave no trace."""
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(DATA.y)).astype(float)
    weight[DATA.sensitive["origin"] == "south"] = 0
    here = weight > 0
    y = np.where(here, DATA.y, 7)
    whole = quick().fit(DATA.X, y, sensitive_features=DATA.sensitive, sample_weight=weight)
    part = quick().fit(
        DATA.X[here], y[here], sensitive_features=DATA.sensitive[here], sample_weight=weight[here]
    )
    assert whole.classes_.tolist() == [0, 1]
    assert whole.front_.to_frame().equals(part.front_.to_frame())
    assert (whole.predict_proba(FRESH.X) == part.predict_proba(FRESH.X)).all()


def test_only_ratios_of_weights_matter():
    weight = np.random.default_rng(0).integers(1, 4, len(DATA.y)).astype(float)
    fronts = [
        quick()
        .fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive, sample_weight=weight * scale)
        .front_.to_frame()
        for scale in (1.0, 2.0**-40)
    ]
    assert fronts[0].equals(fronts[1])


def test_equal_weights_change_nothing():
    weighted = quick().fit(
        DATA.X, DATA.y, sensitive_features=DATA.sensitive, sample_weight=np.ones(len(DATA.y))
    )
    assert (shared().predict_proba(FRESH.X) == weighted.predict_proba(FRESH.X)).all()


def ends(weights, repeat, seeds, front_end):
    """Share of positive decisions and dp gap on fresh rows, a row per seed."""
    found = []
    rows = np.repeat(np.arange(len(DATA.y)), weights if repeat else 1)
    weight = None if repeat else weights.astype(float)
    for seed in seeds:
        batch_size = 64 * len(rows) // len(DATA.y)
        clf = quick(random_state=seed, model="linear", batch_size=batch_size, epochs=30)
        clf.fit(
            DATA.X.iloc[rows],
            DATA.y[rows],
            sensitive_features=DATA.sensitive.iloc[rows],
            sample_weight=weight,
        )
        decided = clf.at(front_end).predict(FRESH.X)
        found.append([decided.mean(), dp_gap(None, decided, sensitive_features=FRESH.sensitive)])
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("front_end", [0, -1], ids=["accurate", "fair"])
def test_weights_mean_repeated_rows_up_to_noise(front_end):
    """In place of scikit-learn's equality: means over seeds agree, and weights do matter."""
    seeds = range(12)
    weights = np.where(DATA.y == 1, 3, 1)
    weighted = ends(weights, False, seeds, front_end)
    repeated = ends(weights, True, seeds, front_end)
    plain = ends(np.ones_like(weights), False, seeds, front_end)
    noise = np.sqrt((weighted.var(0, ddof=1) + repeated.var(0, ddof=1)) / len(seeds))
    difference = np.abs(weighted.mean(0) - repeated.mean(0))
    assert (difference < 3 * noise + 0.02).all()
    assert weighted.mean(0)[0] - plain.mean(0)[0] > 0.1  # three times the positives, more selected


@pytest.mark.slow
def test_removing_rows_equals_weighting_them_down_up_to_noise():
    """The second promise in the limit: tiny weights come to nothing."""
    seeds = range(8)
    away = (DATA.y == 1) & (np.arange(len(DATA.y)) % 2 == 0)
    tiny = []
    for seed in seeds:
        clf = quick(random_state=seed, model="linear", epochs=30)
        weight = np.where(away, 1e-9, 1.0)
        clf.fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive, sample_weight=weight)
        tiny.append(clf.at(0).predict(FRESH.X).mean())
    removed = ends(np.where(away, 0, 1), True, seeds, 0)[:, 0]
    assert abs(np.mean(tiny) - removed.mean()) < 3 * np.std(tiny) / 8**0.5 + 0.03
