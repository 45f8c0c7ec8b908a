"""A front decides as a whole as each of its points does on its own."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.estimator.tables import FRESH, shared
from tests.persistence.saved import CASES, fitted_case
from torch import nn

from apfex.front import _front

THREADS = 8


def decisions_in_turn(clf: Any, new: Any, groups: dict) -> np.ndarray:
    return np.stack([clf.at(place).predict(new, **groups) for place in range(len(clf.front_))])


@pytest.mark.parametrize("name", CASES)
def test_decisions_and_scores_are_those_of_every_point(name):
    clf, new, groups = fitted_case(name)
    decided = clf.decide_all(new, **groups)
    assert decided.dtype == clf.classes_.dtype
    assert (decided == decisions_in_turn(clf, new, groups)).all()
    x, codes = clf._encode(new, groups.get("sensitive_features"))
    models = [point.module for point in clf.front_]
    (scores,) = _front.score_in_chunks(models, x, codes, clf.front_.dtype)
    for place, found in enumerate(scores):
        assert (found == clf.at(place).decision_function(new, **groups)).all()


SHARED = {"rules": "joint", "trees": "joint", "both": "joint", "tree members": "base"}


@pytest.mark.parametrize(("name", "part"), SHARED.items())
def test_what_points_share_runs_once(name, part):
    clf, new, groups = fitted_case(name)
    parts = {id(m): m for m in (getattr(p.module, part, None) for p in clf.front_) if m}
    assert len(parts) == 1
    (model,) = parts.values()
    runs: Counter[nn.Module] = Counter()
    handle = model.register_forward_hook(lambda module, *_: runs.update([module]))
    clf.decide_all(new, **groups)
    handle.remove()
    assert list(runs.values()) == [1]


@pytest.mark.parametrize("changes", [{}, {"group_thresholds": True}, {"search": "inprocess"}])
def test_rows_come_a_chunk_at_a_time(changes, monkeypatch):
    clf = shared(**changes)
    groups = {"sensitive_features": FRESH.sensitive} if clf.group_thresholds else {}
    whole = clf.decide_all(FRESH.X, **groups)
    assert whole.shape == (len(clf.front_), 600)
    monkeypatch.setattr(_front, "_CHUNK", 250)
    assert (clf.decide_all(FRESH.X, **groups) == whole).all()


def test_some_points_may_decide():
    clf, new, _ = fitted_case("rules")
    x, _ = clf._encode(new, None)
    chosen = clf.front_.decide(x, points=[2, 0])
    assert (chosen == clf.front_.decide(x)[[2, 0]]).all()


def test_no_rows_make_no_decisions():
    clf, new, _ = fitted_case("rules")
    assert clf.front_.decide(clf.fitted_.encode(new)[:0]).shape == (len(clf.front_), 0)


@pytest.mark.parametrize("name", ["rules", "group thresholds of trees", "tree members"])
def test_eight_threads_get_the_decisions_of_one(name):
    clf, new, groups = fitted_case(name)
    expected = clf.decide_all(new, **groups)
    with ThreadPoolExecutor(THREADS) as threads:
        calls = [threads.submit(clf.decide_all, new, **groups) for _ in range(2 * THREADS)]
        for call in calls:
            np.testing.assert_array_equal(call.result(), expected)
