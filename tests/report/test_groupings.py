"""Groups are shown as people write them, no two alike, and of too many the worst off."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apfex import audit
from apfex.groups import make_groups

VALUES = st.one_of(st.none(), st.text(max_size=6), st.text("a,='\"\\\\<“” ", max_size=5))


def audited(people):
    decided = np.arange(len(next(iter(people.values())))) % 2
    return audit(None, decided, sensitive_features=people, criteria="dp")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("White", "White"),
        ('O\'Neil "q"', 'O\'Neil "q"'),
        ("<b>", "<b>"),
        ("Black, other", "“Black, other”"),
        ("a=b", "“a=b”"),
        (" a", "“ a”"),
        ("", "“”"),
        (None, "<missing>"),
        ("<missing>", "“<missing>”"),
        (3.0, "3"),
    ],
)
def test_only_what_is_ambiguous_is_quoted(audit_data, value, shown):
    described = audit_data(audited({"race": [value] * 40}))
    (group,) = described["groupings"][0]["groups"]
    assert group["values"] == [shown]
    assert group["name"] == make_groups({"race": [value]}).names[0]
    told = described["names"].get(group["name"], group["name"])
    assert told == f"race={shown}"


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=6))
def test_values_are_those_of_the_attributes_and_differ_as_they_do(audit_data, pairs):
    attributes = ["a, b=", "c"]
    people = dict(zip(attributes, zip(*pairs, strict=True), strict=True))
    *alone, crossing = audit_data(audited(people))["groupings"]
    values = [[group["values"][0] for group in one["groups"]] for one in alone]
    assert all(len(set(own)) == len(own) for own in values)
    cells = make_groups(people).cells.tolist()
    expected = [[values[0][first], values[1][second]] for first, second in cells]
    assert [group["values"] for group in crossing["groups"]] == expected


def test_only_names_that_occur_and_differ_are_told(audit_data):
    described = audit_data(audited({"x": ['a"', "b", ",="] * 40}))
    assert described["names"] == {"x='a\"'": 'x=a"', "x=',='": "x=“,=”"}


@pytest.mark.parametrize("room", [30, 60, 400, 2000])
def test_of_too_many_groups_the_worst_off_and_those_that_make_gaps_are_shown(
    audit_data, monkeypatch, room
):
    monkeypatch.setattr("apfex.report._groupings._MOST_NUMBERS", 3 * room)
    draw = np.random.default_rng(0)
    many = draw.integers(0, 300, 9000)
    decided = draw.random(9000) < 0.2 + 0.6 * (many % 7 == 0)
    people = {"many": many, "sex": draw.integers(0, 2, 9000)}
    result = audit(None, decided.astype(int), sensitive_features=people, criteria="dp")
    described = audit_data(result)
    groupings = {one["by"]: one for one in described["groupings"]}
    sizes = {"sex": 2, "many": 300, "many x sex": 600}
    shown = {by: len(one["groups"]) for by, one in groupings.items()}
    assert {by: n + groupings[by]["left_out"] for by, n in shown.items()} == sizes
    assert shown["sex"] == 2  # small groupings stay whole
    assert shown["many"] >= 20
    assert sum(shown.values()) <= max(room, 20 * len(sizes))
    assert (shown == sizes) == (room >= sum(sizes.values()))
    names = {by: [group["name"] for group in one["groups"]] for by, one in groupings.items()}
    for by in names:
        assert set(result.ends("dp", by)["group"]) <= set(names[by])
    assert result.worst(1, by="many")["group"].iloc[0] in names["many"]
    column = described["points"][0]["rates"]["favored"]["groupings"]["many"]
    told = dict(zip(names["many"], column["rate"], strict=True))
    of = result.groups[result.groups["by"] == "many"].set_index("group")["rate"]
    assert told == pytest.approx({name: of[name] for name in told}, rel=1e-4)
