"""JSON that may be read in two ways, or takes a memory, is refused; all other is read as by all."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apfex.strict_json import read_strict_json


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1, "a": 2}', "the name 'a' occurs twice"),
        (r'{"a": 1, "\u0061": 2}', "the name 'a' occurs twice"),
        ("[1e999]", "1e999 is beyond all numbers"),
        ("[NaN]", "NaN is no number"),
        ("[" * 65 + "]" * 65, "nested deeper than 64 levels"),
        ('{"a":' * 10**5, "nested deeper"),
        ('{"a": "[[[' + "[" * 100 + "}", "Unterminated string"),
        ('{"' + r"\"" * 10**6, "Unterminated string"),
        (b"\xff\xfe1\x00", "codec can't decode"),
        ("9" * 5_000, "digits"),
    ],
)
def test_json_that_may_be_read_in_two_ways_or_takes_a_memory_is_refused(text, why):
    with pytest.raises(ValueError, match=why):
        read_strict_json(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_other_json_is_read_as_anybody_reads_it(value):
    for is_ascii in (True, False):
        text = json.dumps(value, ensure_ascii=is_ascii)
        assert read_strict_json(text) == json.loads(text) == value
