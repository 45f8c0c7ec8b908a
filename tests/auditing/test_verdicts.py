"""Gaps and their verdicts: the inference of metrics, on every grouping."""

import math
import re
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.auditing.rows import audit, counts, rows

from apfex.auditing import VERDICTS, holm
from apfex.metrics import equalized_odds_gap, gap_inference, gap_interval

COLUMNS = [
    "criterion",
    "by",
    "gap",
    "lower",
    "upper",
    "noise_floor",
    "p_value",
    "p_adjusted",
    "verdict",
    "lowest",
    "lowest_rate",
    "highest",
    "highest_rate",
    "groups_compared",
    "groups",
    "rests_on",
]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_gaps_are_those_of_metrics(n_classes, weighted):
    y, decided, table, weight = rows(500, n_classes)
    call = {"sensitive_features": table, "sample_weight": weight if weighted else None}
    found = audit(y, decided, criteria=("tpr", "accuracy"), **call).gaps
    assert found.columns.tolist() == COLUMNS
    for of in ("tpr", "accuracy"):
        expected = gap_inference(y, decided, rate=of, grouping="attributes", **call)
        expected = {**expected, "sex x race": gap_inference(y, decided, rate=of, **call)}
        for by, interval in expected.items():
            row = found[(found["criterion"] == of) & (found["by"] == by)].iloc[0]
            for name in ("gap", "lower", "upper", "noise_floor", "p_value"):
                assert row[name] == pytest.approx(getattr(interval, name)), (of, by, name)


def test_fairlearns_words_are_taken():
    y, decided, table, _ = rows()
    words = ("demographic_parity", "equal_opportunity", "equalized_odds")
    found = audit(y, decided, sensitive_features=table, criteria=words).gaps
    assert found["criterion"].unique().tolist() == ["dp", "tpr", "equalized_odds"]
    short = audit(y, decided, sensitive_features=table, criteria=("dp", "tpr")).gaps
    assert found["gap"][:6].tolist() == short["gap"].tolist()


def test_equalized_odds_is_the_larger_gap_corrected_for_two():
    y, decided, table, _ = rows()
    decided = np.where((table["sex"] == "F") & (y == 0), 1, decided)
    found = audit(y, decided, sensitive_features=table, criteria="equalized_odds", min_count=1)
    row = found.gaps.iloc[-1]
    assert row["gap"] == pytest.approx(equalized_odds_gap(y, decided, sensitive_features=table))
    alone = [gap_inference(y, decided, rate=of, sensitive_features=table) for of in ("tpr", "fpr")]
    strict = [
        gap_inference(y, decided, rate=of, sensitive_features=table, confidence=0.975)
        for of in ("tpr", "fpr")
    ]
    assert row["lower"] == max(one.lower for one in strict)
    assert row["upper"] == max(one.upper for one in alone)
    assert row["p_value"] == min(1, 2 * min(one.p_value for one in alone))
    assert found.groups["of"].unique().tolist() == ["tpr", "fpr"]


def test_equalized_odds_needs_both_rates():
    y, decided, table, _ = rows()
    y = np.where(table["sex"] == "F", 1, y)  # no negatives among F
    gaps = audit(y, decided, sensitive_features=table, criteria=("tpr", "equalized_odds")).gaps
    verdicts = gaps[gaps["by"] == "sex"].set_index("criterion")["verdict"]
    assert verdicts["equalized_odds"] == "not estimable"
    assert verdicts["tpr"] != "not estimable"


@given(st.lists(st.floats(0, 1) | st.just(math.nan), max_size=8))
def test_holm_rejects_what_stepping_down_rejects(p_values):
    adjusted = holm(p_values)
    known = sorted(p for p in p_values if p == p)
    for level in (0.01, 0.05, 0.3):
        rejected = 0
        while rejected < len(known) and known[rejected] * (len(known) - rejected) <= level:
            rejected += 1
        assert sum(p <= level for p in adjusted) == rejected
    assert [math.isnan(p) for p in adjusted] == [math.isnan(p) for p in p_values]


def test_p_values_are_adjusted_over_all_rows():
    y, decided, table, _ = rows()
    gaps = audit(y, decided, sensitive_features=table, criteria=("dp", "tpr", "fpr")).gaps
    assert gaps["p_adjusted"].tolist() == holm(gaps["p_value"].tolist())
    least = gaps["p_value"].idxmin()
    assert gaps["p_adjusted"][least] == min(1, 9 * gaps["p_value"][least])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 400), st.integers(0, 40), st.floats(0, 0.9))
def test_verdicts_follow_the_ends(one, other, tolerance):
    decided, table = counts([400, 40], [one, other])
    call = {"sensitive_features": table, "criteria": "dp", "tolerance": tolerance}
    (row,) = audit(None, decided, **call).gaps.to_dict("records")
    assert (row["verdict"] == "violation") == (row["lower"] > tolerance)
    assert (row["verdict"] == "within tolerance") == (row["upper"] < tolerance)
    assert audit(None, decided, min_count=41, **call).gaps["verdict"].tolist() == ["not estimable"]


@pytest.mark.parametrize(
    ("sizes", "successes", "verdict"),
    [
        ([500, 500], [100, 200], "violation"),
        ([40, 40], [16, 20], "inconclusive"),
        ([9000, 9000], [3000, 3010], "within tolerance"),
        ([500, 9], [100, 9], "not estimable"),
        ([500], [100], "not estimable"),
    ],
)
def test_each_verdict_occurs(sizes, successes, verdict):
    decided, table = counts(sizes, successes)
    found = audit(None, decided, sensitive_features=table, criteria="dp")
    assert found.gaps["verdict"].tolist() == [verdict]
    assert str(found)


def test_small_groups_are_shown_but_leave_the_gap():
    decided, table = counts([60, 80, 9], [20, 30, 9])
    found = audit(None, decided, sensitive_features=table, criteria="dp")
    assert found.groups["in_gap"].tolist() == [True, True, False]
    assert found.groups["rate"].tolist()[-1] == 1.0
    expected = gap_interval([20, 30], [60, 80])
    assert found.gaps["gap"][0] == expected.gap
    assert found.gaps["upper"][0] == expected.upper
    assert "fewer than 10 rows" in found.notes[0]
    assert "dp by g: 1 of 3" in found.notes[0]
    with_all = audit(None, decided, sensitive_features=table, criteria="dp", min_count=9)
    assert with_all.gaps["gap"][0] == pytest.approx(2 / 3)
    assert not with_all.notes


def test_min_count_means_rows_that_count_for_the_rate():
    y = np.array([1] * 30 + [0] * 100)
    decided, group = np.tile([0, 1], 65), ["a"] * 25 + ["b"] * 5 + ["a"] * 50 + ["b"] * 50
    found = audit(y, decided, sensitive_features={"g": group})
    assert found.groups.set_index(["of", "group"])["in_gap"].to_dict() == {
        ("dp", "g=a"): True,
        ("dp", "g=b"): True,
        ("tpr", "g=a"): True,
        ("tpr", "g=b"): False,
    }


def test_min_count_means_effective_rows_where_there_are_weights():
    decided, table = counts([30, 40, 40], [20, 10, 15])
    weight = np.ones(110)
    weight[0] = 500.0
    call = {"sensitive_features": table, "criteria": "dp", "sample_weight": weight}
    found = audit(None, decided, y_score=np.arange(110), **call)
    assert found.groups["effective"].tolist() == [1, 40, 40]
    assert found.groups["in_gap"].tolist() == [False, True, True]
    assert found.gaps["gap"][0] == pytest.approx(5 / 40)
    assert "fewer than 10 effective rows" in found.notes[-1]
    assert not found.thresholds[["lowest", "highest"]].eq("g=a").any(axis=None)
    alone = audit(
        None,
        decided[:70],
        **call | {"sensitive_features": table["g"][:70]} | {"sample_weight": weight[:70]},
    )
    assert alone.gaps["verdict"].tolist() == ["not estimable"]
    assert alone.plan()["more_rows"].tolist() == [16]  # nine at 41 of 70


def test_the_shrunken_estimate_decides_nothing(monkeypatch):
    y, decided, table, _ = rows(300)
    honest = audit(y, decided, sensitive_features=table)
    monkeypatch.setattr(
        "apfex.auditing._from_counts.shrunken_rates", lambda table, *_: table.rates * 0 + 0.123
    )
    other = audit(y, decided, sensitive_features=table)
    assert (other.groups["shrunken"] == 0.123).all()
    assert honest.gaps.equals(other.gaps)


def test_without_labels_only_selection_is_audited():
    _, decided, table, _ = rows()
    found = audit(None, decided, sensitive_features=table)
    assert found.gaps["criterion"].unique().tolist() == ["dp"]
    assert "tpr left out" in found.notes[0]
    with pytest.raises(ValueError, match=r"y_true must be given for the criteria \['tpr'\]"):
        audit(None, decided, sensitive_features=table, criteria="tpr")


def test_a_constant_predictor_is_told():
    _, _, table, _ = rows()
    for value in (0, 1):
        found = audit(None, [value] * 600, sensitive_features=table)
        assert "All decisions are the same" in found.notes[-1]
        assert "Worst-off groups: none, all fare alike" in str(found)


def test_two_groups_at_the_ends_are_named():
    decided, table = counts([100, 100, 100], [20, 70, 40])
    found = audit(None, decided, sensitive_features=table, criteria="dp")
    assert found.ends("dp", "g")["group"].tolist() == ["g=a", "g=b"]
    assert found.ends("dp", "g")["rate"].tolist() == [0.2, 0.7]
    with pytest.raises(ValueError, match=r"criterion must be one of \['dp'\], got 'tpr'"):
        found.ends("tpr", "g")


def test_several_classes_are_compared_each_against_the_rest():
    y, decided, table, _ = rows(900, 3)
    found = audit(y, decided, sensitive_features=table, favorable_label=2)
    assert found.groups["class"].unique().tolist() == [0, 1, 2]
    ends = found.ends("dp", "sex")
    by_class = found.groups[(found.groups["by"] == "sex") & (found.groups["of"] == "dp")]
    spread = by_class.groupby("class")["rate"].agg(np.ptp).max()
    assert np.ptp(ends["rate"]) == pytest.approx(spread)
    assert found.share_favored == pytest.approx(np.mean(decided == 2))


def test_the_page_and_the_package_order_verdicts_alike():
    page = resources.files("apfex.report") / "page" / "base.js"
    block = page.read_text().split("const VERDICTS = {")[1].split("};")[0]
    assert tuple(re.findall(r'^  "?([a-z ]+)"?: \{', block, re.MULTILINE)) == VERDICTS
