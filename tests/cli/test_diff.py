"""``diff``: the change that the library tells, between two folders that are stored."""

import json
import sqlite3

import numpy as np
import pandas as pd
import pytest
from tests.cli.conftest import COLUMNS, TRAINING
from tests.people import people

from apfex.runs import load_audit, load_run

WITH = ["--prediction", "approved", "--positive", "yes", "--sensitive", "sex,race"]


@pytest.fixture
def stored(apfex, decisions, tmp_path):
    """Two audits of different people: the later one selects hardly any women."""
    later = pd.read_csv(decisions).sample(frac=1, random_state=1, ignore_index=True)
    refused = (later["sex"] == "female") & (np.arange(len(later)) % 10 > 0)
    later.assign(approved=later["approved"].mask(refused, "no")).to_csv(
        tmp_path / "later.csv", index=False
    )
    folders = []
    for file in (decisions, tmp_path / "later.csv"):
        folders.append(tmp_path / f"audit-{file.stem}")
        assert apfex("audit", file, *WITH, "--label", "repaid", "--out", folders[-1]).code == 0
    return folders


def test_it_says_what_the_library_says(apfex, stored):
    said = apfex("diff", *stored, "--json")
    assert said.code == 0
    found = json.loads(said.out)
    earlier, now = (load_audit(folder).audit for folder in stored)
    wanted = now.diff(earlier)
    for name in ("gaps", "groups"):
        assert len(found[name]) > 5
        pd.testing.assert_frame_equal(
            pd.DataFrame(found[name]), getattr(wanted, name), check_dtype=False
        )
    assert "larger" in set(wanted.gaps["verdict"])


def test_clear_changes_come_first_and_are_counted(apfex, stored):
    said = apfex("diff", *stored)
    gaps, rates = said.out.split("Gaps between groups")[1].split("Rates of groups")
    counted, _, first = gaps.splitlines()[:3]
    assert "3 larger" in counted
    assert first.split()[:2] == ["dp", "sex"]
    assert first.endswith("larger")
    assert "8 of 16" in rates.splitlines()[0]
    assert rates.splitlines()[2].endswith("smaller")
    assert "decisions.csv, 800 decisions" in said.out
    assert said.err == ""


def test_audits_of_the_same_rows_are_warned_of(apfex, stored):
    said = apfex("diff", stored[0], stored[0] / "run.json")
    assert said.code == 0
    assert "are of the same data" in said.err


def test_what_cannot_be_compared_is_refused(apfex, stored, decisions, tmp_path):
    other = tmp_path / "other"
    assert apfex("audit", decisions, *WITH[:3], "no", *WITH[4:], "--out", other).code == 0
    said = apfex("diff", stored[0], other)
    assert (said.code, "an audit of the same labels" in said.err) == (2, True)
    said = apfex("diff", stored[0], tmp_path / "nowhere")
    assert (said.code, "There is no run" in said.err) == (2, True)


def test_what_a_run_promised_is_compared_with_what_was_decided(apfex, tmp_path):
    people(600).to_csv(tmp_path / "people.csv", index=False)
    people(400, seed=1).to_csv(tmp_path / "new.csv", index=False)
    run, decided, checked = (tmp_path / name for name in ("run", "decided.csv", "checked"))
    assert apfex("explore", tmp_path / "people.csv", *COLUMNS, *TRAINING, "--out", run).code == 0
    assert apfex("predict", run, tmp_path / "new.csv", "--out", decided).code == 0
    done = apfex("audit", decided, *COLUMNS, "--prediction", "prediction", "--out", checked)
    assert done.code == 0
    said = apfex("diff", run, checked)
    assert said.code == 0, said.err
    promised = load_run(run).audit.gaps.query("criterion == 'dp' and by == 'sex'")["gap"].item()
    assert f"{promised:.3f}" in said.out.split("Rates of groups")[0]


@pytest.mark.parametrize(
    ("first", "second", "warning"),
    [
        (["month=5"], ["month=6"], None),
        (["month=5,6"], ["month=7", "sex=male"], None),
        (["month=5"], ["month=5"], "are of the same data; the"),
        (["month=5"], ["month=05"], "some rows may meet the conditions of both"),
        (["month=5"], [], "some rows may meet the conditions of both"),
        (["month=5,6"], ["month=6,7"], "some rows may meet the conditions of both"),
        (["month=5"], ["sex=male"], "some rows may meet the conditions of both"),
    ],
)
def test_conditions_tell_whether_two_audits_of_a_file_share_rows(
    apfex, decisions, tmp_path, first, second, warning
):
    frame = pd.read_csv(decisions)
    frame.assign(month=5 + np.arange(len(frame)) % 3).to_parquet(tmp_path / "d.parquet")
    for name, where in (("a", first), ("b", second)):
        chosen = [word for rule in where for word in ("--where", rule)]
        done = apfex("audit", tmp_path / "d.parquet", *WITH, *chosen, "--out", tmp_path / name)
        assert done.code == 0, done.err
    said = apfex("diff", tmp_path / "a", tmp_path / "b")
    assert said.code == 0
    assert (said.err == "") if warning is None else (warning in " ".join(said.err.split()))
    head = " ".join(said.out.split("Gaps between")[0].split())
    assert f"d.parquet, where month = {' or '.join(first[0][6:].split(','))}, " in head
    if not second:
        assert "d.parquet, 800 decisions" in head


def test_two_tables_of_a_database_are_different_rows(apfex, decisions, tmp_path):
    with sqlite3.connect(tmp_path / "d.sqlite") as connection:
        for table in ("may", "june"):
            pd.read_csv(decisions).to_sql(table, connection, index=False)
    connection.close()
    for name in ("may", "june"):
        words = ["audit", tmp_path / "d.sqlite", *WITH, "--table", name]
        assert apfex(*words, "--out", tmp_path / name).code == 0
    said = apfex("diff", tmp_path / "may", tmp_path / "june")
    assert (said.code, said.err) == (0, "")
    assert "d.sqlite (may), 800 decisions" in " ".join(said.out.split())
