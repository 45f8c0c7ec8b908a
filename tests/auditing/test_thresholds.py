"""Rates and gaps over thresholds are those of the decisions that they would make."""

import numpy as np
import pytest
from tests.auditing.rows import audit, rows

CRITERIA = ("dp", "tpr", "ppv", "accuracy", "equalized_odds")


@pytest.mark.parametrize("weighted", [False, True])
def test_a_threshold_is_an_audit_of_its_decisions(weighted):
    y, decided, table, weight = rows(400)
    score = np.random.default_rng(1).integers(0, 12, 400)
    call = {
        "sensitive_features": table,
        "criteria": CRITERIA,
        "sample_weight": weight if weighted else None,
        "min_count": 5,
    }
    found = audit(y, decided, y_score=score, **call)
    thresholds, all_rates = found.thresholds, found.rates_by_threshold()
    assert thresholds is not None
    assert thresholds["threshold"].unique().tolist() == list(range(12))
    for threshold in (0, 5, 11):
        there = audit(y, (score >= threshold).astype(int), **call)
        part = thresholds[thresholds["threshold"] == threshold]
        assert part[["criterion", "by"]].to_numpy().tolist() == (
            there.gaps[["criterion", "by"]].to_numpy().tolist()
        )
        assert part["gap"].to_numpy() == pytest.approx(there.gaps["gap"].to_numpy(), nan_ok=True)
        known = part[part["gap"].notna()]
        spread = known["highest_rate"] - known["lowest_rate"]
        assert spread.to_numpy() == pytest.approx(known["gap"].to_numpy())
        rates = all_rates[all_rates["threshold"] == threshold]
        assert rates["group"].tolist() == there.groups["group"].tolist()
        assert rates["rate"].to_numpy() == pytest.approx(
            there.groups["rate"].to_numpy(), nan_ok=True
        )


def test_many_scores_become_quantiles():
    y, decided, table, _ = rows(5000)
    score = np.random.default_rng(2).normal(size=5000)
    found = audit(y, decided, sensitive_features=table, y_score=score)
    assert found.thresholds is not None
    thresholds = found.thresholds["threshold"].unique()
    assert len(thresholds) == 101
    assert (thresholds[0], thresholds[-1]) == (score.min(), score.max())
    shares = [(score >= threshold).mean() for threshold in thresholds]
    assert np.diff(shares) == pytest.approx(-0.01, abs=3e-4)


def test_the_ends_of_a_gap_are_named():
    score = np.r_[np.linspace(0, 0.5, 50), np.linspace(0.4, 1, 50)]
    table = {"g": ["low"] * 50 + ["high"] * 50}
    found = audit(None, (score > 0.5).astype(int), sensitive_features=table, y_score=score)
    assert found.thresholds is not None
    inside = found.thresholds[found.thresholds["gap"] > 0]
    assert (inside["lowest"] == "g=low").all()
    assert (inside["highest"] == "g=high").all()


def test_there_are_none_without_scores():
    y, decided, table, _ = rows()
    found = audit(y, decided, sensitive_features=table)
    assert found.thresholds is None
    with pytest.raises(ValueError, match="y_score must be given to audit"):
        found.rates_by_threshold()
