"""A fitted classifier in a server: several threads ask it at a time."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xgboost
from tests.persistence.saved import CASES, fitted_case, load_case

_THREADS, _CALLS = 8, 48
_KINDS = [
    "rules",
    "members",
    "trees",
    "tree members",
    "both",
    "several classes by trees",
    "group thresholds of trees",
    "a factory",
    "own trees",
]


@pytest.mark.parametrize("name", _KINDS)
def test_eight_threads_get_the_decisions_of_one(name):
    clf, new, groups = fitted_case(name)
    expected = clf.decision_function(new, **groups)
    with ThreadPoolExecutor(_THREADS) as threads:
        calls = [threads.submit(clf.decision_function, new, **groups) for _ in range(_CALLS)]
        for call in calls:
            np.testing.assert_array_equal(call.result(), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_loaded_model_of_every_kind_decides_alike_for_two_hundred_calls(name, tmp_path):
    """Calls with other rows at the same time, by eight threads: nothing of one is in another."""
    clf, new, groups = fitted_case(name)
    server = load_case(name, clf.save(tmp_path / "model"))
    rng = np.random.default_rng(0)
    starts, lengths = rng.integers(0, 100, 200), rng.integers(1, 50, 200)

    def ask(start, length):
        rows = slice(start, start + length)
        part = {key: table[rows] for key, table in groups.items()}
        return server.predict(new[rows], **part), server.predict_proba(new[rows], **part)

    alone = [ask(*call) for call in zip(starts, lengths, strict=True)]
    with ThreadPoolExecutor(_THREADS) as threads:
        together = list(threads.map(ask, starts, lengths))
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


@pytest.mark.parametrize("name", [name for name in _KINDS if "tree" in name or name == "both"])
def test_no_prediction_sets_up_a_booster(name, monkeypatch):
    """That is what goes wrong at times: it must not happen at all."""
    clf, new, groups = fitted_case(name)
    monkeypatch.setattr(xgboost.Booster, "set_param", None)
    for _ in range(2):
        clf.predict(new, **groups)
