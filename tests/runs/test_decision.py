"""A decision is kept with the run that it is on, and is on its page from then on."""

import json
from typing import Any

import pandas as pd
import pytest
from tests.report.conftest import data_of

from apfex import explore, make_biased
from apfex.runs import RunError, audit_file, load_run, rewrite_report


def people():
    data = make_biased(n=400, random_state=0)
    return data.X.assign(hired=data.y, sex=data.sensitive["sex"])


def stored(path, **changes):
    given: dict[str, Any] = {
        "criteria": "dp",
        "model": "linear",
        "search": "inprocess",
        "points": 3,
    }
    run = explore(people(), label="hired", sensitive="sex", max_gap=1.0, **given | changes)
    return run.save(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("runs") / "run")


def decision(path, home, **changes):
    """What the page of a run or audit would save."""
    told = data_of(home / "report.html")["run"]
    run = {"run_date": told["date"], "run_settings": told["settings"]}
    if "run_id" in told:
        run = {"run_id": told["run_id"]}
    whole = run | {
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
    rewrite_report(folder, decision=decision(tmp_path / "d.json", folder))
    assert data_of(folder / "report.html")["decision"]["name"] == "R. <b>Meier</b>"
    rewrite_report(folder)
    assert data_of(folder / "report.html")["decision"]["point"] == 1


def test_one_of_other_data_changes_nothing(folder, tmp_path):
    before = (folder / "report.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="on the data of this run"):
        rewrite_report(folder, decision=decision(tmp_path / "d.json", folder, data_sha256="b" * 64))
    with pytest.raises(ValueError, match=r"a point from 0 to \d, got 99"):
        rewrite_report(folder, decision=decision(tmp_path / "d.json", folder, point=99))
    with pytest.raises(RunError, match="decision must be a file, got"):
        rewrite_report(folder, decision=tmp_path / "none.json")
    assert (folder / "report.html").read_text(encoding="utf-8") == before


def test_one_of_another_run_on_the_same_data_is_refused(folder, tmp_path):
    other = stored(tmp_path / "other", seed=1)
    assert load_run(other).data.sha256 == load_run(folder).data.sha256
    with pytest.raises(ValueError, match=r"must be on this run \(run_id .*sign there"):
        rewrite_report(other, decision=decision(tmp_path / "d.json", folder))
    assert not (other / "decision.json").exists()
    again = stored(tmp_path / "again")  # the same to the last digit, so the same run
    rewrite_report(again, decision=decision(tmp_path / "d.json", folder))
    kept = load_run(again).decision
    assert kept is not None
    assert kept["point"] == 1


def test_an_audit_with_other_settings_is_another(tmp_path):
    table = pd.DataFrame({"sex": ["F", "M"] * 100, "yes": [0, 1, 1, 1] * 50})
    given: dict[str, Any] = {"prediction": "yes", "sensitive": "sex"}
    one = audit_file(table, **given).save(tmp_path / "one")
    two = audit_file(table, **given, tolerance=0.2).save(tmp_path / "two")
    with pytest.raises(ValueError, match="must be on this run"):
        rewrite_report(two, decision=decision(tmp_path / "d.json", one, point=None))


def test_decisions_by_another_point_than_the_signed_one_are_warned_of(tmp_path, recwarn):
    home = stored(tmp_path / "run")
    chosen = load_run(home).described["chosen"]
    signed = 1 if chosen != 1 else 0
    rewrite_report(home, decision=decision(tmp_path / "d.json", home, point=signed))
    recwarn.clear()
    load_run(home).predict(people(), point=signed)
    assert not [one for one in recwarn if "signed" in str(one.message)]
    message = rf"signed for point {signed} \(by .* on 2026-03-01\), but point {chosen} decides"
    with pytest.warns(UserWarning, match=message):
        load_run(home).predict(people())
    (home / "decision.json").write_text("{}")
    with pytest.warns(UserWarning, match="is no decision on this run"):
        load_run(home).predict(people())


def test_an_audit_is_signed_too_and_says_how_it_was_made(tmp_path):
    table = pd.DataFrame({"sex": ["F", "M"] * 100, "yes": [0, 1, 1, 1] * 50})
    home = audit_file(table, prediction="yes", sensitive="sex").save(tmp_path / "audit")
    rewrite_report(home, decision=decision(tmp_path / "d.json", home, point=None))
    told = data_of(home / "report.html")
    assert told["decision"]["reason"] == "It keeps the limit."
    assert told["run"]["data"]["rows"] == 200
    assert {"date", "settings", "versions"} <= set(told["run"])
