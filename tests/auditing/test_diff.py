"""Changes between two audits, with intervals that cover."""

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.auditing.rows import audit, counts, rows

from apfex.metrics import gap_interval


def of(sizes, successes, **options):
    decided, table = counts(sizes, successes)
    return audit(None, decided, sensitive_features=table, criteria="dp", **options)


def newcombe(x, n, y, m):
    """Method 10 of Newcombe (1998) from Wilson's limits at 95%, of ``x / n - y / m``."""
    (low, high), (low_before, high_before) = (
        binomtest(*one).proportion_ci(method="wilson") for one in ((x, n), (y, m))
    )
    change = x / n - y / m
    return (
        change - np.hypot(x / n - low, high_before - y / m),
        change + np.hypot(high - x / n, y / m - low_before),
    )


def test_changes_are_now_minus_earlier():
    change = of([500, 500], [100, 300]).diff(of([400, 400], [200, 210]))
    row = change.gaps.iloc[0]
    assert row["change"] == pytest.approx(0.4 - 0.025)
    assert row["earlier"] == pytest.approx(0.025)
    assert row["verdict"] == "larger"
    assert row["lower"] <= row["change"] <= row["upper"]
    assert change.groups["change"].tolist() == pytest.approx([-0.3, 0.6 - 0.525])
    assert change.groups["verdict"].tolist() == ["smaller", "larger"]
    ends = [newcombe(100, 500, 200, 400), newcombe(300, 500, 210, 400)]
    assert change.groups[["lower", "upper"]].to_numpy() == pytest.approx(np.array(ends))
    assert "larger" in str(change)


def test_an_audit_does_not_differ_from_itself():
    y, decided, table, _ = rows()
    found = audit(y, decided, sensitive_features=table)
    change = found.diff(found)
    assert (change.gaps["change"] == 0).all()
    assert (change.gaps["verdict"] == "no clear change").all()
    assert change.groups["group"].tolist() == found.groups["group"].tolist()
    assert (change.groups["change"] == 0).all()


def test_groups_that_come_and_go_are_told():
    change = of([50, 50, 50], [10, 20, 30]).diff(of([50, 50], [10, 20]))
    assert change.groups["verdict"].tolist() == ["no clear change", "no clear change", "new"]
    assert change.groups["change"].isna().tolist() == [False, False, True]
    back = of([50, 50], [10, 20]).diff(of([50, 50, 50], [10, 20, 30]))
    assert back.groups["verdict"].tolist() == ["no clear change", "no clear change", "gone"]
    said = "Not the same groups, on which gaps depend: g=c only"
    assert f"{said} now" in str(change)
    assert f"{said} earlier" in str(back)
    assert "Not the same groups" not in str(of([50, 50], [10, 20]).diff(of([50, 50], [9, 9])))


def test_that_many_rates_change_by_chance_is_told():
    sizes, few = [50] * 12, [50] * 4
    many = of(sizes, [20] * 12).diff(of(sizes, [22] * 12))
    assert "among 12 rates some may seem to change by chance" in str(many)
    assert not of(few, [20] * 4).diff(of(few, [22] * 4)).notes


def test_gaps_that_come_and_go_are_told():
    y, decided, table, _ = rows(400)
    now = audit(y, decided, sensitive_features=table, criteria=("dp", "tpr"))
    earlier = audit(y, decided, sensitive_features=table[["sex"]], criteria=("fpr", "dp"))
    assert "Not the same groups" not in str(now.diff(earlier))
    change = now.diff(earlier).gaps
    assert change.set_index(["criterion", "by"])["verdict"].to_dict() == {
        ("dp", "sex"): "no clear change",
        ("dp", "race"): "new",
        ("dp", "sex x race"): "new",
        ("tpr", "sex"): "new",
        ("tpr", "race"): "new",
        ("tpr", "sex x race"): "new",
        ("fpr", "sex"): "gone",
    }
    alone = change[change["verdict"] != "no clear change"]
    assert alone[["change", "lower", "upper"]].isna().all(axis=None)
    assert alone["now"].tolist()[:-1] == now.gaps["gap"].tolist()[1:]
    assert alone["earlier"].tolist()[-1] == earlier.gaps["gap"].tolist()[0]
    assert "gone" in str(now.diff(earlier))


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_ends_of_a_change_come_from_two_stricter_intervals(confidence):
    now, earlier = ((120, 300), (40, 160)), ((200, 90), (90, 40))
    row = of(*now, confidence=confidence).diff(of(*earlier)).gaps.iloc[0]
    a, b = (gap_interval(x, n, confidence=(1 + confidence) / 2) for n, x in (now, earlier))
    assert a.lower > 0
    assert row["lower"] == pytest.approx(a.lower - b.upper)
    assert row["upper"] == pytest.approx(a.upper - b.lower)


def test_names_are_only_text():
    def named(successes):
        decided, table = counts([200, 200], successes)
        names = {"a": "\x1b[31m", "b": "b"}
        table = {"g": [names[level] for level in table["g"]]}
        return audit(None, decided, sensitive_features=table, criteria="dp")

    text = str(named([100, 20]).diff(named([20, 20])))
    assert "\\x1b[31m" in text
    assert "\x1b" not in text


def test_the_interval_of_a_change_covers():
    generator = np.random.default_rng(0)
    sizes = [120, 300]
    hits = 0
    for _ in range(30):
        now, earlier = generator.binomial(sizes, [0.3, 0.5]), generator.binomial(sizes, [0.4, 0.45])
        row = of(sizes, now).diff(of(sizes, earlier)).gaps.iloc[0]
        hits += row["lower"] <= 0.2 - 0.05 <= row["upper"]
    assert hits >= 28


def test_what_does_not_compare_is_refused():
    here = of([50, 50], [10, 20])
    decided, table = counts([50, 50], [10, 20])
    other = audit(None, decided, sensitive_features={"h": table["g"]}, criteria="dp")
    with pytest.raises(ValueError, match=r"earlier must share a criterion and an attribute"):
        here.diff(other)
    with pytest.raises(TypeError, match="earlier must be an Audit, got DataFrame"):
        here.diff(here.gaps)
    with pytest.raises(ValueError, match="earlier must be an audit of the same labels"):
        here.diff(of([50, 50], [10, 20], favorable_label=0))


def test_not_estimable_is_no_change():
    change = of([50, 5], [10, 2]).diff(of([50, 50], [10, 20]))
    assert change.gaps["verdict"].tolist() == ["not estimable"]
