"""The chosen point: which of its gaps to look at."""

import copy

import numpy as np
import pytest
from tests.people import COLUMNS, TRAINING, people

from apfex import explore
from apfex.persistence import read_json
from apfex.runs._caveats import find_caveats


@pytest.fixture
def front(finished):
    return read_json(finished / "front.json")


def of(criterion, gap, lower, verdict, by="sex x race"):
    return {"criterion": criterion, "by": by, "gap": gap, "lower": lower, "verdict": verdict}


START = [of("dp", 0.19, 0.1, "violation"), of("tpr", 0.14, 0.01, "inconclusive")]
POINTS = {
    "both smaller": ([of("dp", 0.03, 0, "inconclusive"), of("tpr", 0.1, 0, "inconclusive")], []),
    "the other larger, and above": (
        [of("dp", 0.03, 0, "inconclusive"), of("tpr", 0.28, 0.2, "violation")],
        ["tpr gap of 0.280 by sex x race on the test rows, clearly above the tolerance 0.05 "
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
    found = find_caveats(described)
    assert len(found) == len(words)
    for one, said in zip(found, words, strict=True):
        assert str(one).startswith("Point 1 has a ")
        assert str(one).endswith(said)


def test_a_gap_below_the_tolerance_that_surely_grew_is_told(front):
    point, place = copy.deepcopy(front["points"][0]), len(front["points"])
    for gap in point["gaps"]:
        gap.update(gap=0.9, lower=0.8, verdict="inconclusive")
    front["points"].append(point | {"point": place})
    (said,) = find_caveats(front | {"chosen": place, "baseline": 0})
    assert "a dp gap of 0.900 by sex x origin" in str(said)
    assert ", clearly larger than at point 0 (" in str(said)


def test_the_starting_point_is_not_compared_with_itself(front):
    for said in find_caveats(front | {"chosen": front["baseline"]}):
        assert "larger" not in str(said)


def test_a_run_knows_its_caveats():
    frame = people()
    men = (frame["sex"] == "male").to_numpy()
    frame["merit_1"] += 3.0 * men
    frame["hired"] = np.where(men ^ (np.arange(300) % 5 == 0), "hired", "rejected")
    (caveat,) = explore(frame, **COLUMNS, **TRAINING, max_gap=1).caveats
    assert (caveat.criterion, caveat.by, caveat.is_above) == ("dp", "sex x origin", True)
    assert caveat.gap > caveat.tolerance == 0.05
    assert str(caveat).startswith("Point 0 has a dp gap of 0.")
    assert str(caveat).endswith("clearly above the tolerance 0.05.")
