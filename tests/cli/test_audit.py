"""``audit``: the same figures as the library, a gate, and no guesses."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from apfex import audit
from apfex.auditing import Audit

WITH = ["--prediction", "approved", "--positive", "yes", "--sensitive", "sex,race"]


def test_figures_are_those_of_the_library(apfex, decisions):
    said = apfex("audit", decisions, *WITH, "--label", "repaid", "--json")
    assert said.code == 0
    found = pd.DataFrame(json.loads(said.out)["audit"]["gaps"])
    frame = pd.read_csv(decisions)
    wanted = audit(
        frame["repaid"],
        frame["approved"],
        sensitive_features=frame[["sex", "race"]],
        favorable_label="yes",
    )
    pd.testing.assert_frame_equal(found, wanted.gaps, check_dtype=False)


def test_without_labels_there_are_selection_rates_only(apfex, decisions):
    said = apfex("audit", decisions, *WITH)
    assert "none: selection rates only" in said.out
    assert "Without labels: tpr left out." in said.out
    said = apfex("audit", decisions, *WITH, "--criteria", "tpr")
    assert (said.code, "--criteria tpr needs --label" in said.err) == (2, True)


def test_a_weighted_share_says_so(apfex, decisions):
    frame = pd.read_csv(decisions)
    frame["weight"] = np.where(frame["approved"] == "yes", 2.0, 1.0)
    frame.to_csv(decisions, index=False)
    said = apfex("audit", decisions, *WITH, "--weight", "weight")
    share = 2 * (frame["approved"] == "yes").sum() / frame["weight"].sum()
    assert f"({100 * share:.1f}% of all, weighted)" in said.out
    assert "weighted)" not in apfex("audit", decisions, *WITH).out


def test_only_groups_that_get_less_are_listed(apfex, decisions):
    assert "sex=male" not in apfex("audit", decisions, *WITH).out.split("Who gets")[1]
    frame = pd.read_csv(decisions).assign(approved=["yes", "no"] * 400)
    frame.to_csv(decisions, index=False)
    said = apfex("audit", decisions, *WITH)
    assert "None of these is clearly worse off than all rows." in said.out
    groups = frame.groupby(["sex", "race"]).cumcount()
    frame = frame[groups < 150].assign(approved=np.where(groups[groups < 150] % 2, "yes", "no"))
    frame.to_csv(decisions, index=False)
    said = apfex("audit", decisions, *WITH)
    assert "All groups get the decision yes equally often (50.0% of all)" in said.out


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("dp_gap > 0.05", 1),
        ("dp_gap > 0.9", 0),
        ("dp_gap.lower > 0.05", 1),
        ("dp_gap[race] > 0.1", 0),
        ("dp_gap[sex].lower > 0.05", 1),
        ("violation", 1),
    ],
)
def test_a_gate_decides_the_exit_code(apfex, decisions, rule, code):
    said = apfex("audit", decisions, *WITH, "--fail-on", rule)
    assert said.code == code
    assert f"{'HIT ' if code else 'pass'}  {rule}" in said.out
    document = json.loads(apfex("audit", decisions, *WITH, "--fail-on", rule, "--json").out)
    assert document["hit"] is bool(code)


def test_several_gates_are_all_told(apfex, decisions):
    rules = ["--fail-on", "dp_gap > 0.9", "--fail-on", "dp_gap > 0.05"]
    said = apfex("audit", decisions, *WITH, *rules)
    assert said.code == 1
    assert "pass  dp_gap > 0.9" in said.out
    assert "HIT   dp_gap > 0.05" in said.out


def test_a_gap_that_is_not_estimable_hits_unless_allowed(apfex, tmp_path):
    path = tmp_path / "d.csv"
    pd.DataFrame({"g": ["a"] * 50 + ["b"] * 3, "d": [0, 1] * 26 + [1]}).to_csv(path, index=False)
    arguments = [
        "audit",
        path,
        "--prediction",
        "d",
        "--sensitive",
        "g",
        "--fail-on",
        "dp_gap > 0.5",
    ]
    said = apfex(*arguments)
    assert (said.code, "not estimable, too few rows" in said.out) == (1, True)
    said = apfex(*arguments, "--allow-not-estimable")
    assert (said.code, "not estimable, too few rows" in said.out) == (0, True)


def test_scores_need_a_threshold(apfex, decisions):
    scores = ["audit", decisions, "--prediction", "score", "--sensitive", "sex"]
    said = apfex(*scores)
    assert said.code == 2
    assert "must hold decisions, got numbers from" in said.err
    assert "--threshold 0" in said.err
    said = apfex(*scores, "--threshold", "0.6", "--json")
    document = json.loads(said.out)["audit"]
    plain = json.loads(apfex("audit", decisions, *WITH[:4], "--sensitive", "sex", "--json").out)
    assert document["gaps"] == plain["audit"]["gaps"]
    assert document["thresholds"]
    said = apfex("audit", decisions, *WITH, "--threshold", "0.5")
    assert (said.code, "--threshold needs numbers" in said.err) == (2, True)


def test_what_is_proposed_can_be_typed(apfex, tmp_path):
    frame = pd.DataFrame({"g": ["a", "b"] * 2, "s": [0.1, 0.25, 0.5, 1.0]})
    frame["d"] = ["bad", "bad", "good one", "good one"]
    frame.to_csv(tmp_path / "d.csv", index=False)
    for column, typed in (("s", "--threshold 0.5"), ("d", "--positive 'good one'")):
        said = apfex("audit", tmp_path / "d.csv", "--prediction", column, "--sensitive", "g")
        assert said.err.rstrip().endswith(f"for instance {typed}")


def test_rows_without_a_decision_are_not_left_out_unasked(apfex, decisions):
    frame = pd.read_csv(decisions)
    frame.loc[:9, "approved"] = None
    frame.loc[5:11, "repaid"] = None
    frame.to_csv(decisions, index=False)
    said = apfex("audit", decisions, *WITH, "--label", "repaid")
    assert said.code == 2
    assert "no value of approved in 10 and of repaid in 7 of 800 rows" in said.err
    assert said.err.rstrip().endswith("leave these rows out: --drop-missing")
    said = apfex("audit", decisions, *WITH, "--label", "repaid", "--drop-missing")
    assert "788 rows; 12 without a value dropped" in said.out


def test_a_folder_has_page_json_and_record(apfex, decisions, tmp_path):
    out = tmp_path / "audited"
    said = apfex("audit", decisions, *WITH, "--out", out)
    assert str(out / "report.html") in said.out
    assert sorted(p.name for p in out.iterdir()) == ["audit.json", "report.html", "run.json"]
    assert Audit.from_json((out / "audit.json").read_text()).n_rows == 800
    (out / "report.html").unlink()
    assert apfex("report", out).code == 0
    assert (out / "report.html").exists()
    said = apfex("audit", decisions, *WITH, "--out", out)
    assert (said.code, "exists already" in said.err) == (2, True)


def test_names_from_data_are_text(apfex, tmp_path):
    names = ["[red]x[/red]", "<b>", 'a "q" b', "👩‍🚀", "\u202eevil", "=1+1", "שלום", "\x1b[31m"]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"[bold]g": rng.choice(names, 900), "d": rng.integers(0, 2, 900)})
    frame.to_parquet(tmp_path / "d.parquet")
    arguments = ["audit", tmp_path / "d.parquet", "--prediction", "d", "--sensitive", "[bold]g"]
    said = apfex(*arguments, "--out", tmp_path / "out")
    assert said.code == 0
    assert "[bold]g" in said.out
    assert not {"\u202e", "\x1b"} & set(said.out)
    found = json.loads(apfex(*arguments, "--json").out)["audit"]["groups"]
    assert any("[red]x[/red]" in row["group"] for row in found)
    assert "<b>" not in (tmp_path / "out" / "report.html").read_text().replace("<body>", "")


def test_many_levels_are_audited_with_a_warning(apfex, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(0, 2000, 6000), "d": rng.integers(0, 2, 6000)})
    frame.to_csv(tmp_path / "d.csv", index=False)
    arguments = ["audit", tmp_path / "d.csv", "--prediction", "d", "--sensitive", "age"]
    said = apfex(*arguments)
    assert said.code == 0
    assert (
        "a number with 1,899 different values; to put them into ranges: --bins age=670,1300"
        in said.err
    )
    assert len(said.out.splitlines()) < 30
    assert "3 groups" in apfex(*arguments, "--bins", "age=670,1300").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--prediction", "aproved", "--sensitive", "sex"], "did you mean 'approved'?"),
        (["--prediction", "approved", "--sensitive", "sex"], "--positive yes"),
        (["--prediction", "approved", "--positive", "yes"], "--sensitive must name columns"),
        ([*WITH, "--label", "approved"], "--prediction and --label must name different columns"),
        ([*WITH, "--fail-on", "tpr_gap > 0.9"], "the criterion 'tpr' is not audited"),
        ([*WITH, "--fail-on", "dp > 1"], "--fail-on must read as"),
        ([*WITH, "--confidence", "2"], "confidence must lie between 0.5 and 0.999"),
        ([*WITH, "--bins", "age=3"], "not among --sensitive"),
        (["--sensitive", "sex"], "Missing option '--prediction'"),
    ],
)
def test_bad_options_are_told(apfex, decisions, tmp_path, arguments, words):
    said = apfex("audit", decisions, "--out", tmp_path / "out", *arguments)
    assert said.code == 2
    assert words in said.err
    assert not (tmp_path / "out").exists()


def test_groups_and_bins_in_words(apfex, tmp_path):
    frame = pd.DataFrame(
        {"age": [20, 30, 30, 60, 60], "a=b": [0, 2, 2, 2, 2], "d": [0, 1, 0, 1, 0]}
    )
    frame.assign(race=["\u202eB", *"BBBB"]).to_csv(tmp_path / "d.csv", index=False)
    arguments = ["audit", tmp_path / "d.csv", "--prediction", "d", "--sensitive", "age,a=b,race"]
    arguments += ["--bins", "age=25,45.5", "--bins", "a=b=1"]
    said = apfex(*arguments).out
    smallest = "3 groups, the smallest has 1 row (age=under 25, a=b=under 1, race="
    assert f"age (3) x a=b (2) x race (2): {smallest}" in said
    assert "\u202e" not in said
    groups = json.loads(apfex(*arguments, "--json").out)["audit"]["groups"]
    assert "age=45.5 and over" in [row["group"] for row in groups]


def test_one_group_is_none(apfex, tmp_path):
    (tmp_path / "d.csv").write_text("g,d\na,1\na,0\n")
    said = apfex("audit", tmp_path / "d.csv", "--prediction", "d", "--sensitive", "g")
    assert (said.code, "--sensitive must tell groups apart" in said.err) == (2, True)


@pytest.fixture
def worded(tmp_path, monkeypatch):
    """Decisions and labels in different words, in the folder where commands are typed."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["female", "male"], 900)
    p = rng.random(900)
    frame = pd.DataFrame({"sex": sex, "race": rng.choice(["a", "b"], 900), "p": p})
    frame["age"] = rng.integers(18, 80, 900)
    decided = p + 0.3 * (sex == "male") > 0.6
    frame["decision"] = np.where(decided, "approved", "declined")
    frame["repaid"] = np.where(rng.random(900) < p, "Y", "N")
    frame.to_csv(tmp_path / "decisions.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


DECIDED = ["--prediction", "decision", "--positive-prediction", "approved"]
LABELLED = [*DECIDED, "--label", "repaid", "--positive", "Y"]


@pytest.mark.usefixtures("worded")
def test_the_command_of_the_readme_works_as_printed(apfex):
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    command = re.search(r"^apfex (audit decisions.csv .*(?:\n    .*)+)", text, flags=re.M)
    assert command
    said = apfex(*shlex.split(command[1].replace("\\\n", " "), comments=True))
    assert said.code == 1
    assert "decision, positive: approved" in said.out
    assert "repaid, positive: Y" in said.out
    assert "HIT   dp_gap.lower > 0.05" in said.out


@pytest.mark.usefixtures("worded")
def test_the_worst_verdict_comes_first(apfex):
    said = apfex("audit", "decisions.csv", *LABELLED, "--sensitive", "sex,race")
    assert said.out.startswith("The gap exceeds the limit: ")
    document = json.loads(
        apfex("audit", "decisions.csv", *LABELLED, "--sensitive", "sex,race", "--json").out
    )
    summary = document["audit"]["summary"]
    assert said.out.startswith(summary["text"])
    assert summary["verdict"] == "violation"
    assert "2 of 2" in said.out
    assert "Nothing is written; for a page and JSON add --out FOLDER." in said.out


@pytest.mark.usefixtures("worded")
def test_words_that_differ_are_told_with_what_helps(apfex):
    plain = ["--prediction", "decision", "--label", "repaid", "--sensitive", "sex"]
    said = apfex("audit", "decisions.csv", *plain)
    assert said.code == 2
    options = said.err.rstrip().rpartition("for instance ")[2]
    assert options == "--positive-prediction approved --positive Y"
    assert apfex("audit", "decisions.csv", *plain, *shlex.split(options)).code == 0


@pytest.mark.usefixtures("worded")
def test_metrics_scores_and_strata_are_typed(apfex):
    arguments = ["audit", "decisions.csv", *LABELLED, "--sensitive", "sex,race", "--score", "p"]
    arguments += ["--metrics", "auc,precision", "--control", "age", "--bin", "age=40"]
    said = apfex(*arguments)
    assert said.code == 0
    assert "Metrics by group" in said.out
    assert "Gaps within strata" in said.out
    assert "40 and over" in said.out
    found = json.loads(apfex(*arguments, "--json").out)["audit"]
    assert {row["metric"] for row in found["metrics"]} == {
        "auc",
        "precision",
        "brier",
        "calibration",
    }
    assert {row["age"] for row in found["gaps_within"]} == {"under 40", "40 and over"}
    assert found["calibration"]
    assert found["thresholds"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--metrics", "auc"], "--metrics auc needs a column with scores of the positive label: "),
        (["--metrics", "acu"], "there is no 'acu'; did you mean 'auc'?"),
        (["--score", "race"], "--score race must hold numbers"),
        (["--score", "p", "--threshold", "0.5"], "--score must not be given with --threshold"),
        (["--fail-on", "dp_gap.lower > 5"], "--fail-on 'dp_gap.lower > 5' must have a number"),
        (["--threshold", "nan"], "--threshold must be a finite number, got nan"),
        (["--threshold", "inf"], "--threshold must be a finite number, got inf"),
        (["--bins", "p=0.5,nan"], "--bins must have finite numbers for 'p'"),
        (["--bins", "p=0.5,inf"], "--bins must have finite numbers for 'p'"),
        (["--control", "sex"], "--control sex is among --sensitive"),
        (["--control", "p"], "--control must form at most 200 strata, got 900"),
        (["--control", "aeg"], "did you mean 'age'?"),
    ],
)
@pytest.mark.usefixtures("worded")
def test_what_metrics_and_strata_lack_is_told(apfex, arguments, words):
    said = apfex("audit", "decisions.csv", *LABELLED, "--sensitive", "sex", *arguments)
    assert (said.code, words in said.err) == (2, True)


@pytest.mark.usefixtures("worded")
def test_metrics_of_labels_need_labels(apfex):
    said = apfex("audit", "decisions.csv", *DECIDED, "--sensitive", "sex", "--metrics", "recall")
    assert (said.code, "recall needs the true outcome: --label" in said.err) == (2, True)


@pytest.mark.usefixtures("worded")
def test_rows_without_a_score_are_told(apfex):
    frame = pd.read_csv("decisions.csv")
    frame.loc[:4, "p"] = None
    frame.to_csv("decisions.csv", index=False)
    arguments = ["audit", "decisions.csv", *LABELLED, "--sensitive", "sex", "--score", "p"]
    said = apfex(*arguments)
    assert (said.code, "has no value of p in 5 of 900 rows" in said.err) == (2, True)
    assert "895 rows; 5 without a value dropped" in apfex(*arguments, "--drop-missing").out


def test_where_it_went_is_an_absolute_path(apfex, worded):
    said = apfex("audit", "decisions.csv", *DECIDED, "--sensitive", "sex", "--out", "audited")
    assert str(worded / "audited" / "report.html") in said.out
    said = apfex("audit", "decisions.csv", *DECIDED, "--sensitive", "sex", "--json", "--out", "b")
    assert json.loads(said.out)["folder"] == str(worded / "b")


@pytest.mark.usefixtures("worded")
def test_names_are_whole_in_a_pipe(apfex):
    long = "a very long name of a level that goes on and on for far too long for a column, "
    frame = pd.read_csv("decisions.csv")
    frame["sex"] = np.where(frame["sex"] == "female", long + "one", long + "two")
    frame.to_csv("decisions.csv", index=False)
    said = apfex("audit", "decisions.csv", *DECIDED, "--sensitive", "sex,race")
    assert f"{long}one" in said.out.partition("Who gets the decision")[2]


def test_larger_groups_that_are_clearly_worse_off_are_named(apfex, tmp_path):
    place = np.random.default_rng(0).permutation(np.tile(np.arange(12), 10))
    frame = pd.DataFrame({"sex": np.repeat(["F", "M"], 60), "place": place})
    frame["got"] = np.r_[np.tile([0, 0, 0, 1], 15), np.tile([0, 1, 1, 1], 15)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    said = apfex("audit", tmp_path / "t.csv", "--prediction", "got", "--sensitive", "sex,place").out
    assert "None of these is clearly worse off than all rows." in said
    assert "Larger groups that are clearly worse off than all rows: sex=F (25.0%)." in said


def test_a_sheet_of_an_excel_file_is_audited(apfex, decisions, tmp_path):
    pytest.importorskip("openpyxl")
    frame = pd.read_csv(decisions)
    with pd.ExcelWriter(tmp_path / "d.xlsx") as book:
        frame.to_excel(book, sheet_name="made", index=False)
        frame.head(3).to_excel(book, sheet_name="other", index=False)
    said = apfex("audit", tmp_path / "d.xlsx", *WITH)
    assert (said.code, "--sheet" in said.err) == (2, True)
    out = tmp_path / "run"
    said = apfex("audit", tmp_path / "d.xlsx", *WITH, "--sheet", "made", "--out", out)
    assert f"sheet made), {len(frame):,} rows" in said.out
    assert json.loads((out / "run.json").read_text())["settings"]["sheet"] == "made"
    assert "Excel" in apfex("audit", "--help").out


def test_all_is_written_though_nobody_reads_what_is_said(decisions, tmp_path):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "apfex", "audit", str(decisions), *WITH]
    command += ["--out", str(tmp_path / "audited"), "--markdown", str(tmp_path / "summary.md")]
    with os.fdopen(write, "w") as nobody:
        code = subprocess.run(command, stdout=nobody, stderr=subprocess.DEVNULL).returncode
    assert code == 141  # as of a program that a broken pipe ends
    assert (tmp_path / "audited" / "report.html").exists()
    assert "sex" in (tmp_path / "summary.md").read_text(encoding="utf-8")
