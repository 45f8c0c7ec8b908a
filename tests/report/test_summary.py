"""The first screen says what the verdicts of all groupings say, and names nobody by chance."""

from dataclasses import replace

import numpy as np
import pytest

from apfex import audit
from apfex.report import describe_front
from apfex.report._constant import Constant, Gain
from apfex.report._summary import Choice, summarize_point

ROWS = 1200
SEX = np.array(["F", "M"] * (ROWS // 2))
PARTS = np.arange(ROWS) // 2 % 100  # groups of six, too small for a verdict of their own
Y = np.random.default_rng(0).permutation(ROWS // 2).repeat(2) // (ROWS // 4)


def with_share(share_f, share_m):
    """Decisions that give these shares of women and men the label 0, which is favorable."""
    place = np.random.default_rng(0).permutation(ROWS // 2).repeat(2) / (ROWS / 2)
    return (place >= np.where(SEX == "F", share_f, share_m)).astype(int)


def texts(point):
    parts = {one["title"]: one["text"] for one in point["summary"]["parts"]}
    return {
        title: "".join(part if isinstance(part, str) else part["group"] for part in text)
        for title, text in parts.items()
    }


def test_a_violation_of_one_attribute_is_the_headline(decide):
    """Though the crossing, whose groups are small, settles nothing."""
    people = {"sex": SEX, "part": PARTS}
    described = decide([with_share(0.43, 0.57)] * 2, Y, people)
    point = described["points"][0]
    verdicts = {gap["by"]: gap["verdict"] for gap in point["gaps"] if gap["criterion"] == "dp"}
    assert verdicts["sex"] == "violation" != verdicts["sex x part"]
    headline = point["summary"]["headline"]
    assert "exceeds the limit of 0.05" in headline
    assert "selection rate" in headline
    assert "The gap exceeds the limit." in texts(point)["How far from the limit"]
    assert "violation" in [one["code"] for one in point["caveats"]]


def test_an_audit_has_the_same_headline_on_page_and_terminal(audit_data):
    people = {"sex": SEX, "part": PARTS}
    result = audit(Y, with_share(0.4, 0.6), sensitive_features=people, favorable_label=0)
    point = audit_data(result)["points"][0]
    assert point["summary"]["headline"] == result.summary.text
    assert result.summary.verdict == "violation"
    assert "violation" in [one["code"] for one in point["caveats"]]


@pytest.mark.parametrize(("shares", "named"), [((0.3, 0.7), True), ((0.5, 0.5), False)])
def test_only_a_group_that_is_surely_worse_off_is_named(audit_data, decide, shares, named):
    decided = with_share(*shares)
    result = audit(Y, decided, sensitive_features={"sex": SEX}, favorable_label=0)
    for point in (
        audit_data(result)["points"][0],
        decide([decided, decided], Y, {"sex": SEX})["points"][0],
    ):
        said = texts(point)["For whom"]
        assert ("sex=F" in said) == named
        assert ("No group surely gets fewer" in said) != named


def test_how_it_was_chosen_is_told_as_on_the_terminal(front):
    new = front.new

    def told(place, max_gap):
        clf = front.clf.at(place).set_params(max_gap=max_gap)
        described = describe_front(clf, new.X, new.y, sensitive_features=new.sensitive)
        return described["points"][place]

    nearest = front.clf.front_.nearest({"dp": 0.0, "tpr": 0.0})
    found = told(nearest, 0.0)
    said = found["summary"]["headline"]
    assert said.startswith("No model meets your limit; this one comes closest.")
    assert "though no model meets your limit" in texts(found)["What was decided"]
    assert "of the models that meet your limit" in texts(told(0, 1.0))["What was decided"]
    assert "chosen by hand" in texts(told(1, 1.0))["What was decided"]


def test_a_front_of_trivial_points_says_so_first(decide, front):
    points = [replace(one, trivial=True) for one in front.clf.front_[:2]]
    described = decide([with_share(0.4, 0.6)] * 2, Y, {"sex": SEX}, points)
    assert described["trivial"]
    assert described["points"][0]["summary"]["headline"].startswith("No usable model was found")
    assert described["points"][0]["caveats"][0]["code"] == "trivial_front"


def test_doing_nothing_is_the_constant_and_the_starting_point(decide):
    decided = [with_share(0.3, 0.7), with_share(0.5, 0.5)]
    described = decide(decided, Y, {"sex": SEX})
    said = texts(described["points"][1])["Against doing nothing"]
    constant, errors = 0.5, [np.mean(one != Y) for one in decided]
    assert f"would have an error of {100 * constant:.1f}%" in said
    assert f"that of this model is {100 * errors[1]:.1f}%" in said
    assert "(point 0)" in said
    before, now = (
        next(gap["gap"] for gap in point["gaps"] if gap["criterion"] == "dp")
        for point in described["points"]
    )
    assert f"the gap in selection rate is {now:.3f} instead of {before:.3f}" in said


def test_groups_that_are_compared_are_counted(decide):
    people = {"part": np.minimum(np.arange(ROWS) // 100, 2) + (np.arange(ROWS) < 3) * 9}
    point = decide([with_share(0.4, 0.6)] * 2, Y, people)["points"][0]
    gap = point["gaps"][0]
    assert (gap["groups_compared"], gap["groups"]) == (3, 4)
    assert "3 of 4 groups compared" in texts(point)["How sure"]


def test_groups_of_one_attribute_are_named_where_the_crossing_is_too_small(audit_data, decide):
    people, decided = {"sex": SEX, "part": PARTS}, with_share(0.4, 0.6)
    result = audit(Y, decided, sensitive_features=people, favorable_label=0)
    assert result.n_worse_off == 0
    told = audit_data(result)["points"][0]
    assert [one["group"] for one in told["summary"]["larger"]] == ["sex=F"]
    for point in (told, decide([decided, decided], Y, people)["points"][0]):
        said = texts(point)["For whom"]
        assert "sex=F with 40.0%; the average is 50.0%." in said
        assert "No group" not in said


@pytest.mark.parametrize(
    ("kind", "chosen", "against"),
    [
        (
            "error",
            "it is the most accurate there",
            "an error of 50.0%; that of this model is 20.0%",
        ),
        ("balanced error", "it has the lowest balanced error there", "a balanced error of 50.0%; "),
        (
            "cost on the validation rows",
            "it has the lowest cost there",
            "a cost on the validation rows of 0.500; that of this model is 0.200, 0.300 lower",
        ),
    ],
)
def test_what_ranks_models_is_said(kind, chosen, against):
    result = audit(Y, with_share(0.45, 0.55), sensitive_features={"sex": SEX}, favorable_label=0)
    gain = Gain(Constant("0", "“0” for everybody", 1, 0.5, 0.5, kind, 0.5, 0.5), 0.2, 0.1)
    choice = Choice(0, 0, 1, "bounds", {"dp": 0.2}, {"dp": 0.1}, False, False)
    tally = {"groups_gain": 0, "groups_lose": 0}
    compared = {"before": 0.2, "now": 0.2, "gaps": {}, "tally": tally, "rows": "test rows"}
    gaps = result.gaps.to_dict("records")
    said = texts({"summary": summarize_point(result, gaps, [], gain, "0", choice, compared)})
    assert chosen in said["What was decided"]
    assert against in said["Against doing nothing"]
    lowest = "that is most accurate" if kind == "error" else chosen[7:-6]
    assert f"{lowest} on the validation rows" in said["Against doing nothing"]


def test_a_distance_that_is_not_sure_is_one_among_these_rows(audit_data):
    result = audit(Y, with_share(0.46, 0.54), sensitive_features={"sex": SEX}, favorable_label=0)
    assert result.gaps["verdict"].iloc[0] == "inconclusive"
    said = texts(audit_data(result)["points"][0])["How far from the limit"]
    assert "above the limit of 0.05 among these rows. Too little data to tell" in said
