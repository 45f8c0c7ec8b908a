"""The headline: the worst verdict of all groupings, and nobody named whom the rows do not name."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.auditing.rows import audit, counts

from apfex.auditing import Audit


def of(sizes, successes, **options):
    decided, table = counts(sizes, successes)
    return audit(None, decided, sensitive_features=table, criteria="dp", **options)


def hidden():
    """Men and women far apart, in a crossing whose cells are too small to say so."""
    sex = np.repeat(["F", "M"], 60)
    place = np.random.default_rng(0).permutation(np.tile(np.arange(12), 10))
    decided = np.r_[np.tile([0, 0, 0, 1], 15), np.tile([0, 1, 1, 1], 15)]
    table = pd.DataFrame({"sex": sex, "place": place})
    return audit(None, decided, sensitive_features=table, criteria="dp")


def test_a_violation_of_one_attribute_is_not_hidden_by_the_crossing():
    found = hidden()
    verdicts = found.gaps.set_index("by")["verdict"]
    assert verdicts["sex x place"] != "violation"
    summary = found.summary
    assert (summary.verdict, summary.by) == ("violation", "sex")
    assert (summary.low_group, summary.high_group) == ("sex=F", "sex=M")
    assert (summary.low_rate, summary.high_rate) == (0.25, 0.75)
    assert summary.text.startswith("The gap exceeds the limit: the selection rate by sex differs ")
    assert "sex=F has 25.0%, sex=M 75.0%" in summary.text
    assert summary.excess == pytest.approx(0.45)


def test_the_summary_stands_first_everywhere():
    found = hidden()
    assert str(found).replace("\n", " ").startswith(found.summary.text)
    assert found.to_markdown().startswith("**The gap exceeds the limit")
    assert found.to_html().splitlines()[1].startswith("<p><bdi>The gap exceeds the limit")
    content = json.loads(found.to_json())
    assert content["summary"]["text"] == found.summary.text
    assert Audit.from_json(found.to_json()).summary == found.summary


def test_too_little_data_names_nobody():
    summary = of([30, 30, 10], [10, 14, 1]).summary
    assert summary.verdict == "inconclusive"
    assert summary.text.startswith("Too little data to tell whether the gap exceeds the limit: ")
    assert summary.low_group is None
    assert summary.high_group is None
    assert "g=" not in summary.text


def test_a_small_group_at_the_end_is_not_named_where_a_large_one_is_sure():
    found = of([10, 2000, 2000], [2, 600, 1200])
    row = found.gaps.iloc[0]
    assert (row["lowest"], row["highest"]) == ("g=a", "g=c")
    assert (row["lowest_rate"], row["highest_rate"]) == (0.2, 0.6)
    assert (found.summary.low_group, found.summary.high_group) == ("g=b", "g=c")
    assert found.summary.low_rate == 0.3


def test_within_the_limit_says_how_far():
    summary = of([20_000, 20_000], [6000, 6100]).summary
    assert summary.verdict == "within tolerance"
    assert summary.text == (
        "Within the limit of 5 points: the gap, of the selection rate by g, is 0.5 points, and at "
        f"most {100 * summary.upper:.1f} with 95% confidence."
    )


def test_within_the_limit_is_about_the_gap_nearest_to_it():
    generator = np.random.default_rng(0)
    table = {"g": generator.choice(["a", "b"], 20_000), "h": ["c"] * 400 + ["d"] * 19_600}
    decided = np.tile([0, 1], 10_000)
    found = audit(None, decided, sensitive_features=table, criteria="dp", tolerance=0.2)
    assert found.summary.verdict == "within tolerance"
    assert found.summary.upper == found.gaps["upper"].max()
    assert "the gap nearest to it, of the selection rate by g x h" in found.summary.text


def test_groups_that_are_not_compared_are_said():
    found = of([20_000, 20_000, 4], [6000, 6100, 0])
    assert found.gaps[["groups_compared", "groups"]].to_numpy().tolist() == [[2, 3]]
    assert "Compared are 2 of 3 groups; 1 has fewer than 10 rows" in found.summary.text
    assert "2 of 3" in str(found)
    nothing = of([50, 5], [10, 2]).summary
    assert nothing.verdict == "not estimable"
    assert nothing.text.startswith("Too few rows to measure the gap: ")


def test_a_few_cases_are_told():
    summary = of([10, 4000], [4, 0]).summary
    assert summary.verdict == "violation"
    assert summary.few_cases
    assert "this rests on 4 of 10 rows of g=a." in summary.text
    other = of([10, 4000], [6, 4000]).summary
    assert "this rests on 4 of 10 rows of g=a." in other.text
    assert of([10, 4000], [4, 0]).notes == (
        "Violations that rest on fewer than 5 cases: dp by g (4 of 10 rows of g=a).",
    )
    # None of 4,000 is no small number of cases.
    assert not of([100, 4000], [60, 0]).summary.few_cases


def test_one_finding_among_many_is_corrected():
    decided = np.r_[np.tile([0, 1], 100), np.repeat([1, 0], [132, 68])]
    table = pd.DataFrame({"g": np.repeat(["a", "b"], 200)})
    lone = audit(None, decided, sensitive_features=table, criteria="dp", tolerance=0.04)
    assert (lone.summary.verdict, lone.summary.stands_corrected) == ("violation", True)
    for name in "pqrst":
        table[name] = np.tile(["c", "c", "d", "d"], 100)
    many = audit(None, decided, sensitive_features=table, criteria="dp", tolerance=0.04)
    assert (many.summary.verdict, many.summary.stands_corrected) == ("violation", False)
    assert "corrected for that, none is sure" in many.summary.text


def test_equal_decisions_for_all_are_said_first():
    summary = of([500, 500], [500, 500]).summary
    assert summary.text.startswith("All decisions are the same, so that no gap can show")


def test_all_rates_and_classes_are_looked_through():
    y = np.tile([0, 1], 200)
    sex = np.repeat(["F", "M"], 200)
    decided = np.where((sex == "F") & (y == 0), 1, y)
    found = audit(y, decided, sensitive_features={"sex": sex}, criteria="equalized_odds").summary
    assert "(false positive rate): sex=M has 0.0%, sex=F 100.0%" in found.text
    three = np.tile(["no", "maybe", "yes"], 100)
    moved = np.where((np.arange(300) < 150) & (three == "no"), "maybe", three)
    table = {"sex": np.repeat(["F", "M"], 150)}
    found = audit(None, moved, sensitive_features=table, criteria="dp", favorable_label="yes")
    assert found.summary.low_group in ("sex=F", "sex=M")
    assert "(selection rate of " in found.summary.text


def test_groups_of_one_attribute_are_clearly_worse_off_where_the_crossing_shows_none():
    found = hidden()
    assert found.n_worse_off == 0
    assert found.worse_off[["by", "group"]].to_numpy().tolist() == [["sex", "sex=F"]]
    assert found.worse_off["favored"].tolist() == [0.25]
    for said in (str(found), found.to_html()):
        assert "larger groups clearly worse off: sex=F (25.0%)" in said


def test_a_difference_stands_beside_the_groups_that_have_it():
    """The gap of 40 points is that of a tiny group, which is not named."""
    said = of([10, 2000, 2000], [2, 600, 1200]).summary.text
    assert "40.0" not in said
    assert "g=b has 30.0%, g=c 60.0%" in said
    assert "differs by at least" in said


def test_two_gaps_are_both():
    decided, table = counts([2000, 2000], [600, 1200])
    call = {"sensitive_features": table, "criteria": ("dp", "accuracy")}
    assert (
        "Both gaps exceed the limit." in audit(np.ones_like(decided), decided, **call).summary.text
    )
