"""Caveats of points that decide as they are told, against audits of the same decisions."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.report.conftest import fit, make_people

from apfex import audit
from apfex.report import Caveat
from apfex.report._caveats import caveats_of_verdicts

ROWS = 400
SEX = {"sex": ["F", "M"] * (ROWS // 2)}


def coded(point, code):
    return [one for one in point["caveats"] if one["code"] == code]


def with_share(share_f, share_m):
    """Decisions that give these shares of women and men the label 0, which is favorable."""
    place = np.arange(ROWS) // 2 / (ROWS / 2)
    return (place >= np.where(np.arange(ROWS) % 2 == 0, share_f, share_m)).astype(int)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [(None, "constant"), (0.5, "no_better"), (0.4, None)],
)
def test_decisions_as_good_as_none_are_told(decide, wrong, code):
    y = np.arange(ROWS) % 2
    decided = y * 0 if wrong is None else np.where(np.arange(ROWS) < wrong * ROWS, 1 - y, y)
    described = decide([decided, decided], y, SEX, words={0: "no", 1: "yes"})
    for point in described["points"]:
        found = {one["code"] for one in point["caveats"]} & {"constant", "no_better"}
        assert found == ({code} if code else set())
    if code == "constant":
        (told,) = coded(described["points"][0], code)
        assert told["text"].startswith("100.0% of these rows get one label, “no”")


def test_a_gap_that_surely_exceeds_that_of_the_validation_rows_is_told(decide, front):
    """Validation gaps are set below, within and above the interval of the audit."""
    decided, y = with_share(0.3, 0.7), make_people(ROWS, 0).y
    gaps: Any = audit(y, decided, sensitive_features=SEX, favorable_label=0).gaps
    lower, upper = gaps[gaps["criterion"] == "dp"][["lower", "upper"]].to_numpy()[0]
    assert 0 < lower < 0.4 < upper

    def told(gap, n_groups):
        rates = SimpleNamespace(gap=gap, counted=np.ones((1, n_groups), bool))
        points = [_with_rates(one, rates) for one in front.clf.front_[:2]]
        found = decide([decided, decided], y, SEX, points)["points"][1]
        return [one["text"] for one in coded(found, "flattered") if "selection" in one["text"]]

    assert told(float(lower), 2) == told(0.4, 2) == told(float(upper), 2) == []
    (text,) = told(float(lower) - 0.01, 2)
    assert f"was {lower - 0.01:.3f}; on these it is 0.400 ({lower:.3f} to {upper:.3f})." in text
    assert text.endswith(").")
    (text,) = told(0.0, 3)
    assert text.endswith("the groups: 3 had enough rows there, 2 have here.")


def test_groups_are_counted_for_a_criterion_of_two_rates(decide):
    """Equalized odds: those with enough rows for the rate that makes the gap."""
    people = make_people(ROWS, 0, names=("a", "b"))
    clf = fit(people, criteria="equalized_odds", favorable_label=0, n_points=2)
    rates = SimpleNamespace(gap=0.0, counted=np.ones((1, 2), bool))
    points = [_with_rates(clf.front_[0], rates)]
    described = decide([with_share(0.2, 0.8)], people.y, SEX, points, clf)
    (told,) = coded(described["points"][0], "flattered")
    assert "Part of that may be the groups" not in told["text"]


def _with_rates(point, rates):
    """A point whose gaps on the validation rows are these."""
    point = replace(point, trivial=False)
    object.__setattr__(point, "widest", lambda *_, **__: rates)
    return point


@pytest.mark.parametrize(
    ("before", "after", "grew"),
    [
        ((0.5, 0.5), (0.3, 0.7), True),
        ((0.3, 0.7), (0.5, 0.5), False),
        ((0.3, 0.7), (0.3, 0.7), False),
        ((0.4, 0.6), (0.39, 0.61), False),  # may be chance
        ((0.4, 0.6), (0.1, 0.9), True),  # above the tolerance before, too
    ],
)
def test_a_gap_that_grew_against_the_starting_point_is_told(decide, before, after, grew):
    y = make_people(ROWS, 0).y
    points = decide([with_share(*before), with_share(*after)], y, SEX)["points"]
    found = [one for one in coded(points[1], "gap_grew") if one["data"]["criterion"] == "dp"]
    assert len(found) == grew
    assert coded(points[0], "gap_grew") == []
    if grew:
        now, then = (
            next(gap for gap in point["gaps"] if gap["criterion"] == "dp") for point in points[::-1]
        )
        is_new = then["verdict"] != "violation"
        assert now["verdict"] == "violation"
        assert found[0]["data"] == {"criterion": "dp", "gap": now["gap"], "before": then["gap"]}
        assert found[0]["text"] == (
            f"The gap in selection rate is larger than at point 0: {now['gap']:.3f} "
            f"({now['lower']:.3f} to {now['upper']:.3f}), there {then['gap']:.3f} "
            f"({then['lower']:.3f} to {then['upper']:.3f})."
            + is_new
            * " It now surely exceeds the limit."
        )


def test_a_gap_that_is_above_the_tolerance_only_now_is_told(decide):
    """Though its interval holds the gap of the starting point."""
    y = make_people(ROWS, 0).y
    points = decide([with_share(0.45, 0.55), with_share(0.42, 0.58)], y, SEX, tolerance=0.05)[
        "points"
    ]
    then, now = (point["gaps"][0] for point in points)
    assert (then["verdict"], now["verdict"]) == ("inconclusive", "violation")
    assert now["lower"] < then["gap"] < now["gap"]
    texts = [one["text"] for one in coded(points[1], "gap_grew")]
    assert any(text.endswith("It now surely exceeds the limit.") for text in texts)


def test_a_gap_below_the_tolerance_that_surely_grew_is_told(decide):
    y = make_people(ROWS, 0).y
    points = decide([with_share(0.5, 0.5), with_share(0.3, 0.7)], y, SEX, tolerance=0.45)["points"]
    then, now = (point["gaps"][0] for point in points)
    assert now["criterion"] == "dp"
    assert now["verdict"] == "inconclusive"
    assert then["gap"] < now["lower"] < now["gap"] < 0.45
    (told,) = [one for one in coded(points[1], "gap_grew") if one["data"]["criterion"] == "dp"]
    assert told["data"] == {"criterion": "dp", "gap": now["gap"], "before": then["gap"]}
    assert told["text"].startswith("The gap in selection rate is larger than at point 0: 0.400 (")
    assert told["text"].endswith(").")  # not above the tolerance
    assert coded(points[1], "violation") == []


def test_every_violation_is_told_once_a_criterion(decide):
    people = {**SEX, "half": np.arange(ROWS) // (ROWS // 2)}
    y = make_people(ROWS, 0).y
    described = decide([with_share(0.3, 0.7), with_share(0.5, 0.5)], y, people)
    for point in described["points"]:
        above = {
            (gap["criterion"], gap["by"]) for gap in point["gaps"] if gap["verdict"] == "violation"
        }
        told = coded(point, "violation")
        assert [one["data"]["criterion"] for one in told] == sorted({name for name, _ in above})
        assert all(one["level"] == "warning" for one in told)
        for one in told:
            for name, by in above:
                assert name != one["data"]["criterion"] or f"by {by}" in one["text"].replace(
                    ", ", " by "
                )
    assert coded(described["points"][0], "violation")


def test_in_a_terminal_the_first_groups_are_named():
    groups = [f"race={n}" for n in range(7)]
    caveat = Caveat("levelled_down", "warning", "These lose\n.", {"groups": groups})
    assert str(caveat) == "These lose\\n. (race=0; race=1; race=2; race=3; race=4; 2 more)"
    assert str(Caveat("note", "note", "Few rows.")) == "Few rows."


@pytest.mark.parametrize(("shift", "is_sure"), [(0.06, False), (0.2, True)])
def test_a_violation_says_so_where_it_is_none_among_all_gaps(shift, is_sure):
    """The page's headline and its caveat say the same."""
    random = np.random.default_rng(0)
    sexes, places = np.repeat(["F", "M"], 200), np.tile(np.arange(200) / 200, 2)
    decided = (places < np.where(sexes == "F", 0.5 - shift, 0.5 + shift)).astype(int)
    people = {"sex": sexes, "a": random.permutation(sexes), "b": random.permutation(sexes)}
    result = audit(decided, decided, sensitive_features=people, criteria="dp", tolerance=0.05)
    assert result.summary.verdict == "violation"
    assert result.summary.stands_corrected == is_sure
    assert ("none is sure" in result.summary.text) != is_sure
    (caveat,) = caveats_of_verdicts(result)
    assert ("by itself surely exceeds" in caveat.text) != is_sure
    assert caveat.text.endswith("none is sure.") != is_sure
