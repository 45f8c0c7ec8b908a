"""``report`` and ``rerun``: a run again, from its record."""

import json

from apfex.persistence import read_json, write_json


def test_a_rerun_comes_out_the_same(apfex, finished, tmp_path):
    said = apfex("rerun", finished / "run.json", "--out", tmp_path / "again")
    assert said.code == 0, said.err
    assert f"The same as {finished}" in said.out
    one, two = (read_json(run / "run.json") for run in (finished, tmp_path / "again"))
    assert one["results"] == two["results"]
    assert one["settings"] | {"source": ""} == two["settings"] | {"source": ""}


def test_a_rerun_goes_beside_the_data(apfex, finished, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_bytes(table.read_bytes())
    said = apfex("rerun", finished, "--data", tmp_path / "people.csv")
    assert said.code == 0, said.err
    assert str(tmp_path / "apfex-people" / "report.html") in said.out
    assert "Not the same" not in said.out


def test_another_outcome_is_told(apfex, finished, tmp_path):
    record = read_json(finished / "run.json")
    record["results"]["points"][0]["error"] += 0.25
    record["versions"]["torch"] = "1.0"
    write_json(tmp_path / "run.json", record)
    said = apfex("rerun", tmp_path / "run.json", "--out", tmp_path / "again", "--json")
    assert said.code == 1
    document = json.loads(said.out)
    assert document["same"] is False
    assert document["differences"] == ["error by up to 0.25"]
    assert "Versions differ: torch 1.0 ->" in said.err


def test_other_data_is_refused_before_anything_runs(apfex, finished, table, tmp_path):
    changed = tmp_path / "people.csv"
    changed.write_bytes(table.read_bytes().replace(b"Corby", b"Derby"))
    said = apfex("rerun", finished, "--data", changed, "--out", tmp_path / "again")
    assert (said.code, "is not that of the run: sha256 must be" in said.err) == (2, True)
    assert not (tmp_path / "again").exists()
    record = read_json(finished / "run.json")
    record["data"]["path"] = str(tmp_path / "gone.csv")
    write_json(tmp_path / "run.json", record)
    said = apfex("rerun", tmp_path / "run.json")
    assert (said.code, "say where: --data" in said.err) == (2, True)
    said = apfex("rerun", tmp_path / "run.json", "--data", table, "--out", tmp_path / "again")
    assert said.code == 0


def test_settings_of_another_version_are_refused(apfex, finished, tmp_path):
    record = read_json(finished / "run.json")
    record["settings"]["magic"] = 1
    write_json(tmp_path / "run.json", record)
    said = apfex("rerun", tmp_path / "run.json")
    assert (said.code, "another version of apfex: ['magic']" in said.err) == (2, True)


def test_the_page_is_rebuilt_from_what_is_stored(apfex, finished):
    before = (finished / "report.html").read_bytes()
    (finished / "report.html").write_text("spoilt")
    said = apfex("report", finished)
    assert said.code == 0
    assert (finished / "report.html").read_bytes() == before
    assert "No model meets your limit" in said.out
    assert json.loads(apfex("report", finished, "--json").out)["report"].endswith("report.html")


def test_the_page_of_an_audit_is_rebuilt_with_its_thresholds(apfex, decisions, tmp_path):
    out = tmp_path / "audit"
    columns = ["--prediction", "score", "--threshold", "0.6", "--sensitive", "sex,race"]
    said = apfex("audit", decisions, *columns, "--out", out)
    assert said.code == 0, said.err
    assert "tpr left out" in said.out
    before = (out / "report.html").read_bytes()
    assert b"lowest_rate" in before
    (out / "report.html").write_text("spoilt")
    again = apfex("report", out)
    assert again.code == 0, again.err
    assert (out / "report.html").read_bytes() == before
    assert "tpr left out" in again.out


def test_a_front_that_is_missing_is_told(apfex, finished, tmp_path):
    (tmp_path / "run.json").write_bytes((finished / "run.json").read_bytes())
    said = apfex("report", tmp_path)
    assert (said.code, "front.json' must be a file" in said.err) == (2, True)
