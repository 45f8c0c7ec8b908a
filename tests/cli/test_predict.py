"""``predict``: the model's own decisions, in the words of the file."""

import csv
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from tests.people import people

from apfex import load


@pytest.fixture
def new(tmp_path):
    path = tmp_path / "new.csv"
    frame = people(60, seed=1).drop(columns=["sex", "origin", "hired"])
    frame.insert(0, "id", [f"{i:04}" for i in range(60)])
    frame.to_csv(path, index=False)
    return path


def read(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("point", [None, 0, 1])
def test_decisions_are_those_of_the_point(apfex, finished, new, tmp_path, point):
    out = tmp_path / "out.csv"
    chosen = [] if point is None else ["--point", point]
    said = apfex("predict", finished, new, *chosen, "--out", out)
    assert said.code == 0
    clf = load(finished / "model")
    clf = clf if point is None else clf.at(point)
    frame = pd.read_csv(new)[list(clf.feature_names_in_)]
    words = {"0 = rejected": "rejected", "1 = hired": "hired"}
    rows = read(out)
    assert [row["prediction"] for row in rows] == [words[w] for w in clf.predict(frame)]
    assert [float(row["probability"]) for row in rows] == clf.predict_proba(frame)[:, 1].tolist()
    assert f"by point {clf.point_}" in said.out


def test_cells_stay_and_formulas_are_made_safe(apfex, finished, new, tmp_path):
    said = apfex("predict", finished, new, "--out", tmp_path / "out.csv")
    before, after = read(new), read(tmp_path / "out.csv")
    assert [row["id"] for row in before] == [row["id"] for row in after]
    assert [row["merit_1"] for row in before] == [row["merit_1"] for row in after]
    changed = [b["town"] for b, a in zip(before, after, strict=True) if a["town"] != b["town"]]
    assert set(changed) == {"=HYPERLINK(1)"}
    assert f"{len(changed)} cells of text have =, +, -, @ or a control character" in said.err
    assert "at the start, or after ; , | a tab or a line end" in said.err
    assert "apostrophe" in said.err


def test_parquet_in_parquet_out(apfex, finished, new, tmp_path):
    frame = pd.read_csv(new, dtype={"id": "str"})
    frame.to_parquet(tmp_path / "new.parquet")
    apfex("predict", finished, tmp_path / "new.parquet", "--out", tmp_path / "out.parquet")
    apfex("predict", finished, new, "--out", tmp_path / "out.csv")
    one, two = pd.read_parquet(tmp_path / "out.parquet"), pd.read_csv(tmp_path / "out.csv")
    assert one["prediction"].tolist() == two["prediction"].tolist()
    assert np.allclose(one["probability"], two["probability"], rtol=0, atol=0)
    assert one["town"].tolist() == frame["town"].tolist()  # nothing to run in Parquet


def test_text_that_looks_like_numbers_is_still_text(apfex, finished, new, tmp_path):
    frame = pd.read_csv(new).assign(town=12)
    frame.to_csv(new, index=False)
    assert apfex("predict", finished, new, "--out", tmp_path / "out.csv").code == 0


def test_nothing_is_replaced_without_force(apfex, finished, new, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert apfex("predict", finished, new).code == 0
    before = (tmp_path / "new-predictions.csv").read_bytes()
    said = apfex("predict", finished, new, "--point", 0)
    assert (said.code, "exists already" in said.err) == (2, True)
    assert (tmp_path / "new-predictions.csv").read_bytes() == before
    assert apfex("predict", finished, new, "--point", 0, "--force").code == 0
    said = apfex("predict", finished, new, "--out", new, "--force")
    assert (said.code, "must not be" in said.err) == (2, True)


def test_stdout_is_csv_alone(apfex, finished, new):
    said = apfex("predict", finished, new, "--out", "-")
    assert len(list(csv.DictReader(said.out.splitlines()))) == 60
    assert "60 rows decided" in said.err
    said = apfex("predict", finished, new, "--out", "-", "--json")
    assert (said.code, "both want stdout" in said.err) == (2, True)


def test_json(apfex, finished, new, tmp_path):
    said = apfex("predict", finished, new, "--out", tmp_path / "o.csv", "--json")
    assert json.loads(said.out)["rows"] == 60


@pytest.mark.parametrize(
    ("change", "arguments", "words"),
    [
        ({"drop": "town"}, [], "lacks columns of the run: town."),
        ({"rename": ("town", "Town ")}, [], "is 'Town ' meant to be town?"),
        ({"text": "merit_1"}, [], "merit_1 must hold numbers as it did in the run, got 'about 3'"),
        ({"add": "prediction"}, [], "has a column 'prediction' already"),
        ({}, ["--point", "99"], "--point must be from 0 to"),
        ({}, ["--out", "no/such/place.csv"], "needs the folder"),
        ({"text": "merit_1", "cell": "inf"}, [], "in 1 rows; empty these cells.\n"),
        ({}, ["--out", "out.xlsx"], "out.xlsx must end in .csv, .parquet or .arrow, as Excel"),
        ({}, ["--out", "out.json"], "out.json must end in .csv, .parquet or .arrow, so that"),
        ({}, ["--out", "."], "is a folder"),
    ],
)
def test_bad_rows_and_options(apfex, finished, new, change, arguments, words):
    frame = pd.read_csv(new)
    if "drop" in change:
        frame = frame.drop(columns=change["drop"])
    if "rename" in change:
        frame = frame.rename(columns=dict([change["rename"]]))
    if "text" in change:
        frame = frame.astype({change["text"]: object})
        frame.loc[7, change["text"]] = change.get("cell", "about 3")
    if "add" in change:
        frame[change["add"]] = 1
    frame.to_csv(new, index=False)
    said = apfex("predict", finished, new, *arguments)
    assert said.code == 2
    assert words in said.err


def test_another_prefix_keeps_both(apfex, finished, new, tmp_path):
    pd.read_csv(new).assign(prediction="old").to_csv(new, index=False)
    said = apfex("predict", finished, new, "--prefix", "new_", "--out", tmp_path / "o.csv")
    assert said.code == 0
    assert read(tmp_path / "o.csv")[0]["prediction"] == "old"
    assert "new_prediction" in read(tmp_path / "o.csv")[0]


def test_what_is_no_run_is_told(apfex, new, tmp_path):
    (tmp_path / "half").mkdir()
    said = apfex("predict", tmp_path / "half", new)
    assert (said.code, "it has no run.json, so it was not finished" in said.err) == (2, True)
    assert "There is no run" in apfex("predict", tmp_path / "none", new).err
    other = tmp_path / "half" / "run.json"
    other.write_text('{"kind": "apfex.run", "schema_version": 99, "versions": {"apfex": "9.0"}}')
    assert "use the version that wrote it (apfex 9.0)" in apfex("predict", other, new).err
    other.write_text("{")
    assert "must be JSON" in apfex("predict", other, new).err
    other.write_text("[]")
    assert "is no record of a run" in apfex("predict", other, new).err


def test_a_point_that_is_not_there_is_told_before_anything_else(apfex, finished, new, tmp_path):
    (tmp_path / "out.csv").write_text("precious")
    said = apfex("predict", finished, new, "--point", 99, "--out", tmp_path / "out.csv")
    assert (said.code, "--point must be from 0 to" in said.err) == (2, True)


DAMAGES = {
    "one label": lambda r: r.update(classes=r["classes"][:1]),
    "one word": lambda r: r["words"].pop(),
    "words that are numbers": lambda r: r.update(words=[0, 1]),
    "no words": lambda r: r.pop("words"),
    "features of another kind": lambda r: r["features"].update(town="picture"),
    "no features": lambda r: r.update(features={}),
    "features as a list": lambda r: r.update(features=list(r["features"])),
    "no data": lambda r: r.update(data=None),
    "no versions": lambda r: r.update(versions=[]),
    "no results": lambda r: r.pop("results"),
    "results of no point": lambda r: r["results"].update(points=[]),
    "results in words": lambda r: r["results"]["points"][0].update(error="small"),
    "another command": lambda r: r.update(command=["explore"]),
    "a word for finished": lambda r: r.update(finished="yes"),
}


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("command", ["predict", "report", "rerun"])
def test_a_damaged_record_is_told_in_our_words(apfex, finished, new, tmp_path, name, command):
    record = json.loads((finished / "run.json").read_text())
    DAMAGES[name](record)
    (tmp_path / "run.json").write_text(json.dumps(record))
    said = apfex(command, tmp_path / "run.json", *([new] if command == "predict" else []))
    assert said.code == 2
    kind = "is of `apfex" if name == "another command" and command != "report" else "is damaged: "
    assert f"{tmp_path / 'run.json'} {kind}" in said.err


def test_damaged_settings_are_told(apfex, finished, tmp_path):
    for name, value in {"criteria": 5, "points": "x", "max_gap": [1], "label": 1}.items():
        record = json.loads((finished / "run.json").read_text())
        record["settings"][name] = value
        (tmp_path / "run.json").write_text(json.dumps(record))
        said = apfex("rerun", tmp_path / "run.json")
        assert (said.code, f"damaged: {name} is {value!r}" in said.err) == (2, True)


def test_a_record_of_another_model_is_refused(apfex, finished, new, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    for change in ({"classes": ["a", "b"]}, {"features": {"merit_1": "number"}}):
        record = json.loads((finished / "run.json").read_text()) | change
        (tmp_path / "run" / "run.json").write_text(json.dumps(record))
        said = apfex("predict", tmp_path / "run", new)
        assert (said.code, "model/ has other classes or features" in said.err) == (2, True)


def test_a_decision_is_told_by_report_and_predict(apfex, finished, new, tmp_path):
    home = tmp_path / "signed"
    shutil.copytree(finished, home)
    described = json.loads((home / "front.json").read_text(encoding="utf-8"))
    signed = 1 if described["chosen"] != 1 else 0
    decision = {
        "kind": "apfex.decision",
        "schema_version": 1,
        "run_id": described["run"]["run_id"],
        "point": signed,
        "name": "R. [red]Meier",
        "date": "2026-03-01",
        "reason": "It keeps the limit.",
    }
    (tmp_path / "d.json").write_text(json.dumps(decision))
    assert "Decision" not in apfex("report", home).out
    assert apfex("report", home, "--decision", tmp_path / "d.json").code == 0
    told = apfex("report", home)
    assert f"point {signed}, signed by R. [red]Meier on 2026-03-01" in told.out
    assert json.loads(apfex("report", home, "--json").out)["decision"]["point"] == signed
    typed = apfex("predict", home, new, "--out", tmp_path / "out.csv")
    assert typed.code == 0
    said = " ".join(typed.err.split())
    assert f"This run was signed for point {signed} (by R. [red]Meier on 2026-03-01)" in said
    assert f"--point {signed}" in said
    typed = apfex("predict", home, new, "--point", signed, "--out", tmp_path / "out2.csv")
    assert "signed" not in typed.err


def test_without_a_usable_model_the_conclusion_is_said(apfex, finished, new, tmp_path):
    home = tmp_path / "none"
    shutil.copytree(finished, home)
    record = json.loads((home / "run.json").read_text(encoding="utf-8"))
    text = "No usable model: every model gives everyone the same answer."
    record["conclusion"] = {"code": "no_usable_model", "text": text}
    (home / "run.json").write_text(json.dumps(record), encoding="utf-8")
    typed = apfex("predict", home, new, "--out", tmp_path / "out.csv")
    assert typed.code == 0
    assert text in " ".join(typed.err.split())


def test_many_files_as_one_table(apfex, finished, new, tmp_path):
    frame = pd.read_csv(new, dtype={"id": "str"})
    folder = tmp_path / "months"
    folder.mkdir()
    for month in range(3):
        frame.iloc[20 * month : 20 * month + 20].to_parquet(folder / f"{month}.parquet")
    apfex("predict", finished, new, "--out", tmp_path / "whole.csv")
    expected = [row["probability"] for row in read(tmp_path / "whole.csv")]
    for files in (["months/*.parquet"], ["months"], [f"months/{m}.parquet" for m in range(3)]):
        sources = [tmp_path / file for file in files]
        said = apfex("predict", finished, *sources, "--out", tmp_path / "o.csv", "--force")
        assert said.code == 0
        assert "60 rows of 3 files decided by point" in said.out
        assert [row["probability"] for row in read(tmp_path / "o.csv")] == expected
    said = apfex("predict", finished, folder / "*.parquet")
    assert f"Written: {tmp_path / 'months-predictions.parquet'}" in said.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["months/*.parqet"], "matches no file"),
        (["months/*.parquet", "--out", "months/out.parquet"], "--out must not be among the files"),
        (["months", "new.csv"], "must be of one form"),
        (["months/0.parquet", "months/9.parquet"], "There is no file"),
    ],
)
def test_bad_files_among_many(apfex, finished, new, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "months").mkdir()
    pd.read_csv(new).to_parquet(tmp_path / "months" / "0.parquet")
    before = sorted(tmp_path.rglob("*"))
    said = apfex("predict", finished, *arguments)
    assert said.code == 2
    assert words in said.err
    assert sorted(tmp_path.rglob("*")) == before


def predicted(apfex, run, frame, folder):
    """What is told on stderr."""
    frame.to_csv(folder / "other.csv", index=False)
    said = apfex("predict", run, folder / "other.csv", "--out", folder / "out.csv", "--force")
    assert said.code == 0
    return said.err


@pytest.mark.parametrize("n", [60, 49])
def test_a_column_that_tells_the_model_nothing_is_named(apfex, finished, new, tmp_path, n):
    frame = pd.read_csv(new, dtype=str).head(n)
    few = frame.assign(town=["Mars"] * (n - 1) + [frame["town"][0]], merit_1=frame["merit_1"][:1])
    assert "Check that" not in predicted(apfex, finished, few, tmp_path)
    none = frame.assign(town="Mars", merit_1=None)
    said = predicted(apfex, finished, none, tmp_path)
    assert said.count("Check that this is meant") == (2 if n == 60 else 0)
    for words in ("merit_1 is empty in all 60 rows: its", "town has in none of 60 rows a value"):
        assert (words in said) == (n == 60)
    parts = tmp_path / "parts"  # what the last part has counts, too
    parts.mkdir()
    none.to_csv(parts / "a.csv", index=False)
    frame.to_csv(parts / "b.csv", index=False)
    said = apfex("predict", finished, parts, "--out", tmp_path / "both.csv")
    assert said.code == 0
    assert "Check that" not in said.err


def forged(finished, folder, name, change):
    """A copy of a run, of which one file was changed."""
    copy = folder / "forged"
    shutil.copytree(finished, copy)
    found = json.loads((copy / name).read_text())
    change(found)
    (copy / name).write_text(json.dumps(found))
    return copy


@pytest.mark.parametrize(
    ("name", "change", "command", "words"),
    [
        ("run.json", lambda r: r["words"].reverse(), "predict", "words that are not those of"),
        (
            "run.json",
            lambda r: r["results"].update(point=99),
            "predict",
            "model/ has other points",
        ),
        (
            "run.json",
            lambda r: r["results"]["points"].pop(),
            "predict",
            "model/ has other points",
        ),
        (
            "run.json",
            lambda r: r["results"]["points"][0].update({"error on validation rows": 0.01}),
            "predict",
            "model/ has other points",
        ),
        (
            "front.json",
            lambda f: f["points"][0].update(error=0.01),
            "report",
            "front.json has other",
        ),
        (
            "run.json",
            lambda r: r["results"]["points"][0].update(error=None),
            "card",
            "front.json has other",
        ),
    ],
)
def test_parts_of_different_runs_are_refused(
    apfex, finished, new, tmp_path, name, change, command, words
):
    run = forged(finished, tmp_path, name, change)
    said = apfex(
        command, run, *([new, "--out", tmp_path / "o.csv"] if command == "predict" else [])
    )
    assert (said.code, words in said.err) == (2, True), said.err
    assert not (tmp_path / "o.csv").exists()
