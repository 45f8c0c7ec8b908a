"""The history of a training, as the page draws it."""

import pandas as pd
import pytest
from tests.report.conftest import make_history


@pytest.fixture
def describe(front):
    def described(history, objectives=None):
        return front.measured.describe(history=history, objectives=objectives)["history"]

    return described


def test_a_history_has_the_three_panels_of_every_member(describe):
    told = describe(make_history(5, (2,)), ["task", "dp"])
    assert told["objectives"] == ["task", "dp"]
    assert [one["member"] for one in told["members"]] == [0, 1]
    first = told["members"][0]
    assert first["step"] == [0, 1, 2, 3, 4]
    assert first["strategy"] == ["PCP", "AW", "PCP", "AW", "PCP"]
    assert first["losses"] == first["weights"] == [[0.0, 1.0, 2.0, 3.0, 4.0]] * 2
    assert first["direction_norm"] == [1.0] * 5


def test_a_long_history_is_thinned_from_end_to_end(describe):
    steps = describe(make_history(1000))["members"][0]["step"]
    assert (len(steps), steps[0], steps[-1]) == (300, 0, 999)


def test_that_of_the_classifier_is_the_default(describe, front):
    told = describe(None)
    shown = {point.member for point in front.clf.front_}
    assert {one["member"] for one in told["members"]} == shown
    assert shown < set(front.clf.history_["member"])
    assert told["objectives"] == front.clf.history_.attrs["objectives"]


def test_a_history_must_be_one(describe):
    with pytest.raises(ValueError, match=r"history must have the columns step.*got \['loss0'\]"):
        describe(pd.DataFrame({"loss0": [1.0]}))
    with pytest.raises(ValueError, match="objectives must name the 2 losses"):
        describe(make_history(2), ["one"])
