"""A decision is read back only if it is whole, and of this run."""

import json
from datetime import datetime, timedelta

import pytest

from apfex.report import read_decision

WHOLE = {
    "kind": "apfex.decision",
    "schema_version": 1,
    "data_sha256": "a" * 64,
    "run_id": "1" * 64,
    "point": 2,
    "name": "R. Meier",
    "date": "2026-03-01",
    "reason": "Smallest gap at no loss.",
}


@pytest.fixture
def read(tmp_path):
    def reads(changes, n_points=4, sha256="a" * 64, run=None):
        path = tmp_path / "decision.json"
        path.write_text(json.dumps({**WHOLE, **changes}))
        return read_decision(path, n_points=n_points, sha256=sha256, run=run)

    return reads


def test_what_was_saved_is_read(read):
    assert read({}) == WHOLE
    assert read({"data_sha256": None})["point"] == 2  # the page did not know the data
    assert read({"point": None}, n_points=None)["name"] == "R. Meier"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "apfex.run"}, "Save decision.json"),
        ({"schema_version": 2}, "schema_version 1"),
        ({"name": " "}, "must have a name, got ' '"),
        ({"reason": None}, "must have a reason, got None"),
        ({"date": 3}, "must have a date, got 3"),
        ({"date": "1 March"}, "must have a date such as 20.*, got '1 March'"),
        ({"point": 4}, "a point from 0 to 3, got 4"),
        ({"point": True}, "a point from 0 to 3, got True"),
        ({"point": None}, "a point from 0 to 3, got None"),
        ({"data_sha256": "b" * 64}, "on the data of this run .*aaaaaaaaaaaa.*, got one on bbbb"),
    ],
)
def test_another_is_refused(read, changes, message):
    with pytest.raises(ValueError, match=message):
        read(changes)


def test_one_of_another_run_on_the_same_data_is_refused(read):
    assert read({}, run={"run_id": "1" * 64})["point"] == 2
    with pytest.raises(ValueError, match=r"on this run \(run_id 2{32}\.\.\.\), got one on another"):
        read({}, run={"run_id": "2" * 64})
    with pytest.raises(ValueError, match=r"another run \(run_id not given\) .* and sign there"):
        read({"run_id": None}, run={"run_id": "2" * 64})
    audit = {"run_date": "2026-01-01T10:00:00+00:00", "run_settings": {"tolerance": 0.05}}
    assert read({**audit, "point": None}, n_points=None, run=audit)["name"] == "R. Meier"
    other = {**audit, "run_settings": {"tolerance": 0.1}}
    with pytest.raises(ValueError, match=r"run_settings \{'tolerance': 0\.05\}"):
        read({**other, "point": None}, n_points=None, run=audit)


def test_a_day_to_come_is_refused(read):
    today = datetime.now().astimezone().date()
    assert read({"date": str(today)})["point"] == 2
    with pytest.raises(ValueError, match="not in the future"):
        read({"date": str(today + timedelta(days=2))})


def test_an_audit_has_no_points(read):
    with pytest.raises(ValueError, match="must be on an audit, got one on point 2"):
        read({}, n_points=None)
