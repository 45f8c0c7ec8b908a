# pyright: reportMissingImports=false
"""Each on a table whose label depends on the parity of a category's code: an order says nothing."""

from dataclasses import replace

import numpy as np
import pytest
from rivals.common import Part
from threadpoolctl import threadpool_limits

pytest.importorskip("xgboost")

from rivals import trees_

LEVELS = 30


def make_part(n, seed):
    rng = np.random.default_rng(seed)
    code, number, group = (rng.integers(0, size, n) for size in (LEVELS, 100, 2))
    x = np.stack([code, number], axis=1).astype(np.float32)
    x[::17, 1] = np.nan
    y = ((code % 2) ^ (rng.random(n) < 0.1 + 0.1 * group)).astype(np.int64)
    return Part(x, y, group, 2, None, None, "codes", ("c", "q"))


@pytest.fixture(scope="module")
def parts():
    return make_part(500, 0), make_part(300, 1), make_part(300, 2)


@pytest.mark.parametrize("make_model", [trees_.xgboost, trees_.histogram])
def test_categories_are_split_as_such(make_model, parts):
    train, _, test = parts
    with threadpool_limits(1):
        errors = [
            np.mean(trees_.fitted(make_model)(rows, 0).predict(test.x) != test.y)
            for rows in (train, replace(train, feature_types=()))
        ]
    assert errors[0] < 0.2 < 0.3 < errors[1]


@pytest.mark.parametrize("make_model", [trees_.xgboost, trees_.histogram])
def test_large_tables_get_larger_trees_and_rounds_are_fixed(make_model):
    small, large = (make_model(make_part(n, 0), 0).get_params() for n in (5000, 5001))
    assert small["max_depth"] == 3
    assert small["learning_rate"] < large["learning_rate"]
    rounds = [p.get("n_estimators") or p["max_iter"] for p in (small, large)]
    assert rounds == [80, 120]
    assert not small.get("early_stopping")
    assert not small.get("early_stopping_rounds")


# A run ignores warnings too; fairlearn's are about pandas.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(trees_.METHODS))
def test_methods_learn_repeat_and_read_groups_of_new_rows_only_if_marked(name, parts, monkeypatch):
    monkeypatch.setattr("rivals.fairlearn_.GAPS", ("dp",))
    monkeypatch.setattr("rivals.fairlearn_.BOUNDS", (0.06,))
    monkeypatch.setattr("rivals.fairlearn_.TOLERANCES", (0.0,))
    monkeypatch.setitem(trees_.HISTOGRAM["small"], "max_iter", 3)
    train, validation, test = parts
    swapped = replace(test, group=1 - test.group)
    method = trees_.METHODS[name]
    with threadpool_limits(1):
        points, others = (method(train, validation, rows, 0) for rows in (test, swapped))
    assert min(np.mean(point.test != test.y) for point in points) < 0.2
    for point, other in zip(points, others, strict=True):
        assert point.name == other.name
        np.testing.assert_array_equal(point.validation, other.validation)
    same = all(np.array_equal(a.test, b.test) for a, b in zip(points, others, strict=True))
    assert same is not getattr(method, "needs_attribute", False)


def test_who_reads_the_attribute_is_marked():
    marked = {n for n, m in trees_.METHODS.items() if getattr(m, "needs_attribute", False)}
    assert marked == {"fairlearn ThresholdOptimizer + HGB", "OxonFair + XGBoost"}
