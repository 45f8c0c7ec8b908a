"""What a point gains over the constant decision, by decisions that can be counted by hand."""

import numpy as np
import pytest

from apfex import audit
from apfex.report._constant import Constant

ROWS = 400
SEX = {"sex": ["F", "M"] * (ROWS // 2)}
Y = (np.arange(ROWS) < 160).astype(int)  # 60% have the label 0, which is favorable


def wrong_for(share):
    """Decisions that are wrong for this share of the rows, some of either label."""
    place = np.arange(ROWS)
    return np.where(place % 100 < 100 * share, 1 - Y, Y)


def codes(point):
    return [one["code"] for one in point["caveats"]]


def test_every_point_has_its_gain_and_the_constant_its_row(decide):
    described = decide([wrong_for(0.1), wrong_for(0.3)], Y, SEX, words={0: "yes", 1: "no"})
    constant = described["constant"]
    assert (constant["label"], constant["share_favored"]) == ("yes", 1)
    assert constant["error"] == pytest.approx(0.4)
    assert constant["balanced_error"] == 0.5
    assert {gap["gap"] for gap in constant["gaps"]} == {0}
    first, second = described["points"]
    assert (first["gain"], first["gain_share"]) == (pytest.approx(0.3), pytest.approx(1))
    assert (second["gain"], second["gain_share"]) == (pytest.approx(0.1), pytest.approx(1 / 3))


def test_with_a_fixed_rate_points_are_compared_with_choosing_at_random():
    decided = audit(Y, wrong_for(0.1), sensitive_features=SEX, favorable_label=1)
    found = Constant.of(decided, ["no", "yes"], "yes", selection_rate=0.25)
    assert found is not None
    assert found.error == pytest.approx(0.25 * 0.6 + 0.75 * 0.4)
    assert (found.text, found.share_favored) == ("25% chosen at random", 0.25)


def test_by_a_cost_the_constant_is_the_label_that_costs_least():
    decided = audit(Y, wrong_for(0.1), sensitive_features=SEX, favorable_label=1)
    found = Constant.of(decided, ["no", "yes"], "yes", "cost", 0.6, best="yes")
    assert found is not None
    assert (found.label, found.share_favored, found.ranked) == ("yes", 1.0, 0.6)
    assert found.error == pytest.approx(0.6)


@pytest.mark.parametrize(("wrong", "flagged"), [(0.24, False), (0.26, True), (0.39, True)])
def test_a_point_that_closes_less_than_half_of_the_way_is_flagged(decide, wrong, flagged):
    best, other = decide([wrong_for(0.1), wrong_for(wrong)], Y, SEX)["points"]
    assert not best["near_constant"]
    assert "near_constant" not in codes(best)
    assert other["near_constant"] == flagged
    told = [one for one in other["caveats"] if one["code"] == "near_constant"]
    assert len(told) == flagged
    assert all(one["level"] == "warning" for one in told)
    if flagged:
        share = (0.4 - wrong) / 0.3
        assert told[0]["data"]["share"] == pytest.approx(share)
        assert f"closes {100 * share:.0f}% of the way" in told[0]["text"]


def test_a_front_without_a_better_model_than_the_constant_says_so_first(decide):
    described = decide([wrong_for(0.4), wrong_for(0.5)], Y, SEX)
    assert described["trivial"]
    for point in described["points"]:
        assert codes(point)[0] == "trivial_front"
        assert "no_better" in codes(point)
        assert point["summary"]["headline"].startswith("No usable model was found")
        assert "--scoring balanced_accuracy" in point["summary"]["headline"]


def test_few_rows_do_not_say_that_a_model_is_constant(decide):
    """Of 40 rows a model that was good on the validation rows may be wrong for half, by chance."""
    few = np.arange(0, ROWS, 10)
    sex = {"sex": [SEX["sex"][row] for row in few]}
    described = decide([(1 - Y)[few], wrong_for(0.4)[few]], Y[few], sex)
    assert not described["trivial"]
    for point in described["points"]:
        assert not point["near_constant"]
        assert not {"trivial_front", "near_constant"} & {*codes(point)}


def test_an_audit_is_compared_with_the_constant_decision(audit_data):
    result = audit(Y, wrong_for(0.5), sensitive_features=SEX, favorable_label=0)
    described = audit_data(result)
    point = described["points"][0]
    assert described["constant"]["error"] == pytest.approx(0.4)
    assert point["error"] == pytest.approx(0.5)
    assert "no_better" in codes(point)
    without = audit_data(audit(None, wrong_for(0.5), sensitive_features=SEX, criteria="dp"))
    assert without["constant"] is None
    assert without["points"][0]["gain"] is None
