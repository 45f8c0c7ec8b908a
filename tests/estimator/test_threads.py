"""A fitted classifier in a server: several threads ask it at a time."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xgboost
from tests.persistence.saved import fitted_case

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


@pytest.mark.parametrize("name", [name for name in _KINDS if "tree" in name or name == "both"])
def test_no_prediction_sets_up_a_booster(name, monkeypatch):
    """That is what goes wrong at times: it must not happen at all."""
    clf, new, groups = fitted_case(name)
    monkeypatch.setattr(xgboost.Booster, "set_param", None)
    for _ in range(2):
        clf.predict(new, **groups)
