"""A violation never stands without a word on the few cases it rests on, wherever it is shown."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apfex import audit
from apfex.auditing import Audit, audit_table
from apfex.cli import main
from apfex.report import write_audit_page
from apfex.runs import check_gates
from apfex.testing import assert_gap

SEX, DECIDED = ["F"] * 10 + ["M"] * 1_000, [1] + [0] * 1_009
CASES = "1 of 10 rows of sex=F"


@pytest.fixture(scope="module")
def table():
    return pd.DataFrame({"sex": SEX, "decided": DECIDED, "part": "all"})


def of_one_case(**more: Any):
    people = {"sex": SEX}
    return audit(None, DECIDED, sensitive_features=people, criteria="dp", tolerance=0.0, **more)


WAYS = {
    "in memory": lambda _: of_one_case(),
    "in an engine": lambda table: audit_table(
        table, prediction="decided", sensitive="sex", criteria="dp", tolerance=0.0
    ),
    "from scores": lambda table: audit_table(
        table.assign(score=table["decided"] * 0.9),
        prediction="score",
        threshold=0.5,
        sensitive="sex",
        criteria="dp",
        tolerance=0.0,
    ),
    "from JSON": lambda _: Audit.from_json(of_one_case().to_json()),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_single_case_is_told(way, table):
    found = WAYS[way](table)
    assert found.gaps["verdict"].tolist() == ["violation"]
    assert found.gaps["rests_on"].tolist() == [CASES]
    assert found.summary.few_cases
    assert f"Mind that this rests on {CASES}." in found.summary.text
    assert any(CASES in note for note in found.notes)
    for shown in (str(found), found.to_html(), found.to_markdown()):
        plain = shown.replace("\\", "").replace("\n", " ").replace("<bdi>", "")
        assert plain.count(CASES) >= 2


def test_a_single_case_is_told_within_strata(table):
    found = of_one_case(control_features={"part": table["part"]})
    assert found.gaps_within is not None
    assert found.gaps_within["rests_on"].tolist() == [CASES]
    assert any(f"dp by sex within part=all ({CASES})" in note for note in found.notes)


def test_a_headline_of_a_stratum_tells_it():
    part = ["u"] * 505 + ["v"] * 505
    people = {"sex": ["F"] * 10 + ["M"] * 495 + ["F"] * 300 + ["M"] * 205}
    found = audit(
        None, DECIDED, sensitive_features=people, criteria="dp", tolerance=0.0,
        control_features={"part": part},
    )  # fmt: skip
    assert found.summary.stratum == "part=u"
    assert f"Mind that this rests on {CASES}." in found.summary.text.split("Of the 2 strata")[0]


def test_gates_tell_it():
    found = of_one_case()
    for result in check_gates(found, ["violation", "dp_gap.lower > 0"]):
        assert result.hit
        assert result.lines()[0].endswith(f"resting on {CASES}")
        assert result.to_dict()["gaps"][0]["rests_on"] == CASES
    with pytest.raises(AssertionError, match=CASES):
        assert_gap(found)


def test_page_terminal_and_json_tell_it(table, tmp_path, capsys):
    page = write_audit_page(of_one_case(), tmp_path / "page.html").read_text()
    assert page.count(CASES) >= 2
    file = tmp_path / "decisions.csv"
    table.to_csv(file, index=False)
    words = [
        "audit", str(file), "--prediction", "decided", "--positive-prediction", "1",
        "--sensitive", "sex", "--criteria", "dp", "--tolerance", "0", "--fail-on", "violation",
    ]  # fmt: skip
    assert main(words) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count(CASES) >= 3  # headline, note and gate
    assert main([*words, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["rules"][0]["gaps"][0]["rests_on"] == CASES
    assert told["audit"]["gaps"][0]["rests_on"] == CASES


@given(
    st.integers(10, 60),
    st.integers(10, 1_500),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from([0.0, 0.02, 0.1]),
)
def test_no_violation_rests_on_few_cases_silently(n, m, p, q, tolerance):
    x, y = round(n * p), round(m * q)
    decided = np.r_[np.arange(n) < x, np.arange(m) < y].astype(int)
    people = {"sex": np.repeat(["F", "M"], [n, m])}
    found = audit(None, decided, sensitive_features=people, criteria="dp", tolerance=tolerance)
    few = min(x, m - y) < 5 if x / n > y / m else min(n - x, y) < 5
    expected = few and found.gaps["verdict"].iloc[0] == "violation"
    assert found.gaps["rests_on"].notna().iloc[0] == expected
    assert found.summary.few_cases == expected
