"""JSON that every reader takes."""

import datetime
import json
import os
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from apfex.persistence import read_json, write_json


def test_plain_values_come_back(tmp_path):
    value = {"a": [1, 2.5, None, True, "é\u2028</script>"], "b": {}}
    assert read_json(write_json(tmp_path / "run.json", value)) == value


def test_numbers_of_numpy_paths_and_dates_are_made_plain(tmp_path):
    value = {
        1: (np.int64(3), np.array([[1.5, np.nan]]), np.float32("inf"), np.bool_(True)),
        "rest": [Path("a") / "b", datetime.date(2020, 1, 2), pd.NA, pd.NaT, np.str_("x")],
        "time": np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
    }
    expected = {
        "1": [3, [[1.5, None]], None, True],
        "rest": [str(Path("a") / "b"), "2020-01-02", None, None, "x"],
        "time": ["2020-01-01", "NaT"],
    }
    path = write_json(tmp_path / "run.json", value)
    assert read_json(path) == expected
    assert path.read_text().endswith("}\n")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [{1, 2}]}, r"value\['a'\]\[0\] must be a mapping, .* got set"),
        ({"a": Decimal(1)}, "got Decimal"),
        ({1: 1, "1": 2}, "names that differ as text"),
    ],
)
def test_what_json_cannot_hold_is_refused_and_the_file_kept(tmp_path, value, message):
    path = write_json(tmp_path / "run.json", "old")
    with pytest.raises((TypeError, ValueError), match=message):
        write_json(path, value)
    assert read_json(path) == "old"


@pytest.mark.parametrize(
    "text", ["", "{", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 100_000, "\udcff", "1 2"]
)
def test_what_is_no_json_is_refused_by_name(tmp_path, text):
    path = tmp_path / "run.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=r"run.json' must be JSON, got something else \(.*copy or"):
        read_json(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"run\.json' must be a file, got nothing"):
        read_json(tmp_path / "run.json")
    with pytest.raises(FileNotFoundError, match="must be a file, got something else"):
        read_json(tmp_path)


def test_what_other_readers_see(tmp_path):
    path = write_json(tmp_path / "run.json", {"gap": 0.1, "name": "Zürich"})
    assert json.loads(path.read_text(encoding="utf-8")) == {"gap": 0.1, "name": "Zürich"}
    assert "Zürich" in path.read_text(encoding="utf-8")


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path, monkeypatch):
    """Its size was looked at, and what came later was not."""
    path = write_json(tmp_path / "a.json", [1])

    def grow(*_):
        with path.open("a") as file:
            file.write(" " * 10**6)

    monkeypatch.setattr("apfex.persistence._json.check_room", grow)
    with pytest.raises(ValueError, match=r"a\.json' was changed while it was read"):
        read_json(path)


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="this system follows every link")
def test_a_link_that_comes_after_the_look_is_not_followed(tmp_path):
    write_json(tmp_path / "mine.json", "mine")
    (tmp_path / "a.json").symlink_to(tmp_path / "mine.json")
    assert read_json(tmp_path / "a.json") == "mine"
    with pytest.raises(OSError, match=r"a\.json' could not be read"):
        read_json(tmp_path / "a.json", follow=False)
