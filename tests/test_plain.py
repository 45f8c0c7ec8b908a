"""Plain values: nothing that a terminal obeys, nothing that JSON has no word for."""

import json
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apfex.plain import jsonable, printable, told_apart


@given(st.text())
def test_what_is_shown_is_printable_and_nothing_else_changes(text):
    shown = printable(text)
    assert shown.replace("\u200d", "").isprintable()
    assert shown == text or not text.replace("\u200d", "").isprintable()


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
