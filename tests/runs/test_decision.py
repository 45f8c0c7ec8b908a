"""A decision is kept with the run that it is on, and is on its page from then on."""

import json

import pandas as pd
import pytest
from tests.report.conftest import data_of

from apfex import explore, make_biased
from apfex.runs import RunError, audit_file, rewrite_report


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    people = make_biased(n=400, random_state=0)
    table = people.X.assign(hired=people.y, sex=people.sensitive["sex"])
    given = {"criteria": "dp", "model": "linear", "search": "inprocess", "points": 3}
    run = explore(table, label="hired", sensitive="sex", max_gap=1.0, **given)
    return run.save(tmp_path_factory.mktemp("runs") / "run")


def decision(path, **changes):
    whole = {
        "kind": "apfex.decision",
        "schema_version": 1,
        "data_sha256": None,
        "point": 1,
        "name": "R. <b>Meier</b>",
        "date": "2026-03-01",
        "reason": "It keeps the limit.",
    }
    path.write_text(json.dumps({**whole, **changes}))
    return path


def test_it_is_on_the_page_of_a_front_from_then_on(folder, tmp_path):
    assert data_of(folder / "report.html").get("decision") is None
    rewrite_report(folder, decision=decision(tmp_path / "d.json"))
    assert data_of(folder / "report.html")["decision"]["name"] == "R. <b>Meier</b>"
    rewrite_report(folder)
    assert data_of(folder / "report.html")["decision"]["point"] == 1


def test_one_of_other_data_changes_nothing(folder, tmp_path):
    before = (folder / "report.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="on the data of this run"):
        rewrite_report(folder, decision=decision(tmp_path / "d.json", data_sha256="b" * 64))
    with pytest.raises(ValueError, match=r"a point from 0 to \d, got 99"):
        rewrite_report(folder, decision=decision(tmp_path / "d.json", point=99))
    with pytest.raises(RunError, match="decision must be a file, got"):
        rewrite_report(folder, decision=tmp_path / "none.json")
    assert (folder / "report.html").read_text(encoding="utf-8") == before


def test_an_audit_is_signed_too_and_says_how_it_was_made(tmp_path):
    table = pd.DataFrame({"sex": ["F", "M"] * 100, "yes": [0, 1, 1, 1] * 50})
    home = audit_file(table, prediction="yes", sensitive="sex").save(tmp_path / "audit")
    rewrite_report(home, decision=decision(tmp_path / "d.json", point=None))
    told = data_of(home / "report.html")
    assert told["decision"]["reason"] == "It keeps the limit."
    assert told["run"]["data"]["rows"] == 200
    assert {"date", "settings", "versions"} <= set(told["run"])
