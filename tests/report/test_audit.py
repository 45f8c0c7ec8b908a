"""What the page of an audit carries is what the audit says."""

import numpy as np
import pytest

from apfex import audit


def test_an_audit_of_a_classifier_with_the_other_label_favorable(front, audit_data):
    """All its rates are of the label 0, which is what a person would want."""
    described = audit_data(front.measured.audits[1])
    rates = described["points"][0]["rates"]
    assert [rate["key"] for rate in described["rates"]] == ["favored", "tpr"]
    expected = front.described["points"][1]["rates"]
    for key in ("favored", "tpr"):
        for by, column in expected[key]["groupings"].items():
            for name, values in column.items():
                assert rates[key]["groupings"][by][name] == pytest.approx(values, rel=1e-4)
        own, wanted = (part[key]["overall"]["rate"] for part in (rates, expected))
        assert own == pytest.approx(wanted, rel=1e-4)


def test_an_audit_without_selection_rates_has_its_other_rates(audit_data):
    y, decided, sex = [0, 1] * 60, [1, 1, 0, 1] * 30, ["F", "F", "M"] * 40
    result = audit(y, decided, sensitive_features={"sex": sex}, criteria="tpr")
    described = audit_data(result)
    assert [rate["key"] for rate in described["rates"]] == ["tpr"]
    assert [group["name"] for group in described["groupings"][0]["groups"]] == ["sex=F", "sex=M"]


def test_several_classes_have_a_rate_each(audit_data):
    draw = np.random.default_rng(0)
    y, decided = np.array(["low", "mid", "top"])[draw.integers(0, 3, (2, 300))]
    sex = draw.integers(0, 2, 300)
    result = audit(y, decided, sensitive_features={"sex": sex}, favorable_label="mid")
    described = audit_data(result)
    titles = {rate["key"]: rate["title"] for rate in described["rates"]}
    assert list(titles) == ["favored", "dp:0", "dp:2", "tpr:0", "tpr:1", "tpr:2"]
    assert titles["tpr:1"] == "True positive rate: mid"
    groups = result.groups
    own = groups[(groups["of"] == "dp") & (groups["class"] == "mid")]["rate"].tolist()
    rates = described["points"][0]["rates"]["favored"]["groupings"]["sex"]["rate"]
    assert rates == pytest.approx(own, rel=1e-4)


def test_the_plan_and_thresholds_of_an_audit_are_told(audit_data):
    draw = np.random.default_rng(0)
    score, sex = draw.random(120), draw.integers(0, 2, 120)
    y = (draw.random(120) < score).astype(int)
    result = audit(y, (score > 0.5).astype(int), sensitive_features={"sex": sex}, y_score=score)
    described = audit_data(result)
    plan = result.plan()
    for told in described["plan"]:
        own = plan[(plan["criterion"] == told["criterion"]) & (plan["by"] == told["by"])]
        total = own["more_rows"].sum()
        assert told["more_rows"] == (pytest.approx(total) if np.isfinite(total) else None)
    open_gaps = result.gaps["verdict"].isin(["inconclusive", "not estimable"]).sum()
    assert len(described["plan"]) == open_gaps > 0
    assert len(described["thresholds"]) == len(result.gaps)
    assert result.thresholds is not None
    first = described["thresholds"][0]["gap"]
    assert first == pytest.approx(result.thresholds["gap"].head(len(first)).tolist(), rel=1e-4)


@pytest.mark.parametrize("n", [400, 24])
def test_strata_that_exceed_the_limit_are_no_clean_page(audit_data, n):
    """All rows are within the limit, the strata are not: or, where they are few, may be not."""
    sex = np.array(["F", "M"] * 2000 + ["F", "M"] * n)
    department = np.repeat(["z", "x", "y"], [4000, n, n])
    apart = np.where(department == "z", np.arange(len(sex)) // 2 % 2 == 0, sex == "F")
    decided = (apart == (department != "y")).astype(int)
    result = audit(
        None,
        decided,
        sensitive_features={"sex": sex},
        control_features={"department": department},
        criteria="dp",
        tolerance=0.3 if n == 400 else 0.9,
    )
    assert result.gaps["verdict"].tolist() == ["within tolerance"]
    point = audit_data(result)["points"][0]
    within = next(part for part in point["summary"]["parts"] if part["title"] == "Within strata")
    (caveat,) = [one for one in point["caveats"] if "department" in one["text"]]
    assert within["text"][0] in caveat["text"]
    if n == 400:
        assert point["verdict"] == "violation"
        assert (caveat["code"], caveat["level"]) == ("violation_within", "warning")
        assert "department=x is 1.000" in caveat["text"]
    else:
        assert point["verdict"] == "within tolerance"
        assert caveat["level"] == "note"
