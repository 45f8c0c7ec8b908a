"""A plan is kept: so many more rows settle the verdict about as often as promised."""

import numpy as np
import pytest
from tests.auditing.rows import audit, counts, rows

from apfex.metrics import gap_interval, lower_of_pairs


def settled(sizes, successes, plan, truth, tolerance, n=150):
    """Share of futures with the planned rows in which the verdict is the expected one."""
    more = np.zeros(len(sizes), dtype=int)
    for row in plan.to_dict("records"):
        more["abcdefgh".index(row["group"][-1])] = row["more_rows"]
    generator = np.random.default_rng(1)
    verdicts = []
    for _ in range(n):
        x = np.array(successes) + generator.binomial(more, truth)
        found = gap_interval(x, np.array(sizes) + more, n_draws=799)
        within = "within tolerance" if found.upper < tolerance else "inconclusive"
        verdicts.append("violation" if found.lower > tolerance else within)
    return np.mean([verdict == plan["expected"][0] for verdict in verdicts])


@pytest.mark.parametrize(
    ("sizes", "successes", "tolerance"),
    [
        ([200, 200], [80, 100], 0.02),  # a violation, as it seems
        ([150, 900, 60], [60, 540, 30], 0.15),
        ([2000, 40], [20, 6], 0.05),  # rare outcomes, and the lower end is that of exact limits
        ([300, 300], [150, 153], 0.1),  # within, as it seems
        ([100, 400, 200, 80], [30, 120, 60, 24], 0.08),
    ],
)
def test_planned_rows_settle_the_verdict_as_often_as_promised(sizes, successes, tolerance):
    decided, table = counts(sizes, successes)
    found = audit(None, decided, sensitive_features=table, criteria="dp", tolerance=tolerance)
    assert found.gaps["verdict"].tolist() == ["inconclusive"]
    plan = found.plan()
    assert np.isfinite(plan["more_rows"]).all()
    truth = found.groups["shrunken"].to_numpy()
    share = settled(sizes, successes, plan, truth, tolerance)
    assert 0.68 <= share <= 0.93
    fewer = plan.assign(more_rows=(plan["more_rows"] * 0.6).astype(int))
    assert settled(sizes, successes, fewer, truth, tolerance) < share


def test_more_power_needs_more_rows():
    decided, table = counts([200, 200], [80, 100])
    found = audit(None, decided, sensitive_features=table, criteria="dp")
    assert found.plan(0.02, power=0.5)["more_rows"].sum() < (
        found.plan(0.02, power=0.9)["more_rows"].sum()
    )


def test_what_is_settled_needs_nothing():
    decided, table = counts([500, 500], [100, 200])
    found = audit(None, decided, sensitive_features=table, criteria="dp")
    plan = found.plan()
    assert len(plan) == 0
    assert plan.columns.tolist() == ["criterion", "by", "group", "count", "more_rows", "expected"]
    assert len(found.plan(0.2)) > 0  # another bound, another question


def test_no_number_settles_a_gap_at_the_bound():
    decided, table = counts([1000, 1000], [500, 500])
    plan = audit(None, decided, sensitive_features=table, criteria="dp").plan(0.0)
    assert np.isinf(plan["more_rows"]).all()


def test_the_noise_of_many_small_groups_is_not_taken_for_a_gap():
    generator = np.random.default_rng(0)
    decided, table = counts([30] * 20, generator.binomial(30, 0.5, 20))
    found = audit(None, decided, sensitive_features=table, criteria="dp", tolerance=0.15)
    assert found.gaps["gap"][0] > 0.3
    assert found.plan()["expected"].unique().tolist() == ["within tolerance"]


def test_rows_are_those_of_the_group_not_of_the_label():
    y, decided, table, _ = rows(1500, seed=3)
    y = (np.arange(1500) % 5 == 0).astype(int)
    found = audit(y, decided, sensitive_features=table["sex"], criteria=("dp", "tpr"))
    more = found.plan(0.15).groupby("criterion")["more_rows"].sum()
    assert "dp" not in more  # settled
    denominators = found.groups[found.groups["of"] == "tpr"]["denominator"].sum()
    assert more["tpr"] > 2 * denominators


def test_what_is_not_estimable_needs_two_groups():
    decided, table = counts([50, 4, 2], [20, 2, 1])
    plan = audit(None, decided, sensitive_features=table, criteria="dp").plan()
    assert plan[["group", "more_rows", "expected"]].to_numpy().tolist() == [["g=b", 6, "estimable"]]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_several_rates_and_classes_are_planned_together(n_classes):
    y, decided, table, weight = rows(500, n_classes)
    found = audit(
        y,
        decided,
        sensitive_features=table,
        criteria="equalized_odds",
        sample_weight=weight,
    )
    plan = found.plan(0.1)
    assert set(plan["by"]) == set(found.gaps["by"])
    assert (plan["more_rows"] > 0).all()


def test_bounds_of_a_plan_are_corrected_for_all_rates_that_are_tested(monkeypatch):
    y, decided, table, _ = rows(400)
    found = audit(y, decided, sensitive_features=table["sex"], criteria="equalized_odds")
    seen = set()

    def note(high, low, *, alpha, n_groups, critical):
        seen.add((round(alpha, 12), n_groups))
        return lower_of_pairs(high, low, alpha=alpha, n_groups=n_groups, critical=critical)

    monkeypatch.setattr("apfex.auditing._plan.lower_of_pairs", note)
    assert set(found.plan(0.0)["expected"]) == {"violation"}
    assert seen == {(0.025, found.gaps.shape[0] + 1)}


def test_bad_bounds_are_named():
    decided, table = counts([20, 20], [5, 10])
    found = audit(None, decided, sensitive_features=table, criteria="dp")
    with pytest.raises(ValueError, match=r"max_gap must be at least 0 and below 1, got 1\.5"):
        found.plan(1.5)
    with pytest.raises(ValueError, match="power must lie between 0 and 1, got 1"):
        found.plan(power=1)
