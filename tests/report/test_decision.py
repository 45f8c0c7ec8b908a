"""A decision is read back only if it is whole, and of this run."""

import json

import pytest

from apfex.report import read_decision

WHOLE = {
    "kind": "apfex.decision",
    "schema_version": 1,
    "data_sha256": "a" * 64,
    "point": 2,
    "name": "R. Meier",
    "date": "2026-03-01",
    "reason": "Smallest gap at no loss.",
}


@pytest.fixture
def read(tmp_path):
    def reads(changes, n_points=4, sha256="a" * 64):
        path = tmp_path / "decision.json"
        path.write_text(json.dumps({**WHOLE, **changes}))
        return read_decision(path, n_points=n_points, sha256=sha256)

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
        ({"point": 4}, "a point from 0 to 3, got 4"),
        ({"point": True}, "a point from 0 to 3, got True"),
        ({"point": None}, "a point from 0 to 3, got None"),
        ({"data_sha256": "b" * 64}, "on the data of this run .*aaaaaaaaaaaa.*, got one on bbbb"),
    ],
)
def test_another_is_refused(read, changes, message):
    with pytest.raises(ValueError, match=message):
        read(changes)


def test_an_audit_has_no_points(read):
    with pytest.raises(ValueError, match="must be on an audit, got one on point 2"):
        read({}, n_points=None)
