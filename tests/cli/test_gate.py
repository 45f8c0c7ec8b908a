"""Gates are read by a grammar: nothing is evaluated, and what cannot be known is not fine."""

import operator
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.cli._errors import CommandError
from apfex.cli._gate import read_rule

GAPS = pd.DataFrame(
    {
        "criterion": ["dp", "dp", "dp", "tpr", "tpr", "tpr"],
        "by": ["sex", "race", "sex x race"] * 2,
        "gap": [0.10, 0.20, 0.30, 0.02, 0.05, np.nan],
        "lower": [0.05, 0.12, 0.18, 0.00, 0.01, np.nan],
        "upper": [0.16, 0.28, 0.45, 0.04, 0.12, np.nan],
        "p_value": [0.04, 0.01, 0.001, 0.6, 0.3, np.nan],
        "p_adjusted": [0.12, 0.05, 0.006, 1.0, 0.9, np.nan],
        "verdict": [
            *("inconclusive", "violation", "violation"),
            *("within tolerance", "inconclusive", "not estimable"),
        ],
    }
)


def check(text, **options):
    return read_rule(text).check(GAPS, **{"allow_not_estimable": False} | options)


@settings(deadline=None)
@given(
    st.sampled_from(["gap", "lower", "upper", "p_value", "p_adjusted"]),
    st.sampled_from(
        [(">", operator.gt), (">=", operator.ge), ("<", operator.lt), ("<=", operator.le)]
    ),
    st.integers(0, 60).map(lambda n: n / 100),
    st.sampled_from([None, "sex", "race", "sex x race"]),
    st.text(" ", max_size=2),
)
def test_a_rule_holds_where_its_comparison_does(column, sign, bound, by, space):
    level = f"[{by}]" if by else ""
    end = "" if column == "gap" else f".{column}"
    text = f"{space}dp_gap{level}{end}{space}{sign[0]}{space}{bound}"
    rows = GAPS[(GAPS["criterion"] == "dp") & (GAPS["by"].eq(by) | (by is None))]
    assert check(text).hit == bool(sign[1](rows[column], bound).any())


@pytest.mark.parametrize(
    ("text", "hit"),
    [
        ("dp_gap > 0.1", True),
        ("dp_gap[sex] > 0.1", False),
        ("dp_gap.lower > 0.15", True),
        ("dp_gap[sex].lower > 0.05", False),
        ("demographic_parity_gap > 0.29", True),
        ("tpr_gap[race].upper > 0.2", False),
        ("any_gap.lower > .2", True),
        ("violation", True),
        ("dp_gap.p_adjusted < 1e-2", True),
    ],
)
def test_examples(text, hit):
    assert check(text).hit is hit


def test_a_gap_that_is_not_estimable_is_not_fine_unless_allowed():
    assert check("tpr_gap > 0.9").hit
    assert "not estimable" in check("tpr_gap > 0.9").lines()[0]
    allowed = check("tpr_gap > 0.9", allow_not_estimable=True)
    assert not allowed.hit
    assert "not estimable" in allowed.lines()[0]  # and it is still told
    assert check("tpr_gap > 0.01", allow_not_estimable=True).hit


@pytest.mark.parametrize(
    "text",
    [
        *("", "dp_gap", "dp_gap >", "> 0.1", "dp > 0.1", "dp_gap > x", "dp_gap == 0.1"),
        *("dp_gap > 0.1; import os", "__import__('os').system('true')", "dp_gap > 0.1 or 1"),
        *("dp_gap.__class__ > 0.1", "dp_gap.lower.upper > 0.1", "dp_gap[] > 0.1", "1 > dp_gap"),
        *("dp_gap > 0.1 > 0.0", "dp_gap > -0.1", "dp_gap > 1e999999x", "inconclusive > 0"),
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(CommandError, match="--fail-on"):
        read_rule(text)


@settings(deadline=None)
@given(st.text(max_size=40))
def test_no_text_does_anything_but_read_or_be_refused(text):
    with suppress(CommandError):
        assert read_rule(text).text == text.strip()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dpp_gap > 0.1", "did you mean dp_gap"),
        ("dp_gap.lowr > 0.1", "did you mean lower"),
        ("fpr_gap > 0.1", "the criterion 'fpr' is not audited"),
        ("dp_gap[sex x rase] > 0.1", "did you mean 'sex x race'"),
    ],
)
def test_a_rule_about_nothing_is_an_error(text, words):
    with pytest.raises(CommandError, match=words):
        check(text)


def test_what_is_told_is_short_and_worst_first():
    lines = check("any_gap >= 0").lines()
    assert len(lines) == 4
    assert lines[0].startswith("dp by sex x race: 0.300 (0.180 to 0.450)")
    assert lines[-1] == "and 3 more"
    assert check("dp_gap > 0.1").to_dict()["hit"] is True
