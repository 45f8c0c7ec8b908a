"""Plain values: nothing that a terminal obeys, nothing that JSON has no word for."""

import json
import re
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apfex.plain import beside, jsonable, printable, told_apart


@given(st.floats(0, 1), st.integers(0, 1000).map(lambda n: n / 1000))
def test_a_number_reads_on_its_side_of_a_bound(value, bound):
    shown = float(beside(value, bound))
    assert shown == pytest.approx(value, abs=5.1e-4)
    if abs(value - bound) > 1e-8:
        assert (shown > bound, shown < bound) == (value > bound, value < bound)


SIGNS = st.text(st.one_of(st.characters(), st.sampled_from("a ❤👩東क\ufe0f\u200d\u200c\U000e0100")))


@given(SIGNS)
def test_what_is_shown_is_printable_and_nothing_else_changes(text):
    shown = printable(text)
    used = "\u200c\u200d"  # after signs that they join
    assert shown.replace(used[0], "").replace(used[1], "").isprintable()
    assert shown == text or not text.isprintable() or re.search(INVISIBLE, text)
    assert printable(shown) == shown


INVISIBLE = (
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)


@pytest.mark.parametrize(
    "mark",
    "\u00ad\u061c\u200b\u200e\u202e\u2066\u2060\u180e\ufeff\u00a0\u2003\u3000\u2028\x1b\x7f\x9b"
    "\ufff9\U000e0041\U000f0000\ud800\u034f\u115f\u3164\u2800\uffa0\ufe00\ufe0f\u200d\u200c\U000e0100",
)
def test_two_names_that_look_alike_are_told_apart(mark):
    """Whatever nothing is drawn for, by its category in Unicode or by itself."""
    for name in (f"Zea{mark}lot", f"{mark}Zealot", f"Zealot{mark}", f"Zealot{mark}{mark}"):
        assert ascii(mark)[1:-1] in printable(name)
        assert mark not in printable(name)


@pytest.mark.parametrize(
    "name",
    ["👩🏽\u200d🚀", "❤\ufe0f", "❤\ufe0f\u200d🔥", "می\u200cروم", "क्\u200dष", "葛\U000e0100"],
)
def test_joiners_stay_where_a_script_has_them(name):
    assert printable(name) == name


def test_long_names_are_cut_and_emoji_are_whole():
    assert printable("x" * 50, 10) == "x" * 9 + "…"
    assert printable("👩\u200d🚀") == "👩\u200d🚀"
    assert printable("\x1b[31m\u202e") == "\\x1b[31m\\u202e"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float32("inf"), None),
        (pd.NaT, None),
        (np.bool_(True), True),
        (pd.Series([1.5, np.nan]), [1.5, None]),
        (pd.Index(["a"]), ["a"]),
        ({1: (np.int64(3), pd.NA)}, {"1": [3, None]}),
        (Decimal(1), "1"),
        (pd.Timestamp("2020-01-02"), "2020-01-02 00:00:00"),
        (np.array(["2020-01-01"], dtype="M8[D]"), ["2020-01-01"]),
    ],
)
def test_values_become_what_json_has_a_word_for(value, plain):
    assert jsonable(value) == plain
    json.dumps(jsonable(value), allow_nan=False)


def test_strictly_other_kinds_and_names_that_clash_are_refused():
    with pytest.raises(TypeError, match=r"value\['a'\]\[0\] must be a mapping, .* got Decimal"):
        jsonable({"a": [Decimal(1)]}, strict=True)
    with pytest.raises(ValueError, match="names that differ as text"):
        jsonable({1: 1, "1": 2})


def test_it_imports_nothing_heavy():
    code = "import sys, apfex.plain; print([m for m in ('numpy', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_names_that_would_be_cut_alike_stay_whole():
    names = ["region of the north", "region of the south", "a region of nothing else", None]
    shown = told_apart(names, 12)
    assert len(set(shown.values())) == len(names)
    assert shown["region of the north"] == "region of the north"
    assert shown["a region of nothing else"] == "a region of…"
    assert told_apart(names, None)["a region of nothing else"] == "a region of nothing else"
