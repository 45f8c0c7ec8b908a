"""The chosen point: by which figures, and which gaps to look at."""

import copy

import numpy as np
import pytest
from tests.cli.conftest import COLUMNS, TRAINING, people

from apfex.cli._chosen import describe_choice, side_effects
from apfex.persistence import read_json


@pytest.fixture
def front(finished):
    return read_json(finished / "front.json")


def test_figures_of_the_rows_that_chose_are_named_as_such(front):
    chosen = front["points"][front["chosen"]]["validation"]["gaps"]["dp"]["gap"]
    front["settings"]["max_gap"] = {"dp": 1.0}
    assert "within --max-gap (dp 1) on the rows that chose it" in describe_choice(front)
    front["settings"]["max_gap"] = {"dp": -1.0}
    said = describe_choice(front)
    assert "none is within --max-gap (dp -1) on the rows that chose it; there this one is " in said
    assert f"nearest (dp {chosen:.3f})" in said


def of(criterion, gap, lower, verdict, by="sex x race"):
    return {"criterion": criterion, "by": by, "gap": gap, "lower": lower, "verdict": verdict}


START = [of("dp", 0.19, 0.1, "violation"), of("tpr", 0.14, 0.01, "inconclusive")]
POINTS = {
    "both smaller": ([of("dp", 0.03, 0, "inconclusive"), of("tpr", 0.1, 0, "inconclusive")], []),
    "the other larger, and above": (
        [of("dp", 0.03, 0, "inconclusive"), of("tpr", 0.28, 0.2, "violation")],
        ["tpr gap of 0.280 by sex x race on the rows held back, clearly above the tolerance 0.05 "
         "and clearly larger than at point 0 (0.140)."],
    ),
    "above, and hardly larger": (
        [of("tpr", 0.15, 0.06, "violation")],
        ["clearly above the tolerance 0.05 and larger than at point 0 (0.140)."],
    ),
    "above, but smaller": ([of("dp", 0.12, 0.08, "violation")], ["above the tolerance 0.05."]),
    "larger, by chance": ([of("tpr", 0.2, 0.04, "inconclusive")], []),
    "of another level": ([of("tpr", 0.28, 0.2, "violation", by="sex")], []),
    "not estimable": ([of("tpr", None, None, "not estimable")], []),
}  # fmt: skip


@pytest.mark.parametrize("name", POINTS)
def test_gaps_that_grew_or_are_too_large_are_told(name):
    gaps, words = POINTS[name]
    described = {
        "chosen": 1,
        "baseline": 0,
        "levels": [{"by": "sex"}, {"by": "sex x race"}],
        "settings": {"tolerance": 0.05},
        "points": [{"point": 0, "gaps": START}, {"point": 1, "gaps": gaps}],
    }
    found = side_effects(described)
    assert len(found) == len(words)
    for one, said in zip(found, words, strict=True):
        assert one.startswith("Point 1 has a ")
        assert one.endswith(said)


def test_a_gap_below_the_tolerance_that_surely_grew_is_told(front):
    point, place = copy.deepcopy(front["points"][0]), len(front["points"])
    for gap in point["gaps"]:
        gap.update(gap=0.9, lower=0.8, verdict="inconclusive")
    front["points"].append(point | {"point": place})
    (said,) = side_effects(front | {"chosen": place, "baseline": 0})
    assert "a dp gap of 0.900 by sex x origin" in said
    assert ", clearly larger than at point 0 (" in said


def test_the_starting_point_is_not_compared_with_itself(front):
    for said in side_effects(front | {"chosen": front["baseline"]}):
        assert "larger" not in said


def test_explore_warns(apfex, tmp_path):
    frame = people()
    men = (frame["sex"] == "male").to_numpy()
    frame["merit_1"] += 3.0 * men
    frame["hired"] = np.where(men ^ (np.arange(300) % 5 == 0), "hired", "rejected")
    frame.to_csv(tmp_path / "p.csv", index=False)
    arguments = [*COLUMNS, *TRAINING, "--max-gap", 1, "--out", tmp_path / "run"]
    said = apfex("explore", tmp_path / "p.csv", *arguments)
    assert said.code == 0
    assert "Warning: Point 0 has a dp gap of 0." in said.err
    assert "clearly above the tolerance 0.05." in said.err
