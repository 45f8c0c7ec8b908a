"""Methods by their own packages: those that learn in seconds do so on a tiny table."""
# pyright: reportMissingImports=false

from dataclasses import replace

import numpy as np
import pytest
from rivals import all_methods, base_models, fairlearn_, linearpost_
from rivals.apfex_ import fit, own_joint
from rivals.common import needs_attribute
from threadpoolctl import threadpool_limits

pytest.importorskip("xgboost")
QUICK = ("LinearPost + HGB", "LinearPost + HGB, group known", "ThresholdOptimizer + HGB")
QUICK += ("GridSearch + XGBoost", "error-parity + HGB", "FairGBM", "plain HGB")
OPTIONAL = {"error-parity + HGB": "error_parity", "FairGBM": "fairgbm"}


@pytest.fixture(scope="module")
def parts(make_part):
    return make_part(500, 0), make_part(300, 2)


@pytest.fixture
def short(monkeypatch):
    """Ladders of two bounds, and few rounds."""
    monkeypatch.setattr("rivals.common.BOUNDS", (0.05,))
    monkeypatch.setattr("rivals.linearpost_.BOUNDS", (0.05,))
    for ladder in ("rivals.common.LADDER", "rivals.fairlearn_.SHORT_LADDER"):
        monkeypatch.setattr(ladder, (0.05, 1.0))
    monkeypatch.setattr("rivals.common.by_bounds.__defaults__", ((0.05, 1.0), ("dp", "tpr", "eo")))
    monkeypatch.setitem(base_models.HISTOGRAM["small"], "max_iter", 10)
    monkeypatch.setitem(base_models.QUICK["small"], "n_estimators", 10)


# A run ignores warnings too; fairlearn's are about pandas.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", QUICK)
def test_methods_learn_and_read_groups_of_new_rows_only_if_marked(name, parts):
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name])
    rows, test = parts
    method = all_methods()[name]
    swapped = replace(test, group=1 - test.group)
    with threadpool_limits(1):
        found, others = (dict(method(rows, new, 0)) for new in (test, swapped))
    first = "tpr" if name == "FairGBM" else "dp"
    assert min(np.mean(point != test.y) for point in found[first].points) < 0.25
    same = all(
        np.array_equal(a, b)
        for problem in found
        for a, b in zip(found[problem].points, others[problem].points, strict=True)
    )
    assert same is not needs_attribute(method)


def test_out_of_fold_scores_are_no_scores_of_the_same_rows(parts):
    rows, test = parts
    noise = replace(rows, y=np.random.default_rng(5).integers(0, 2, len(rows)))
    with threadpool_limits(1):
        out, new = base_models.cross_fitted_scores(noise, test, 0)
        joint, joint_new = base_models.cross_fitted_joint(rows, test, 0)
    assert abs(np.corrcoef(out, noise.y)[0, 1]) < 0.2
    assert new.shape == (300,)
    np.testing.assert_allclose(joint.sum((1, 2)), 1)
    np.testing.assert_allclose(joint_new.sum((1, 2)), 1)
    assert np.mean((joint_new[:, :, 1].sum(1) > 0.5) == test.y) > 0.75
    assert np.mean(joint_new.sum(2).argmax(1) == test.group) > 0.55


@pytest.mark.filterwarnings("ignore")
def test_our_q_is_what_our_rules_decide_by(parts):
    rows, test = parts
    given = {"criteria": "dp", "model": "linear", "max_gap": 1.0}
    seen, new, groups = own_joint(rows, test, 0, **given)
    assert seen.shape == (500, 2, 2)  # a small table chooses by cross-validation, by all rows
    np.testing.assert_array_equal(groups, rows.group)
    fitted = fit(rows, 0, **given)
    np.testing.assert_allclose(new.sum(1), fitted.predict_proba(test.table), atol=1e-5)


def test_a_grid_is_thinned_to_sixteen_points_on_the_front(make_part):
    held, rng = make_part(400, 1), np.random.default_rng(0)
    found = []
    for share in np.linspace(0, 0.5, 40):
        decided = np.where(rng.random(400) < share, held.group == 0, held.y == 1)
        found.append(fairlearn_.Candidate(decided, decided))
    kept = fairlearn_.thinned(found, "dp", held)
    values = np.array([fairlearn_.values_of("dp", one.held, held) for one in kept])
    assert 1 < len(kept) <= 16
    assert (np.diff(values[:, 0]) >= 0).all()


def test_many_rows_of_a_program_are_drawn(monkeypatch, make_part):
    monkeypatch.setattr(linearpost_, "MOST_ROWS", 100)
    sizes = []

    class Spy:
        def decide(self, q):
            return np.zeros(len(q))

    def solve(q, _bounds):
        sizes.append(len(q))
        return Spy()

    monkeypatch.setattr(linearpost_, "fair_rule", solve)
    rows, test = make_part(300, 0), make_part(50, 1)
    q = np.full((300, 2, 2), 0.25)
    dict(linearpost_.linear_post(lambda *_: (q, q[:50], rows.group))(rows, test, 0))
    assert set(sizes) == {100}
