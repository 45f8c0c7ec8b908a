"""SearchFair: each problem against a generic solver, and the gap on the training rows."""

import cvxpy as cp
import numpy as np
import pytest
from reproduction.tests.baselines.tables import DATA, FRESH, SEX, fitted
from sklearn.metrics.pairwise import rbf_kernel

from apfex.datasets import make_biased
from apfex.metrics import dp_gap, tpr_gap
from apfex_reproduction.baselines import SearchFair
from apfex_reproduction.baselines._bisection import GapProblem, solve
from apfex_reproduction.baselines._inputs import fit_encoder, read_rows

SMALL = make_biased(300, kind="marginal", strength=0.5, random_state=3)


def published_problem(notion, kernel, lam, side, beta):
    """The minimum over the coefficients a of half of the rows, kernel and bounds spelled out."""
    rows, _ = read_rows(SearchFair(), SMALL.X, SMALL.y, SMALL.sensitive["sex"], None)
    x = fit_encoder(rows).transform(rows.X).astype(np.float64)
    points = x[:150]
    gamma = 1 / x.shape[1]
    K = x @ points.T + 1 if kernel == "linear" else rbf_kernel(x, points, gamma=gamma)
    y, s = 2.0 * SMALL.y - 1, np.where(SMALL.sensitive["sex"] == "male", 1.0, -1.0)
    counted = (y > 0) if notion == "tpr" else np.ones(300, bool)
    share = np.array([np.mean(s[counted] == value) for value in s])
    w = counted / (counted.sum() * share)
    a = cp.Variable(150)
    f = K @ a
    bound = w @ cp.pos(1 + side * cp.multiply(s, f))
    loss = cp.sum(cp.pos(1 - cp.multiply(y, f))) / 300
    problem = cp.Problem(cp.Minimize(loss + beta * cp.sum_squares(a) + lam * bound))
    problem.solve(solver="CLARABEL")
    return problem.value, rows, x


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("notion", ["dp", "tpr"])
@pytest.mark.parametrize(("lam", "side"), [(0.0, 1.0), (0.3, 1.0), (1.0, -1.0)])
def test_the_primal_form_has_the_minimum_of_the_published_problem(kernel, notion, lam, side):
    expected, rows, x = published_problem(notion, kernel, lam, side, beta=1e-3)
    problem = GapProblem.of(rows, notion)
    clf = SearchFair(kernel=kernel)
    span = clf._span(clf._whole_span(x, 1 / x.shape[1]), 1e-3, problem)
    found = solve(span, problem, 1e-3, lam, side)
    assert found.value == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(("notion", "measure"), [("dp", dp_gap), ("tpr", tpr_gap)])
def test_it_reaches_its_bound_on_the_training_rows(kernel, notion, measure):
    clf = fitted(SearchFair(notion, kernel=kernel, random_state=0))
    assert clf.search_["lam"].tolist()[0] == 0
    assert clf.search_["gap"].tolist()[0] > 0.1
    assert abs(clf.gap_) < 0.01
    assert 0 < clf.lam_ < 1
    hard = measure(DATA.y, clf.predict(DATA.X), sensitive_features=SEX)
    assert hard == pytest.approx(abs(clf.gap_))
    assert not clf.constant_


def test_a_bias_the_other_way_is_bounded_from_below():
    other = SEX.map({"male": "a", "female": "b"})  # the favoured value now comes first
    clf = fitted(SearchFair("dp", random_state=0), other)
    assert clf.search_["gap"].iloc[0] < -0.1
    assert abs(clf.gap_) < 0.01


def test_the_search_bisects():
    clf = fitted(SearchFair("dp", tolerance=1e-9, max_steps=6, random_state=0))
    found = clf.search_
    assert found["lam"].tolist()[:3] == [0.0, 1.0, 0.5]
    assert len(found) == 8
    low, high = 0.0, 1.0
    for lam, gap in zip(found["lam"][2:], found["gap"][2:], strict=True):
        assert lam == (low + high) / 2
        low, high = (lam, high) if gap > 0 else (low, lam)


def test_the_smallest_gap_is_kept_wherever_the_search_ended():
    was_last = []
    for max_steps in range(3, 8):
        clf = fitted(SearchFair("dp", tolerance=1e-9, max_steps=max_steps, random_state=0))
        sizes = [abs(gap) for gap in clf.search_["gap"]]
        assert abs(clf.gap_) == min(sizes)
        was_last.append(sizes[-1] == min(sizes))
    assert not all(was_last)


def test_a_fair_start_ends_the_search():
    fair = make_biased(500, kind="none", random_state=1)
    clf = SearchFair("dp", tolerance=0.2, random_state=0)
    clf.fit(fair.X, fair.y, sensitive_features=fair.sensitive["sex"])
    assert clf.search_["lam"].tolist() == [0.0]


def test_beta_is_chosen_by_accuracy_among_fair_models_that_decide():
    held = (FRESH.X, FRESH.y, FRESH.sensitive["sex"])
    betas = [1e-4, 0.3, 30.0]
    chosen = fitted(SearchFair("dp", beta=betas, max_gap=0.2, random_state=0), validation=held)
    assert set(chosen.search_["beta"]) == set(betas)
    each = [fitted(SearchFair("dp", beta=beta, random_state=0), validation=held) for beta in betas]
    gaps = [dp_gap(None, c.predict(held[0]), sensitive_features=held[2]) for c in each]
    allowed = [c for c, gap in zip(each, gaps, strict=True) if gap < 0.2 and not c.constant_]
    best = max(allowed, key=lambda c: c.score(*held[:2]))
    assert chosen.beta_ == best.beta_
    assert (chosen.predict(held[0]) == best.predict(held[0])).all()


def test_no_fair_model_is_a_warning_and_the_smallest_gap():
    with pytest.warns(UserWarning, match="No beta and gamma give a validation gap below max_gap=0"):
        fitted(SearchFair("dp", beta=[1e-3, 1e-2], max_gap=0.0, random_state=0))


def test_rbf_learns_from_so_many_rows_and_linear_from_all():
    some = fitted(SearchFair(kernel="rbf", max_rows=100, random_state=0))
    assert some._span_.basis.shape[0] == 100
    assert fitted(SearchFair(max_rows=100, random_state=0))._span_.basis.shape[0] == 600


def test_weights_are_repeated_rows():
    """Exactly the same problem, but for the choice of points."""
    weight = np.where(SMALL.y == 1, 3, 1)
    rows = np.repeat(np.arange(300), weight)
    sex = SMALL.sensitive["sex"]
    weighted, _ = read_rows(SearchFair(), SMALL.X, SMALL.y, sex, weight.astype(float))
    repeated, _ = read_rows(
        SearchFair(),
        SMALL.X.iloc[rows].reset_index(drop=True),
        SMALL.y[rows],
        sex.iloc[rows].reset_index(drop=True),
        None,
    )
    for notion in ("dp", "tpr"):
        one, other = (GapProblem.of(part, notion).weights for part in (weighted, repeated))
        summed = np.stack([np.bincount(rows, part) for part in other])
        np.testing.assert_allclose(one, summed)


@pytest.mark.parametrize(
    ("settings", "sensitive", "message"),
    [
        ({"notion": "fpr"}, SEX, r"notion must be one of \['dp', 'tpr'\], got 'fpr'"),
        ({"kernel": "poly"}, SEX, "kernel must be one of"),
        ({"beta": 0.0}, SEX, r"beta must be positive, got 0\.0"),
        ({"beta": []}, SEX, r"beta must be positive, got \[\]"),
        ({"max_rows": 1}, SEX, "max_rows must be at least 4, got 1"),
        ({}, None, "sensitive_features must be given to fit for SearchFair, got None"),
        ({}, DATA.sensitive, "must be 1 attribute for SearchFair, got 2.*fit once for each"),
        ({}, np.arange(600) % 3, "two-valued for SearchFair, got 3 values.*merge levels"),
    ],
)
def test_bad_input_is_named(settings, sensitive, message):
    with pytest.raises(ValueError, match=message):
        fitted(SearchFair(**settings), sensitive)


def test_a_group_without_positives_cannot_be_searched():
    y = np.where(SEX == "male", DATA.y, 0)
    with pytest.raises(ValueError, match=r"must have rows of both values.*count for 'tpr'"):
        SearchFair("tpr").fit(DATA.X, y, sensitive_features=SEX)
