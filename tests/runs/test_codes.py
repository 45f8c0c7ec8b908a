"""Codes such as 01 and 1 are two groups, whoever reads them and whichever rows are chosen."""

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from apfex import explore
from apfex.auditing import Audit, audit_table
from apfex.groups import UnseenGroupWarning
from apfex.runs import audit_file
from apfex.sources import RunError

PAIRS = [
    ("250.0", "250.00"),
    ("1.1", "1.10"),
    ("01", "1"),
    ("12345678901234567890", "12345678901234567891"),
    ("9007199254740993", "9007199254740992", "1.5"),
    ("0x10", "16"),
    ("1", "1.0"),
    ("True", "1", "False", "0"),
    ("True", "true"),
    *[(code, "2") for code in ("01", "1.50", "+5", "1e3", ".5", "-0")],
]


def written(folder, codes, separator=","):
    """Rows with codes in turn; the column "first" says which rows have the first."""
    rng = np.random.default_rng(0)
    lines = [["code", "first", "x", "y"]]
    for place in range(60 * len(codes)):
        code, x = codes[place % len(codes)], rng.random()
        lines.append([code, str(code == codes[0]), f"{x:.3f}", str(int(x > 0.5))])
    path = folder / "t.csv"
    path.write_text("\n".join(separator.join(line) for line in lines) + "\n")
    return path


def groups_of(path, **more):
    """Groups by all who read a CSV file."""
    asked = {"prediction": "y", "sensitive": "code", **more}
    everyone = {"first": ["True", "False"]}
    return [
        sorted(found.groups["group"])
        for found in (
            audit_file(path, **asked).audit,
            audit_file(path, **asked, where=everyone).audit,
            audit_table(path, **asked),
        )
    ]


@pytest.mark.parametrize("codes", PAIRS)
def test_a_code_is_the_group_that_is_written(tmp_path, codes):
    path = written(tmp_path, codes)
    wanted = sorted(f"code={code}" for code in codes)
    assert groups_of(path) == [wanted] * 3
    chosen = audit_table(path, prediction="y", sensitive="code", where={"first": "True"})
    assert list(chosen.groups["group"]) == [f"code={codes[0]}"]


def test_other_numbers_stay_numbers(tmp_path):
    path = written(tmp_path, ["1", "2", " 2", "10"])
    assert groups_of(path) == [["code=1", "code=10", "code=2"]] * 3
    path = written(tmp_path, ["1", "-3", "2.5", "0.5"])
    assert groups_of(path) == [["code=-3", "code=0.5", "code=1", "code=2.5"]] * 3
    path = written(tmp_path, ["1.0", "2.0"])
    assert groups_of(path) == [["code=1", "code=2"]] * 3
    path = written(tmp_path, ["True", "0"])
    assert groups_of(path) == [["code=False", "code=True"]] * 3


def test_a_decimal_comma_is_usual_where_it_is_found(tmp_path):
    path = written(tmp_path, ["1.1", "2.5"], ";")
    path.write_text(path.read_text().replace(".", ","))
    found = audit_file(path, prediction="y", sensitive="code").audit
    assert sorted(found.groups["group"]) == ["code=1.1", "code=2.5"]


@pytest.mark.parametrize("role", ["sensitive", "control"])
def test_where_chooses_a_code_as_it_is_written(tmp_path, role):
    codes = ["01", "1", "2"]
    path = written(tmp_path, codes)
    others = {"sensitive": "code"} if role == "sensitive" else {"sensitive": "x", "control": "code"}
    asked: dict[str, Any] = {"prediction": "y", **others, "criteria": "dp"}

    def rows(audit: Audit) -> int:
        return int(audit.groups["count"].to_numpy().sum())

    for wanted, groups in {("01", "2"): 120, ("1", 2): 120, (1, "2", "01"): 180}.items():
        where = {"code": wanted}
        assert rows(audit_file(path, **asked, where=where).audit) == groups
        assert rows(audit_table(path, **asked, where=where)) == groups


def test_where_takes_numbers_however_they_are_written(tmp_path):
    asked: dict[str, Any] = {"prediction": "y", "sensitive": "code"}
    for wanted in ("01", "1.0", 1):
        path = written(tmp_path, ["1", "2"])
        found = audit_table(path, **asked, where={"code": wanted})
        assert list(found.groups["group"]) == ["code=1"]
    path = written(tmp_path, ["01", "1", "2"])
    binned = {"where": {"code": [1, 2]}, "bins": {"code": [1.5]}}
    found = audit_file(path, **asked, **binned).audit
    assert sorted(found.groups["count"]) == [60, 120]
    found = audit_table(path, prediction="y", sensitive="first", where={"code": 1})
    assert int(found.groups["count"].to_numpy().sum()) == 120


def test_bins_take_numbers_however_they_are_spelled(tmp_path):
    path = written(tmp_path, ["01", "1", "2.0", "3"])
    found = audit_file(path, prediction="y", sensitive="code", bins={"code": [1.5, 2.5]})
    assert len(found.audit.groups) == 3


def test_a_decimal_comma_is_no_other_spelling_of_text(tmp_path):
    path = written(tmp_path, ["1,1", "1,10", "2,5"], ";")
    found = audit_file(path, prediction="y", sensitive="code").audit
    assert sorted(found.groups["group"]) == ["code='1,1'", "code='1,10'", "code='2,5'"]


@pytest.mark.parametrize("stream", [False, True])
def test_models_and_new_rows_have_the_same_groups(tmp_path, stream):
    path = written(tmp_path, ["01", "1", "2"])
    asked = {"label": "y", "sensitive": "code", "drop": "first", "model": "linear", "points": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = explore(path, **asked, group_thresholds=True, stream=stream)
    wanted = {"code=01", "code=1", "code=2"}
    groups = run.classifier.fitted_.groups
    assert groups is not None
    assert set(groups.names) == wanted
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnseenGroupWarning)
        assert len(run.predict(path)) == 180
    new = tmp_path / "new.csv"
    new.write_text("code,x\n001,0.2\n")
    with pytest.warns(UnseenGroupWarning, match="001"):
        run.predict(new)
    frame = pd.read_csv(path)  # in which 01 is 1
    with pytest.raises(RunError, match=r"code must hold text, .* where '01' is a group, got num"):
        run.predict(frame)
    assert len(run.predict(frame.astype({"code": str}))) == 180


@pytest.mark.parametrize("stream", [False, True], ids=["in memory", "in chunks"])
def test_large_codes_beside_missing_ones_are_groups_of_their_own(tmp_path, stream):
    """As floats, which pandas makes of whole numbers with gaps, both would be one number."""
    codes = [2**53, 2**53 + 1, None]
    x = np.random.default_rng(0).random(600)
    columns: dict[str, Any] = {
        "code": pd.array(codes * 200, dtype="Int64"),
        "x": x,
        "y": np.random.default_rng(1).integers(0, 2, 600),
    }
    path = tmp_path / "t.parquet"
    pd.DataFrame(columns).to_parquet(path)
    asked: dict[str, Any] = {
        "label": "y",
        "sensitive": "code",
        "model": "linear",
        "points": 2,
        "max_gap": 1.0,
    }
    explore(path, **asked, stream=stream, out=tmp_path / "run")
    found = json.loads((tmp_path / "run" / "run.json").read_text())["data"]["groups"]
    assert found["levels"] == {"code": 3}
    assert found["smallest_rows"] == 200
