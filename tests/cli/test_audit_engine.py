"""``audit`` where an engine counts: the same words and figures as in memory."""

import json
import sqlite3

import duckdb
import numpy as np
import pandas as pd
import pytest

from apfex.runs import RunWarning, audit_file
from apfex.runs import _audit_engine as engine

WITH = ["--prediction", "approved", "--positive", "yes", "--sensitive", "sex,race"]
MORE = ["--label", "repaid", "--score", "score", "--control", "race2", "--weight", "weight"]


@pytest.fixture
def frame(decisions):
    frame = pd.read_csv(decisions)
    rng = np.random.default_rng(0)
    frame["age"] = rng.integers(18, 80, len(frame))
    frame["weight"] = rng.uniform(0.5, 2, len(frame))
    frame["race2"] = frame["race"].where(rng.random(len(frame)) > 0.1)
    return frame


def documents(apfex, monkeypatch, path, *words):
    """What the engine says, and what memory says."""
    found = apfex("audit", path, *words, "--json")
    monkeypatch.setattr("apfex.runs._audit.wants_engine", lambda *_: False)
    wanted = apfex("audit", path, *words, "--json")
    monkeypatch.undo()
    assert (found.code, wanted.code) == (0, 0), found.err
    return found, wanted


@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--label", "repaid", "--bins", "age=25,45,65", "--sensitive", "age"],
        [*MORE, "--metrics", "precision,log_loss"],
    ],
)
def test_a_parquet_file_is_counted_as_in_memory(apfex, monkeypatch, frame, tmp_path, more):
    if "--score" in more:
        frame["score"] = frame["score"].clip(0, 1)
    frame.to_parquet(tmp_path / "d.parquet")
    found, wanted = documents(apfex, monkeypatch, tmp_path / "d.parquet", *WITH, *more)
    ours, theirs = (json.loads(one.out)["audit"] for one in (found, wanted))
    for name in ("gaps", "groups", "thresholds", "metrics", "calibration", "gaps_within"):
        if theirs[name] is None:
            assert ours[name] is None
            continue
        frames = pd.DataFrame(ours[name]), pd.DataFrame(theirs[name])
        pd.testing.assert_frame_equal(*frames, rtol=1e-9)
    assert ours["counts"]["rows"] == theirs["counts"]["rows"]
    renamed = [note.replace("as score", "as y_score") for note in ours["notes"]]
    assert renamed == theirs["notes"]
    assert found.err.split("{")[0] == wanted.err.split("{")[0]


def test_words_on_the_terminal_are_the_same(apfex, monkeypatch, frame, tmp_path):
    frame.to_parquet(tmp_path / "d.parquet")
    words = ["audit", tmp_path / "d.parquet", *WITH, "--label", "repaid"]
    found = apfex(*words)
    monkeypatch.setattr("apfex.runs._audit.wants_engine", lambda *_: False)
    assert found == apfex(*words)


def test_an_auc_of_one_file_is_read_from_its_rows(apfex, frame, tmp_path):
    frame.to_parquet(tmp_path / "d.parquet")
    asked = ["--label", "repaid", "--score", "score", "--metrics", "auc"]
    said = apfex("audit", tmp_path / "d.parquet", *WITH, *asked)
    assert (said.code, "auc" in said.out) == (0, True)
    said = apfex("audit", f"{tmp_path}/*.parquet", *WITH, *asked)
    assert said.code == 2
    assert "metrics must follow from sums over rows in an engine" in said.err


def parts(frame, folder):
    for month, part in (("5", frame[:500]), ("6", frame[500:])):
        (folder / f"month={month}").mkdir(parents=True)
        part.to_parquet(folder / f"month={month}" / "part.parquet")


def test_a_glob_a_folder_and_a_month_of_it(apfex, frame, tmp_path):
    parts(frame, tmp_path / "data")
    said = apfex("audit", f"{tmp_path}/data/*/*.parquet", *WITH)
    assert "(2 Parquet files), 800 rows" in said.out
    said = apfex("audit", tmp_path / "data", *WITH, "--where", "month=5", "--out", tmp_path / "may")
    assert "where month = 5, 500 rows" in said.out
    record = json.loads((tmp_path / "may" / "run.json").read_text())
    assert record["data"]["rows"] == 500
    assert len(record["data"]["sha256"]) == 64
    assert (tmp_path / "may" / "report.html").exists()
    said = apfex("audit", tmp_path / "data", *WITH, "--where", "mnth=5")
    assert (said.code, "did you mean 'month'" in said.err) == (2, True)
    said = apfex("audit", tmp_path / "data", *WITH, "--where", "month")
    assert (said.code, "--where must be a column and" in said.err) == (2, True)


@pytest.mark.parametrize("form", ["duckdb", "sqlite"])
def test_a_database_file(apfex, frame, tmp_path, form):
    path = tmp_path / "d.db"
    if form == "sqlite":
        with sqlite3.connect(path) as con:
            frame.to_sql("decisions", con, index=False)
        con.close()
    else:
        frame.to_parquet(tmp_path / "d.parquet")
        with duckdb.connect(str(path)) as con:
            con.execute(f"CREATE TABLE decisions AS FROM '{tmp_path}/d.parquet'")
            con.execute("CREATE TABLE others AS SELECT 1 AS one")
        said = apfex("audit", path, *WITH)
        assert (said.code, "has 2 tables (decisions, others)" in said.err) == (2, True)
    said = apfex("audit", path, *WITH, "--table", "decisions", "--label", "repaid")
    assert (said.code, "800 rows" in said.out) == (0, True)


def test_a_large_csv_file_is_not_read_into_memory(apfex, monkeypatch, decisions):
    wanted = apfex("audit", decisions, *WITH, "--label", "repaid")
    monkeypatch.setattr(engine, "_LARGE", 10)
    monkeypatch.setattr("apfex.runs._audit.open_table", lambda *_: 1 / 0)
    assert apfex("audit", decisions, *WITH, "--label", "repaid") == wanted


def test_rows_without_a_value_are_told_and_dropped(apfex, frame, tmp_path):
    frame.loc[:9, "approved"] = None
    frame.loc[5:11, "repaid"] = None
    frame.loc[20:21, "score"] = np.nan
    frame.to_parquet(tmp_path / "d.parquet")
    asked = ["audit", tmp_path / "d.parquet", *WITH, "--label", "repaid", "--score", "score"]
    said = apfex(*asked)
    assert said.code == 2
    assert "approved in 10 and of repaid in 7 and of score in 2 of 800 rows" in said.err
    assert said.err.rstrip().endswith("leave these rows out: --drop-missing")
    said = apfex(*asked, "--drop-missing")
    assert "786 rows; 14 without a value dropped" in said.out
    frame["repaid"] = None
    frame.assign(repaid=frame["repaid"].astype("string")).to_parquet(tmp_path / "d.parquet")
    said = apfex(*asked, "--drop-missing")
    assert (said.code, "--label repaid has no values at all" in said.err) == (2, True)


def test_scores_and_thresholds(apfex, monkeypatch, frame, tmp_path):
    frame.to_parquet(tmp_path / "d.parquet")
    words = [*WITH[2:4], "--prediction", "score", "--sensitive", "sex", "--label", "repaid"]
    said = apfex("audit", tmp_path / "d.parquet", *words)
    assert (said.code, "must hold decisions, got numbers from" in said.err) == (2, True)
    given = [*words, "--threshold", "0.6"]
    found, wanted = documents(apfex, monkeypatch, tmp_path / "d.parquet", *given)
    ours, theirs = (json.loads(one.out)["audit"] for one in (found, wanted))
    assert ours["gaps"] == theirs["gaps"]
    assert ours["thresholds"] == theirs["thresholds"]


def test_numbers_with_many_values_propose_the_same_bins(frame, tmp_path):
    frame.to_parquet(tmp_path / "d.parquet")
    said = []
    for source in (tmp_path / "d.parquet", frame):
        with pytest.warns(RunWarning, match="age is a number with") as caught:
            audit_file(
                source, prediction="approved", positive="yes", sensitive="age", criteria="dp"
            )
        said.append(str(caught[0].message))
    assert said[0] == said[1]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_several_conditions_hold_together(apfex, frame, tmp_path, ending):
    frame = frame.assign(month=np.arange(len(frame)) % 6, year=np.arange(len(frame)) % 2 + 2024)
    path = tmp_path / f"dated.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    words = ["--prediction", "approved", "--positive", "yes", "--sensitive", "sex", "--json"]
    rules = ["--where", "race=a", "--where", "month=1,2,3", "--where", "year=2024"]
    said = apfex("audit", path, *words, *rules)
    assert said.code == 0, said.err
    assert "Warning" not in said.err
    chosen = frame[
        (frame["race"] == "a") & frame["month"].isin([1, 2, 3]) & (frame["year"] == 2024)
    ]
    rates = (chosen["approved"] == "yes").groupby(chosen["sex"]).mean()
    found = json.loads(said.out)["audit"]
    assert found["gaps"][0]["gap"] == pytest.approx(rates.max() - rates.min())
    assert found["n_rows"] == len(chosen)


def test_of_several_values_those_that_no_row_has_are_named(apfex, frame, tmp_path):
    path = tmp_path / "months.parquet"
    frame.assign(month=np.arange(len(frame)) % 2 + 5).to_parquet(path)
    said = apfex("audit", path, *WITH, "--where", "month=5,6")
    assert "no row has" not in said.err
    said = apfex("audit", path, *WITH, "--where", "month=5,7")
    assert said.code == 0
    assert "where names '7' of month, which no row has, so that only the rows" in said.err
    assert "month has 5, 6." in said.err
