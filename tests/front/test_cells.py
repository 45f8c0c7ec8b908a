"""Many cells: their groupings, and fronts by them."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from tests.front.many_cells import quick, shared, table
from tests.persistence.test_onnx import assert_agrees

from apfex import load
from apfex.estimator import APFExClassifier
from apfex.front import _cells
from apfex.front._cell_effects import CellLabels, pairs_that_matter
from apfex.front._cells import CellGroupings
from apfex.front._rows import Rows
from apfex.groups import make_groups
from apfex.metrics import NotEstimableWarning, dp_gap
from apfex.rules import RuleModel


def grouped(n=20_000, levels=(4, 5, 6), seed=0, skew=0.0):
    rng = np.random.default_rng(seed)
    shares = [np.exp(-skew * np.arange(size)) for size in levels]
    columns = {f"a{i}": rng.choice(len(p), n, p=p / p.sum()) for i, p in enumerate(shares)}
    y = (rng.random(n) < 0.3 + 0.4 * (columns["a0"] > 1)).astype(int)
    crossing = make_groups(columns)
    found: Any = CellGroupings.of(crossing, counts_of(crossing, y))
    return crossing, y, found


def counts_of(crossing, y):
    """Rows by cell and label."""
    return np.bincount(crossing.codes * 2 + y, minlength=2 * len(crossing)).reshape(-1, 2)


def test_few_cells_are_left_alone():
    for levels, few in (((4, 4, 4), True), ((5, 13), False)):
        crossing, _, found = grouped(levels=levels)
        assert (found is None) == few == (len(crossing) <= _cells.MOST_CELLS)


def joint_of(clf):
    module = clf.front_[0].module
    assert isinstance(module, RuleModel)
    return module.joint


def test_each_cell_is_in_one_group_of_each_grouping():
    crossing, _, found = grouped(skew=0.5)
    starts = np.cumsum([0, *found.sizes])
    assert found.cells.shape == (len(crossing), len(found.sizes))
    for place, (low, high) in enumerate(pairwise(starts)):
        assert sorted(set(found.cells[:, place])) == list(range(low, high))
    assert found.n_groups == starts[-1]


def test_groups_of_an_attribute_are_its_levels():
    crossing, _, found = grouped()
    for name in crossing.attributes:
        own = found.cells[:, found.attributes.index((name,))]
        levels = crossing.parent_codes(name)
        assert len(set(zip(own, levels, strict=True))) == levels.max() + 1  # one to one


@pytest.mark.parametrize("levels", [(300,), (70, 2), (2,) * 9, (6, 5, 4, 3, 2)])
@pytest.mark.parametrize("skew", [0.0, 0.6])
@pytest.mark.parametrize("n", [1_500, 12_000])
def test_few_rows_make_no_group_of_their_own(levels, skew, n):
    crossing, _, found = grouped(n, levels, skew=skew)
    if found is None:
        return
    rows = np.bincount(found.cells[crossing.codes].ravel(), minlength=found.n_groups)
    starts = np.cumsum([0, *found.sizes])
    for (low, high), names in zip(pairwise(starts), found.attributes, strict=True):
        small = rows[low:high] < _cells._LEVEL_ROWS
        # of a single level with enough rows there is a rest, however small
        assert not small.any() or (names and high - low == 2)
    assert found.n_groups < 200


def test_cells_do_not_add_parameters_however_many_there_are():
    counts = []
    for size in (10, 30, 90):  # 100, 900 and 8,100 cells
        _, _, found = grouped(20_000, (size, size))
        counts.append(found.n_groups)
    assert max(counts) <= 2 * _cells._MOST_LEVELS + 2 + _cells._MOST_ALONE + _cells._N_BANDS


def test_a_pair_counts_where_its_labels_are_no_sum_of_effects():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (4, 9000))
    crossing = make_groups(dict(zip("abcd", codes, strict=True)))
    additive = rng.random(9000) < 0.2 + 0.2 * codes[0] + 0.1 * codes[1]
    crossed = rng.random(9000) < 0.3 + 0.4 * (codes[1] == codes[3])
    found = []
    for y in (additive, crossed):
        labels = CellLabels.of(counts_of(crossing, y))
        found.append(pairs_that_matter(crossing, labels, 48))
    assert found == [[], [("b", "d")]]


def test_bands_hold_cells_with_like_labels():
    crossing, y, found = grouped(20_000, (40, 40))
    bands = found.cells[:, found.attributes.index(())]
    labels = CellLabels.of(counts_of(crossing, y))
    shares = labels.shrunken(
        labels.by_effects([crossing.parent_codes(name) for name in crossing.attributes])
    )
    ends = [(shares[bands == band].min(), shares[bands == band].max()) for band in np.unique(bands)]
    assert all(before[1] <= after[0] for before, after in pairwise(ends))


def test_effects_add_up_where_the_truth_does():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, (2, 200_000))
    crossing = make_groups(
        {"a": a, "b": np.where(rng.random(200_000) < 0.7, a, b)}
    )  # they go along
    a, b = crossing.cells[crossing.codes].T
    truth = 0.55 + 0.1 * (crossing.cells[:, 0] - 1.5) + 0.05 * (crossing.cells[:, 1] - 1.5)
    y = (rng.random(200_000) >= 0.55 + 0.1 * (a - 1.5) + 0.05 * (b - 1.5)).astype(int)
    labels = CellLabels.of(counts_of(crossing, y))
    found = labels.by_effects([crossing.parent_codes(name) for name in ("a", "b")])
    assert np.abs(found - truth).max() < 0.015


def test_a_front_of_many_cells_closes_the_gaps_that_can_be_told():
    clf = shared()
    X, y, A = table(20_000, seed=1)
    decided = clf.decide_all(X)
    gaps = [dp_gap(y, one, sensitive_features=A[["a0", "a1"]]) for one in decided]
    plain = int(np.argmin([point.error for point in clf.front_]))
    assert gaps[plain] > 0.4
    assert (
        min(gap for gap, one in zip(gaps, decided, strict=True) if np.ptp(one)) < 0.6 * gaps[plain]
    )


def test_points_are_measured_in_every_cell():
    assert len(shared().front_[0].counts.names) == 81


@pytest.mark.filterwarnings("ignore::apfex.metrics.NotEstimableWarning")
@pytest.mark.parametrize(
    ("grouping", "criteria", "n_gaps"),
    [("intersectional", ("dp", "tpr"), 2), ("attributes", ("dp",), 4)],
)
def test_both_groupings_and_several_criteria_are_searched(grouping, criteria, n_gaps):
    X, y, A = table(1_500)
    clf = quick(grouping=grouping, criteria=criteria, n_estimators=3)
    clf.fit(X, y, sensitive_features=A)
    assert clf.history_ is not None
    assert len(clf.history_.attrs["objectives"]) == 1 + n_gaps
    assert len(clf.front_) > 1


@pytest.mark.filterwarnings("ignore::apfex.metrics.NotEstimableWarning")
def test_networks_learn_all_groupings_at_once():
    X, y, A = table(1_500)
    clf = quick(model="mlp", n_estimators=None, epochs=2).fit(X, y, sensitive_features=A)
    q = joint_of(clf)(clf.fitted_.encode(X).double())
    assert torch.allclose(q.sum((1, 2)), torch.ones(len(X)).double())
    assert (clf.predict_proba(X).sum(1) - 1 < 1e-9).all()


@pytest.mark.filterwarnings("ignore::apfex.metrics.NotEstimableWarning")
def test_a_fitted_model_keeps_its_labels_and_learns_the_groupings():
    X, y, A = table(1_500)
    own = LogisticRegression().fit(*table(500, seed=5)[:2])
    clf = APFExClassifier(init=own, max_gap=1.0, n_members=8, random_state=0, n_jobs=1)
    clf.fit(X, y, sensitive_features=A)
    np.testing.assert_allclose(clf.predict_proba(X), own.predict_proba(X), atol=0.1)
    own_place = next(p for p, point in enumerate(clf.front_) if point.member == -1)
    assert np.array_equal(clf.decide_all(X)[own_place], own.predict(X))


@pytest.mark.filterwarnings("ignore::apfex.metrics.NotEstimableWarning")
def test_several_classes():
    X, y, A = table(1_500, classes=3)
    clf = quick(n_estimators=3).fit(X, y, sensitive_features=A)
    assert clf.predict_proba(X).shape == (1_500, 3)


@pytest.mark.parametrize("group_thresholds", [False, True])
def test_a_stored_front_of_many_cells_decides_as_before(tmp_path, group_thresholds):
    clf = shared(group_thresholds)
    X, _, A = table(500, seed=2)
    given = {"sensitive_features": A} if group_thresholds else {}
    clf.save(tmp_path / "front")
    again = load(tmp_path / "front")
    assert np.array_equal(clf.decide_all(X, **given), again.decide_all(X, **given))
    assert np.array_equal(clf.predict_proba(X, **given), again.predict_proba(X, **given))


@pytest.mark.parametrize("group_thresholds", [False, True])
def test_onnx_decides_as_the_point(tmp_path, group_thresholds):
    clf = shared(group_thresholds)
    X, _, A = table(300, seed=2)
    clf.to_onnx(tmp_path / "point.onnx")
    assert_agrees(clf, tmp_path / "point.onnx", X, A if group_thresholds else None)


def test_known_cells_leave_their_groups_alone_each_as_much_as_the_others():
    joint = joint_of(shared(group_thresholds=True))
    assert joint.cells is not None
    X, _, _ = table(50, seed=3)
    x = shared(group_thresholds=True).fitted_.encode(X).double()
    cells, s = torch.arange(50), joint.cells.shape[1]
    with torch.no_grad():
        known = joint.given(joint(x), cells).sum(2)
    expected = torch.zeros_like(known).scatter_(1, joint.cells[cells], 1 / s)
    torch.testing.assert_close(known, expected)


def test_a_cell_that_fit_has_not_seen_is_decided_without_it():
    clf = shared(group_thresholds=True)
    X, _, A = table(200, seed=3)
    with pytest.warns(UserWarning, match="did not occur"):
        decided = clf.predict(X, sensitive_features=A.assign(a0="elsewhere"))
    plain = clf.front_[clf.point_].module
    x = clf.fitted_.encode(X).double()
    with torch.no_grad():
        assert np.array_equal(decided, (plain(x)[:, 0] > 0).numpy().astype(int))


def test_one_attribute_with_many_values_and_a_name_for_few_of_those_left_out():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 400, 2_000)
    y = (rng.random(2_000) < 0.3 + 0.001 * code).astype(int)
    X = np.stack([rng.normal(code / 200), rng.normal(2.0 * y)], 1)
    with pytest.warns(NotEstimableWarning) as caught:
        clf = quick(n_estimators=3).fit(X, y, sensitive_features={"zip": code})
    assert joint_of(clf).shape[0] < 60
    assert len(str(caught[0].message)) < 500


def test_rows_to_learn_from_do_not_grow_with_the_cells():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 10, (4, 30_000))
    crossing, y = make_groups(dict(zip("abcd", codes, strict=True))), rng.integers(0, 2, 30_000)
    rows = Rows(np.zeros((30_000, 1)), y, np.arange(2), crossing, [crossing], None)
    part = np.arange(30_000)
    joint = rows.joint(part, torch.zeros(30_000, 1), torch.from_numpy(part % 5), rows.cells(part))
    assert len(crossing) > 9_000
    assert joint.shape[0] < 120
    assert joint.targets.numel() < 10 * 30_000
    assert torch.equal(joint.labels, torch.from_numpy(y))
