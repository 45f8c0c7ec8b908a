"""Groups are shown as people write them, and no two alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apfex.groups import make_groups
from apfex.report._names import names_within, shown_name, shown_values

VALUES = st.one_of(st.none(), st.text(max_size=6), st.text("a,='\"\\\\<“” ", max_size=5))


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
def test_only_what_is_ambiguous_is_quoted(value, shown):
    (name,) = make_groups({"race": [value]}).names
    assert shown_values(name, ["race"]) == (shown,)
    assert shown_name(["race"], [shown]) == f"race={shown}"


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=6))
def test_values_come_back_from_names_and_differ_as_they_do(pairs):
    attributes = ["a, b=", "c"]
    people = make_groups(dict(zip(attributes, zip(*pairs, strict=True), strict=True)))
    alone = [people.parent(name) for name in attributes]
    for group, cell in zip(people.names, people.cells, strict=True):
        own = [
            shown_values(one.names[code], one.attributes)
            for one, code in zip(alone, cell, strict=True)
        ]
        assert shown_values(group, attributes) == (*own[0], *own[1])
    for one in alone:
        shown = [shown_values(name, one.attributes) for name in one.names]
        assert len(set(shown)) == len(shown)


def test_only_names_that_occur_and_differ_are_told():
    shown = {"x='a\"'": 'x=a"', "x=b": "x=b", "x=',='": "x=“,=”"}
    assert names_within({"p": [{"group": "x='a\"'"}, 3, None, "x=b"]}, shown) == {"x='a\"'": 'x=a"'}
