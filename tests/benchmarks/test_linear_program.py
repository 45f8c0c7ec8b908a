# pyright: reportMissingImports=false
import itertools
from typing import Any

import cvxpy
import numpy as np
import pytest
from front.judge import Judge
from rivals.linear_program import fair_rule
from rivals.linearpost_ import given_group

COLUMNS = {"dp": 1, "tpr": 2}


def some_q(n, k, seed):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.full(2 * k, 0.7), n).reshape(n, k, 2)
    leaning = rng.normal(size=n)  # the first group is favoured, and known by what favours it
    q[:, 0, 1] *= np.exp(leaning)
    q[:, -1, 0] *= np.exp(-leaning)
    return q / q.sum((1, 2), keepdims=True)


def gaps_of(q, shares):
    """Error, dp gap, tpr gap and fpr gap of expected decisions."""
    masses = {"dp": q.sum(2), "tpr": q[:, :, 1], "fpr": q[:, :, 0]}
    rates = {name: shares @ mass / mass.sum(0) for name, mass in masses.items()}
    error = ((1 - shares) * q[:, :, 1].sum(1) + shares * q[:, :, 0].sum(1)).mean()
    return {"error": error, **{name: np.ptp(rate) for name, rate in rates.items()}}


@pytest.mark.parametrize("bounds", [{"dp": 0.05}, {"tpr": 0.1}, {"tpr": 0.03, "fpr": 0.03}])
def test_a_general_program_finds_the_same_error(bounds):
    q = some_q(60, 3, 0)
    shares = cvxpy.Variable(60)
    masses = {"dp": q.sum(2), "tpr": q[:, :, 1], "fpr": q[:, :, 0]}
    limits: list[Any] = [shares >= 0, shares <= 1]
    for name, bound in bounds.items():
        rates = shares @ (masses[name] / masses[name].sum(0))
        limits += [rates[a] - rates[b] <= bound for a in range(3) for b in range(3) if a != b]
    wrong = cvxpy.sum((1 - shares) @ q[:, :, 1]) + cvxpy.sum(shares @ q[:, :, 0])
    general = cvxpy.Problem(cvxpy.Minimize(wrong / 60), limits).solve(solver="CLARABEL")
    found = fair_rule(q, bounds)
    assert found.error == pytest.approx(general, abs=1e-6)
    told = gaps_of(q, found.shares)
    assert told["error"] == pytest.approx(found.error)
    assert all(told[name] <= bound + 1e-9 for name, bound in bounds.items())


@pytest.mark.parametrize("rate", ["dp", "tpr"])
def test_no_decisions_of_a_tiny_table_are_better(rate):
    # Ten kinds of people: all 1,024 deterministic decisions, by the judge that scores methods.
    q = some_q(10, 2, 3)
    all_decisions = np.array(list(itertools.product((0, 1), repeat=10)))
    cells = np.repeat(q, 100, axis=0)  # enough rows for every group to count
    values = Judge(cells).values(np.repeat(all_decisions, 100, axis=1))
    for bound in (0.02, 0.1, 0.3):
        within = values[:, COLUMNS[rate]] <= bound + 1e-12
        best = values[within, 0].min()
        assert fair_rule(q, {rate: bound}).error <= best + 1e-9
    free = fair_rule(q, {rate: 1.0})
    assert free.error == pytest.approx(values[:, 0].min())
    np.testing.assert_array_equal(free.decide(q), q[:, :, 1].sum(1) > 0.5)


def test_the_rule_decides_as_the_program_but_on_a_few_rows():
    q, k = some_q(3000, 4, 1), 4
    for bounds in ({"dp": 0.02}, {"tpr": 0.05, "fpr": 0.05}):
        found = fair_rule(q, bounds)
        differ = np.abs(found.decide(q) - found.shares) > 1e-6
        assert differ.sum() <= 2 * k  # a basic solution: at most one for each bound
        told = gaps_of(q, found.decide(q).astype(float))
        assert all(told[name] <= bound + 0.005 for name, bound in bounds.items())
        assert gaps_of(q, (q[:, :, 1].sum(1) > 0.5).astype(float))["dp"] > 0.1


def test_the_known_group_is_all_that_is_left():
    q = given_group(some_q(5, 3, 0), np.array([0, 1, 2, 0, 1]))
    np.testing.assert_allclose(q.sum((1, 2)), 1)
    assert (q.sum(2).argmax(1) == [0, 1, 2, 0, 1]).all()
    assert ((q.sum(2) > 0).sum(1) == 1).all()
