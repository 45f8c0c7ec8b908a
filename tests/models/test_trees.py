"""XGBoost's settings, and its ensembles as modules."""

import copy
import os
import pickle
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
import xgboost
from tests.models.rows import QUICK, make_rows, torch_threads

from apfex.models import Trees, TreeSettings
from apfex.models._trees import in_parallel


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def trees(request):
    rows = make_rows(n_classes=request.param)
    return Trees.fit(rows, rows, request.param, QUICK, ["q"] * 4)


X = make_rows(seed=5).x
MANY = replace(QUICK, n_estimators=80, learning_rate=0.4)


class TestTrees:
    def test_margins_are_those_of_the_booster(self, trees):
        data = xgboost.DMatrix(X.numpy(), feature_types=["q"] * 4)
        expected = trees.booster.predict(data, output_margin=True).reshape(len(X), -1)
        np.testing.assert_array_equal(trees(X).numpy(), expected)
        assert trees(X).std() > 0

    @pytest.mark.parametrize(
        "copied",
        [copy.deepcopy, lambda trees: pickle.loads(pickle.dumps(trees))],
        ids=["deepcopy", "pickle"],
    )
    def test_copies_say_the_same(self, trees, copied):
        assert torch.equal(copied(trees)(X), trees(X))
        assert copied(trees).booster is not trees.booster

    def test_no_rows_are_fine(self, trees):
        assert trees(X[:0]).shape == (0, trees(X).shape[1])
        assert trees(X[:1]).shape == (1, trees(X).shape[1])

    def test_an_answer_stays_when_others_are_asked_for(self, trees):
        halves = [trees(part) for part in X.split(150)]
        assert torch.equal(torch.cat(halves), trees(X))

    def test_many_rows_are_predicted_alike(self, trees):
        with torch_threads(2):
            assert torch.equal(trees(X.repeat(20, 1)), trees(X).repeat(20, 1))

    def test_double_in_double_out(self, trees):
        found = trees(X.double())
        assert found.dtype == torch.float64
        assert torch.equal(found, trees(X).double())

    def test_inputs_stay_untouched_and_missing_values_are_fine(self, trees):
        x = X.clone().requires_grad_()
        trees(x)
        assert torch.equal(x, X)
        assert trees(torch.full_like(X, torch.nan)).isfinite().all()


class TestSettings:
    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("n_estimators", 0, "n_estimators must be at least 1, got 0"),
            ("max_depth", 0, "max_depth must be at least 1, got 0"),
            ("learning_rate", 0.0, "learning_rate must be positive, got 0.0"),
            ("learning_rate", float("nan"), "learning_rate must be positive, got nan"),
        ],
    )
    def test_values_out_of_range_are_refused(self, name, value, message):
        with pytest.raises(ValueError, match=message):
            TreeSettings(**{name: value})

    def test_small_tables_get_shallow_trees_unless_told_otherwise(self):
        small, large = TreeSettings.for_rows(4_999), TreeSettings.for_rows(5_000)
        assert small.max_depth < large.max_depth
        assert small.learning_rate < large.learning_rate
        assert TreeSettings.for_rows(100, max_depth=9, n_estimators=None).max_depth == 9
        assert TreeSettings.for_rows(100, n_estimators=None) == TreeSettings.for_rows(100)

    def test_trees_of_groups_are_free_of_the_labels_constraints(self):
        bound = replace(QUICK, monotone_constraints=(1, 0))
        assert "monotone_constraints" in bound.parameters()
        assert "monotone_constraints" not in bound.for_groups().parameters()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_work_in_parallel_keeps_its_order(n_threads):
    def work(thing):
        time.sleep(0.02 * (3 - thing))
        return thing

    with torch_threads(n_threads):
        assert list(in_parallel(work, range(4))) == [0, 1, 2, 3]
        assert list(in_parallel(work, [])) == []


def test_work_runs_on_as_many_threads_as_torch_uses():
    together = threading.Barrier(2, timeout=20)
    with torch_threads(2):
        places = list(in_parallel(lambda _: together.wait(), range(2)))  # one alone would wait
    assert sorted(places) == [0, 1]


def test_errors_of_work_come_through():
    with pytest.raises(ZeroDivisionError):
        list(in_parallel(lambda thing: 1 / thing, [1, 0]))


def test_a_module_of_trees_has_nothing_to_train():
    rows = make_rows()
    trees = Trees.fit(rows, rows, 2, QUICK, ["q"] * 4)
    assert isinstance(trees, Trees)
    assert list(trees.parameters()) == []


def losses_after_each_round(trees, rows, settings):
    """Weighted cross-entropy on rows by slices of the ensemble."""
    share = rows.weights() / rows.weights().sum()
    found = []
    for rounds in range(1, settings.n_estimators + 1):
        margins = trees.booster[:rounds].inplace_predict(rows.x.numpy(), predict_type="margin")
        scores = torch.from_numpy(margins).reshape(len(rows.y), -1)
        if scores.shape[1] == 1:
            scores = torch.cat([torch.zeros_like(scores), scores], 1)
        loss = torch.nn.functional.cross_entropy(scores, rows.y, reduction="none")
        found.append(float((loss * share).sum()))
    return found


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_fitting_stops_at_the_least_loss_on_validation_rows(n_classes, weighted):
    rows, validation = (make_rows(300, 4, n_classes, seed=s, weighted=weighted) for s in (0, 1))
    trees = Trees.fit(rows, validation, n_classes, MANY, ["q"] * 4)
    n_rounds = trees.booster.num_boosted_rounds()
    assert 1 < n_rounds < MANY.n_estimators
    # On its own rows the loss falls on, so there all rounds are kept, and the first are the same.
    whole = Trees.fit(rows, rows, n_classes, MANY, ["q"] * 4)
    assert whole.booster.num_boosted_rounds() > n_rounds
    losses = losses_after_each_round(whole, validation, replace(MANY, n_estimators=n_rounds + 5))
    assert int(np.argmin(losses)) + 1 == n_rounds
    prefix = whole.booster[:n_rounds].inplace_predict(rows.x.numpy(), predict_type="margin")
    assert trees(rows.x).shape == (300, 1 if n_classes == 2 else 3)
    np.testing.assert_array_equal(trees(rows.x).numpy(), prefix.reshape(300, -1))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_weight_of_two_is_the_row_twice(n_classes):
    rows, validation = (make_rows(300, 4, n_classes, seed=s, weighted=True) for s in (0, 1))

    def margins(change):
        trees = Trees.fit(change(rows), change(validation), n_classes, MANY, ["q"] * 4)
        return trees(validation.x)

    def plain(part):
        return replace(part, sample_weight=None)

    def repeated(part):
        return plain(part.take(torch.arange(300).repeat_interleave(part.weights().long())))

    weighted = margins(lambda part: part)
    torch.testing.assert_close(weighted, margins(repeated), rtol=1e-3, atol=1e-3)
    assert not torch.allclose(weighted, margins(plain), rtol=1e-2, atol=1e-2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_threads_of_its_own():
    program = """
import os, signal, warnings
import numpy as np, torch, xgboost
from apfex.models import Trees

warnings.simplefilter("ignore")
torch.set_num_threads(2)
x = np.arange(4096, dtype=np.float32)[:, None]
trees = Trees(xgboost.train({}, xgboost.DMatrix(x, x[:, 0]), 2))
before = trees(torch.from_numpy(x))
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if before.equal(trees(torch.from_numpy(x))) else 3)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
