from typing import Any

import numpy as np
import pytest

from apfex.metrics import (
    NotEstimableWarning,
    dp_gap,
    gap_inference,
    gap_interval,
    group_rates,
    tpr_gap,
)


def people(n=600, n_classes=2, seed=0):
    generator = np.random.default_rng(seed)
    table = {"sex": generator.choice(["F", "M"], n), "race": generator.choice(["A", "B"], n)}
    y, decided = generator.integers(0, n_classes, (2, n))
    return y, decided, table


@pytest.mark.parametrize("rate", ["dp", "tpr", "ppv", "accuracy"])
def test_inference_is_that_of_the_counts(rate):
    y, decided, table = people()
    call: dict[str, Any] = {"rate": rate, "sensitive_features": table}
    frame = group_rates(y, decided, **call)
    expected = gap_interval(frame["numerator"], frame["denominator"])
    assert gap_inference(y, decided, **call) == expected
    by_attribute = gap_inference(y, decided, grouping="attributes", **call)
    frame = group_rates(y, decided, grouping="attributes", **call)
    for attribute in ("sex", "race"):
        part = frame[frame["attribute"] == attribute]
        assert by_attribute[attribute] == gap_interval(part["numerator"], part["denominator"])


def test_settings_reach_the_interval():
    y, decided, table = people()
    call: dict[str, Any] = {"confidence": 0.9, "n_draws": 499, "random_state": 4}
    found = gap_inference(y, decided, rate="dp", sensitive_features=table, **call)
    frame = group_rates(y, decided, rate="dp", sensitive_features=table)
    assert found == gap_interval(frame["numerator"], frame["denominator"], **call)


def test_weights_make_it_approximate_and_wider():
    y, decided, table = people()
    plain = gap_inference(y, decided, rate="tpr", sensitive_features=table)
    equal = gap_inference(
        y, decided, rate="tpr", sensitive_features=table, sample_weight=np.full(600, 3.0)
    )
    assert equal.gap == pytest.approx(plain.gap)
    assert (equal.lower, equal.upper, equal.approximate) == (plain.lower, plain.upper, False)
    weight = np.random.default_rng(1).exponential(size=600)
    call: dict[str, Any] = {"sensitive_features": table, "sample_weight": weight}
    weighted = gap_inference(y, decided, rate="tpr", **call)
    assert weighted.approximate
    assert weighted.gap == tpr_gap(y, decided, **call)
    # Exponential weights halve the effective sizes.
    ratio = weighted.noise_floor / plain.noise_floor
    assert ratio == pytest.approx(np.sqrt(2), rel=0.15)


def test_weighted_coverage_at_parity_is_near_its_level():
    generator = np.random.default_rng(2)
    table = np.repeat(list("ab"), 200)
    covered = 0
    for _ in range(200):
        decided = generator.random(400) < 0.4
        weight = generator.exponential(size=400)
        found = gap_inference(
            None,
            decided,
            rate="dp",
            sensitive_features=table,
            sample_weight=weight,
            n_draws=399,
        )
        covered += found.lower == 0
    assert 0.9 <= covered / 200 <= 1.0


def test_small_groups_are_left_out_and_named():
    decided, sex = [1, 0] * 10 + [1], ["a"] * 10 + ["b"] * 10 + ["c"]
    with pytest.warns(NotEstimableWarning, match="'attribute0=c'") as seen:
        found = gap_inference(None, decided, rate="dp", sensitive_features=sex, min_count=5)
    assert seen[0].filename == __file__
    assert found == gap_interval([5, 5], [10, 10])
    with pytest.warns(NotEstimableWarning, match="NaN"):
        found = gap_inference(None, decided, rate="dp", sensitive_features=sex, min_count=50)
    assert np.isnan(found.gap)
    assert found.n_groups == 0


def test_multiclass_lower_end_and_p_value_are_corrected_for_the_classes():
    y, decided, table = people(n_classes=4, seed=3)
    call: dict[str, Any] = {"sensitive_features": table}
    found = gap_inference(y, decided, rate="dp", **call)
    assert found.gap == pytest.approx(dp_gap(y, decided, **call))
    frame = group_rates(y, decided, rate="dp", **call)
    alone = [
        gap_interval(part["numerator"], part["denominator"], confidence=0.9875)
        for _, part in frame.groupby("class")
    ]
    assert found.p_value == pytest.approx(min(1, 4 * min(one.p_value for one in alone)))
    assert found.lower == max(one.lower for one in alone)
    plain = [gap_interval(p["numerator"], p["denominator"]) for _, p in frame.groupby("class")]
    assert found.upper == max(one.upper for one in plain)


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_multiclass_parity_is_rejected_where_the_lower_end_is_positive(shift):
    rejected = 0
    for seed in range(60):
        _, decided, table = people(n=200, n_classes=3, seed=seed)
        generator = np.random.default_rng(seed)
        moved = (table["sex"] == "F") & (generator.random(200) < shift)
        decided = np.where(moved, 0, decided)
        found = gap_inference(None, decided, rate="dp", sensitive_features=table, n_draws=399)
        assert found.lower == 0 or found.p_value <= 0.05 + 1e-12
        rejected += found.lower > 0
    assert rejected <= 9 if shift == 0 else rejected >= 50


def test_bad_settings_are_named():
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
        gap_inference(None, [0, 1], rate="dp", sensitive_features=["a", "b"], confidence=95)
    with pytest.raises(ValueError, match="rate must be one of"):
        gap_inference(None, [0, 1], rate="ddp", sensitive_features=["a", "b"])  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(ValueError, match="y_true must be given for the rate 'ppv'"):
        gap_inference(None, [0, 1], rate="ppv", sensitive_features=["a", "b"])
