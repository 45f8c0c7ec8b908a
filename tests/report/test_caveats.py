"""Doubts, changes, shown groups and the timeline, on cases that can be checked by hand."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from apfex.auditing import audit
from apfex.groups import make_groups
from apfex.history import History, StepRecord
from apfex.metrics import levelled_down
from apfex.report import _groupings as _levels
from apfex.report._audit import describe_audit
from apfex.report._caveats import (
    doubts_of_decisions,
    doubts_of_gaps,
    doubts_of_growth,
)
from apfex.report._changes import Change, changes_between
from apfex.report._choosing import Compared
from apfex.report._groupings import ends_of, levels_of, rates_of, shown_groups
from apfex.report._history import describe_timeline

COUNTS = st.integers(0, 60)


@given(st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=8), st.sampled_from([0.9, 0.95]))
def test_a_direction_is_clear_where_the_sign_test_says_so(pairs, confidence):
    gained, lost = np.array(pairs).T
    direction = Change(gained, lost, gained + lost + 1).direction(confidence)
    for g, l, told in zip(gained, lost, direction, strict=True):  # noqa: E741
        clear = g + l > 0 and binomtest(int(g), int(g + l)).pvalue <= 1 - confidence
        assert told == (np.sign(g - l) if clear else 0)


def test_changes_are_counted_on_every_level():
    people = {"sex": ["F", "F", "M", "M", "M"], "race": ["A", "B", "A", "B", "B"]}
    before = np.array([False, True, True, False, True])
    after = np.array([True, False, True, True, True])
    result = audit(None, [0, 1, 0, 1, 0], sensitive_features=people, criteria="dp")
    found = changes_between(before, after, make_groups(people), levels_of(result))
    assert found["sex"].gained.tolist() == [1, 1]
    assert found["race"].lost.tolist() == [0, 1]
    assert found["sex x race"].gained.tolist() == [1, 0, 0, 1]
    assert found["sex x race"].net_share.tolist() == [1, -1, 0, 0.5]


@given(st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=8), st.sampled_from([0.9, 0.95]))
def test_levelled_down_never_contradicts_the_tally(pairs, confidence):
    gained, lost = np.array(pairs).T
    change = Change(gained, lost, np.full(len(pairs), 120))
    found = levelled_down(change.direction(confidence))
    tally = change.tally(confidence)
    assert found.sum() == (0 if tally["groups_gain"] else tally["groups_lose"])
    assert (lost > gained)[found].all()


def test_levelled_down_means_that_nobody_clearly_gains():
    rows = np.array([100, 100, 100])
    harmed = Change(np.array([0, 1, 0]), np.array([9, 0, 2]), rows)  # one of b is no clear gain
    assert levelled_down(harmed.direction(0.95)).tolist() == [True, False, False]
    mixed = Change(np.array([0, 9, 0]), np.array([9, 0, 2]), rows)
    assert not levelled_down(mixed.direction(0.95)).any()


@pytest.mark.parametrize(
    ("decided", "kinds"),
    [([1, 1, 1, 1], ["constant"]), ([0, 1, 1, 0], ["no_better"]), ([0, 1, 0, 1], [])],
)
def test_decisions_as_good_as_none_are_doubted(decided, kinds):
    y, decided = np.array([0, 1, 0, 1]), np.array(decided)
    error = float((y != decided).mean())
    doubts = doubts_of_decisions(decided, error, y, None, ["no", "yes"])
    assert [doubt["kind"] for doubt in doubts] == kinds


def test_a_gap_that_fresh_rows_surely_widen_is_doubted():
    wide = {"gap": 0.2, "lower": 0.1, "upper": 0.3, "groups": 4}
    assert doubts_of_gaps({"dp": Compared(0.15, 4)}, {"dp": wide}) == []
    (doubt,) = doubts_of_gaps({"dp": Compared(0.05, 4)}, {"dp": wide})
    assert doubt["kind"] == "flattered"
    assert "0.050" in doubt["text"]
    assert doubt["text"].endswith("(0.100 to 0.300).")
    (doubt,) = doubts_of_gaps({"dp": Compared(0.05, 3)}, {"dp": wide})
    assert doubt["text"].endswith("the groups: 3 had enough rows there, 4 have here.")


def test_a_gap_that_grew_against_the_starting_point_is_doubted():
    def gap(gap, lower, upper, verdict):
        return {"tpr": {"gap": gap, "lower": lower, "upper": upper, "verdict": verdict}}

    before = gap(0.143, 0.0, 0.321, "inconclusive")
    (doubt,) = doubts_of_growth(gap(0.276, 0.208, 0.394, "violation"), before, 2)
    assert doubt["kind"] == "gap_grew"
    assert doubt["text"] == (
        "The gap in true positive rate is larger than at point 2: 0.276 (0.208 to 0.394), there "
        "0.143 (0.000 to 0.321). It is now surely above the tolerance."
    )
    assert doubts_of_growth(gap(0.15, 0.06, 0.3, "violation"), before, 2) != []  # only now above
    assert doubts_of_growth(gap(0.2, 0.01, 0.4, "inconclusive"), before, 2) == []  # may be chance
    assert doubts_of_growth(gap(0.12, 0.08, 0.3, "violation"), before, 2) == []  # smaller
    assert doubts_of_growth(before, before, 2) == []
    surely = gap(0.4, 0.35, 0.5, "violation")
    assert len(doubts_of_growth(surely, gap(0.3, 0.2, 0.4, "violation"), 2)) == 1


def test_of_too_many_groups_the_worst_off_and_those_that_make_gaps_are_shown(monkeypatch):
    monkeypatch.setattr(_levels, "_MOST_NUMBERS", 3 * 60)
    draw = np.random.default_rng(0)
    many = draw.integers(0, 300, 9000)
    decided = draw.random(9000) < 0.2 + 0.6 * (many % 7 == 0)
    people = {"many": many, "sex": draw.integers(0, 2, 9000)}
    result = audit(None, decided.astype(int), sensitive_features=people, criteria="dp")
    described = describe_audit(result, title=None, source=None, command=None)
    levels = {level["by"]: level for level in described["levels"]}
    assert levels["sex"]["left_out"] == 0  # small levels stay whole
    assert 20 <= len(levels["many"]["groups"]) <= 60
    assert levels["many"]["left_out"] == 300 - len(levels["many"]["groups"])
    names = {by: {group["name"] for group in level["groups"]} for by, level in levels.items()}
    assert all(name in names[by] for by, name in ends_of(result))
    assert result.worst(1, by="many")["group"].iloc[0] in names["many"]
    column = described["points"][0]["rates"]["favored"]["levels"]["many"]
    assert len(column["rate"]) == len(levels["many"]["groups"])
    shown = dict(zip(names_in_order(levels["many"]), column["rate"], strict=True))
    of = result.groups[result.groups["by"] == "many"].set_index("group")["rate"]
    assert shown == pytest.approx({name: of[name] for name in shown})


def names_in_order(level):
    return [group["name"] for group in level["groups"]]


@given(st.lists(st.integers(1, 200), min_size=1, max_size=6), st.integers(0, 300))
def test_room_is_shared_out(sizes, room):
    limits = _levels._share_out(sizes, room)
    assert all(1 <= limit <= size for limit, size in zip(limits, sizes, strict=True))
    assert sum(limits) <= max(room, 20 * len(sizes))
    if sum(sizes) <= room:
        assert limits == sizes


def test_an_audit_of_a_classifier_with_the_other_label_favorable(front):
    """All its rates are of the label 0, which is what a person would want."""
    own = front.clf.at(1).audit(front.new.X, front.new.y, sensitive_features=front.new.sensitive)
    described = describe_audit(own, title=None, source=None, command=None)
    rates = described["points"][0]["rates"]
    assert [rate["key"] for rate in described["rates"]] == ["favored", "tpr"]
    expected = front.described["points"][1]["rates"]
    assert rates["favored"] == expected["favored"]
    assert rates["tpr"] == expected["tpr"]


def test_an_audit_without_selection_rates_has_its_other_rates():
    y, decided, sex = [0, 1] * 60, [1, 1, 0, 1] * 30, ["F", "F", "M"] * 40
    result = audit(y, decided, sensitive_features={"sex": sex}, criteria="tpr")
    described = describe_audit(result, title=None, source=None, command=None)
    assert [rate["key"] for rate in described["rates"]] == ["tpr"]
    kept = shown_groups(
        levels_of(result), [{("favored", "sex"): rates_of(result)["tpr", "sex"]}], 1, set()
    )
    assert kept["sex"].tolist() == [0, 1]


def test_the_plan_and_thresholds_of_an_audit_are_told():
    draw = np.random.default_rng(0)
    score, sex = draw.random(120), draw.integers(0, 2, 120)
    y = (draw.random(120) < score).astype(int)
    result = audit(y, (score > 0.5).astype(int), sensitive_features={"sex": sex}, y_score=score)
    described = describe_audit(result, title=None, source=None, command=None)
    plan = result.plan()
    for told in described["plan"]:
        own = plan[(plan["criterion"] == told["criterion"]) & (plan["by"] == told["by"])]
        total = own["more_rows"].sum()
        assert told["more_rows"] == (total if np.isfinite(total) else None)
    open_gaps = result.gaps["verdict"].isin(["inconclusive", "not estimable"]).sum()
    assert len(described["plan"]) == open_gaps > 0
    assert len(described["thresholds"]) == len(result.gaps)
    assert result.thresholds is not None
    assert described["thresholds"][0]["gap"] == pytest.approx(
        result.thresholds["gap"].head(len(described["thresholds"][0]["gap"])).tolist()
    )


def make_history(steps, members=()):
    history = History(2, window=1, members=members, trace=True, choice_names=("PCP", "AW"))
    for step in range(steps):
        pair = torch.full((*members, 2), float(step))
        choice = torch.full(members, step % 2)
        history.record(StepRecord(pair, pair, choice, torch.full(members, 1.0)))
    return history


def test_a_timeline_has_the_three_panels_of_every_member():
    told = describe_timeline(make_history(5, (2,)).to_frame(), ["task", "dp"])
    assert told is not None
    assert told["objectives"] == ["task", "dp"]
    assert [one["member"] for one in told["members"]] == [0, 1]
    first = told["members"][0]
    assert first["step"] == [0, 1, 2, 3, 4]
    assert first["strategy"] == ["PCP", "AW", "PCP", "AW", "PCP"]
    assert first["losses"] == first["weights"] == [[0.0, 1.0, 2.0, 3.0, 4.0]] * 2
    assert first["direction_norm"] == [1.0] * 5


def test_a_long_timeline_is_thinned_from_end_to_end():
    told = describe_timeline(make_history(1000).to_frame(), None)
    assert told is not None
    steps = told["members"][0]["step"]
    assert (len(steps), steps[0], steps[-1]) == (300, 0, 999)


def test_a_timeline_must_be_one():
    with pytest.raises(ValueError, match=r"timeline must have the columns step.*got \['loss0'\]"):
        describe_timeline(pd.DataFrame({"loss0": [1.0]}), None)
    with pytest.raises(ValueError, match="objectives must name the 2 losses"):
        describe_timeline(make_history(2).to_frame(), ["one"])
